"""Spark reads and writes queues: ``format("sqs")``, ``consume``, ``run_forever``, ``session``."""
