"""elasticq: an SQS-compatible replicated message server."""

import os

from elasticq.native import settle

__version__ = "0.1.0"

BUILD = settle(os.path.dirname(__file__))
"""Whether this process runs compiled modules. It is decided here, before any other module of elasticq is imported."""
