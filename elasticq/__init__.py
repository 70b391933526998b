"""elasticq: an SQS-compatible replicated message server."""

__version__ = "0.1.0"
