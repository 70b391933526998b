"""Read-only views of the state: figures, dumps, digests and messages in flight."""
