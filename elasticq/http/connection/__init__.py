"""One HTTP connection: framing of requests, chunked bodies, and responses."""
