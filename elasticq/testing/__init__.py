"""Servers and clusters inside tests, with control of their clock and faults, and the pytest plugin (plugin.py).

The names of this package are imported at their first use, because pytest loads the plugin in every project that has
elasticq installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elasticq.testing.calls import CallFailed as CallFailed
    from elasticq.testing.cluster import Cluster as Cluster
    from elasticq.testing.server import ElasticQ as ElasticQ

_HOMES = {
    "CallFailed": "elasticq.testing.calls",
    "Cluster": "elasticq.testing.cluster",
    "ElasticQ": "elasticq.testing.server",
}

__all__ = ["CallFailed", "Cluster", "ElasticQ"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
