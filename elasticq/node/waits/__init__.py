"""The reasons for which a call waits, one per module."""
