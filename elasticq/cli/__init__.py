"""The command line: ``python -m elasticq``."""

from elasticq.cli.main import main

__all__ = ["main"]
