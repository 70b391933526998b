"""Detours for tests: addresses to dial instead of those that members tell of themselves.

``ELASTICQ_FAULT_ROUTES`` names a JSON file {"host:port": "host:port", ...}, read at each dial. Partition tests
put a proxy between each two members by it; nothing but the dialled address changes. Unset: no detours.
"""

import os
from pathlib import Path

import msgspec

VARIABLE = "ELASTICQ_FAULT_ROUTES"


def route(address: str) -> str:
    """Return where to dial for ``address``."""
    file = os.environ.get(VARIABLE)
    if not file:
        return address
    return msgspec.json.decode(Path(file).read_bytes(), type=dict[str, str]).get(address, address)
