"""The SQS port: bytes from clients to commands, results to bytes."""
