"""What mutations do to the state and to the rows on disk, a file for each noun; messages are in ``apply``."""
