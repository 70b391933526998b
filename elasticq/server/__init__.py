"""Settings, wiring and life of the process."""
