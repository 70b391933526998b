"""elasticq: an SQS-compatible replicated message server."""

import os

from elasticq.native import settle

__version__ = "0.1.0"

BUILD = settle(os.path.dirname(__file__))
"""Whether this process runs compiled modules. Settled here, as no other module of elasticq can be imported earlier."""
