"""What mutations do to the state and to the rows on disk: a file for each kind of object; messages are in ``apply``."""
