"""Where a member keeps its log and rows, behind one interface."""
