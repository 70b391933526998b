"""Consumer groups: sessions, assignments and the rules that fence old consumers."""
