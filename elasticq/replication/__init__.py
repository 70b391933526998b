"""The order of entries: terms, votes, log, election and commit over opaque bytes (pure)."""
