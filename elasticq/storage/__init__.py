"""Stores the log and the rows of a member, behind one interface."""
