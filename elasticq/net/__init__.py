"""The acceptance of connections for all ports, within bounds that keep the process from running out of files."""
