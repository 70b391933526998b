"""The stored data: mutations, rows, and the indexes and values that they hold."""
