"""Read-only views of the state: figures, dumps, digests, messages in flight and the order of message groups."""
