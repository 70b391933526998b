"""The rows in SQLite: tables, statements, loading and salvage."""
