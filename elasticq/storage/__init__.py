"""The storage of a member's log and rows, with one interface for memory and disk."""
