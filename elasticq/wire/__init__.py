"""The wire formats: bytes to commands and results to bytes, in AWS JSON 1.0 and in AWS Query."""
