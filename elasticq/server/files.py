"""The division of the process's open-file limit among its ports, with a reserve for the storage.

The process ends if the log cannot open its next file. So some files are reserved for the storage and for connections
to other members, and the ports get the rest.
"""

import resource
from typing import Final

from msgspec import Struct

KEPT_MAX: Final = 256
"""The reserve for the storage, connections to other members, snapshots, and connections between accept and close."""
PORT_MAX: Final = 256
PEERS_MAX: Final = 768
BACKLOG_MAX: Final = 1_024
FILES_MAX: Final = 1_048_576  # where there is no limit


class Shares(Struct, frozen=True):
    """The number of connections that each port may have.

    refused: connections of the SQS port beyond ``http``, which get a refusal; backlog: of the SQS port. All
    connections in the backlog may be accepted at once, before any is closed.
    """

    http: int
    refused: int
    admin: int
    peers: int
    backlog: int


def raise_file_limit() -> int:
    """Raise the limit of open files as far as the system allows, and return it. The default is often 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    except (OSError, ValueError):  # the kernel's own limit is lower than that of the process
        pass
    return FILES_MAX if soft == resource.RLIM_INFINITY else soft


def shares(files: int, http_max: int) -> Shares:
    """Return the division of ``files`` open files. http_max: the connections that the settings allow the SQS port."""
    kept = min(KEPT_MAX, files // 3)
    left = files - kept
    admin = refused = min(PORT_MAX, left // 8)
    peers = min(PEERS_MAX, left // 8)
    return Shares(
        http=min(http_max, left - admin - refused - peers),
        refused=refused,
        admin=admin,
        peers=peers,
        backlog=max(1, min(BACKLOG_MAX, kept // 2)),
    )
