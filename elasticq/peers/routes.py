"""Address replacements for tests: which address to dial instead of the one that a member reports.

``ELASTICQ_FAULT_ROUTES`` names a JSON file {"host:port": "host:port", ...}, which is read at each dial. Partition tests
use it to put a TCP proxy between each two members. If it is not set, nothing is replaced.
"""

import os
from pathlib import Path

import msgspec

VARIABLE = "ELASTICQ_FAULT_ROUTES"


def route(address: str) -> str:
    """Return the address to dial instead of ``address``, or ``address`` itself."""
    file = os.environ.get(VARIABLE)
    if not file:
        return address
    return msgspec.json.decode(Path(file).read_bytes(), type=dict[str, str]).get(address, address)
