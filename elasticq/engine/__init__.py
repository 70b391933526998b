"""Queues: command and state give a result and mutations; ``apply`` alone writes state (pure)."""
