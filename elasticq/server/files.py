"""Shares the process's limit of open files between its ports, so that the storage always has some.

A log that cannot open its next file ends the process, so sockets never take all: some files are kept for the storage
and for connections to other members, the rest is shared out.
"""

import resource
from typing import Final

from msgspec import Struct

KEPT_MAX: Final = 256
"""Files of the storage, connections to other members, snapshots, and connections between accept and close."""
PORT_MAX: Final = 256
PEERS_MAX: Final = 768
BACKLOG_MAX: Final = 1_024
FILES_MAX: Final = 1_048_576  # where there is no limit


class Shares(Struct, frozen=True):
    """How many connections each port may have. refused: those of the SQS port beyond ``http``, which get a refusal.

    backlog: of the SQS port; those who wait there may be accepted all at once, before any is closed.
    """

    http: int
    refused: int
    admin: int
    peers: int
    backlog: int


def raise_file_limit() -> int:
    """Allow as many open files as the system lets, and return how many: many systems begin with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    except (OSError, ValueError):  # the kernel's own limit is lower than the one of the process
        pass
    return FILES_MAX if soft == resource.RLIM_INFINITY else soft


def shares(files: int, http_max: int) -> Shares:
    """Share out ``files`` open files; ``http_max``: what the settings allow the SQS port."""
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
