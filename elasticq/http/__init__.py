"""The SQS port: it turns the bytes of clients into commands, and results into bytes."""
