"""The server process: its settings, the wiring of its parts, its start and its end."""
