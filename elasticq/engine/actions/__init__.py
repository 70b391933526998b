"""One handler per SQS action: state and call in, result and mutations out; state stays as it is."""
