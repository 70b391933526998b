"""Accepts connections for all ports: bounded before a protocol sees them, and never beyond the process's files."""
