"""What a Node wants done; its shell (runtime or simulator) does it and clears the lists.

Order for the shell after each call of the node: hand ``records`` to the
storage under ``token``; give ``committed`` to its rows and ask them for
``fetches``; send each frame once its token is synced; release the replies (they
are due now, the node itself held them by the reply rule); call ``tick`` at
``wake_at_ms``. Entries up to ``log_floor`` are needed by nobody any more.
"""

from collections.abc import Hashable

from msgspec import Struct, field

from elasticq.engine.mutations import Mutation
from elasticq.model.errors import SqsError
from elasticq.model.results import Result
from elasticq.replication.records import Record

Ticket = Hashable
"""Whatever the shell gave to ``submit``; comes back with the reply, once."""


class Frame(Struct, gc=False):
    """Bytes for the member ``to``; not before the records up to ``token`` are synced (0: at once)."""

    to: str
    data: bytes
    token: int


class Reply(Struct, gc=False):
    """An answer that is due: ``index`` is the log index that it rests on (for checkers)."""

    ticket: Ticket
    outcome: Result | SqsError
    index: int


class Committed(Struct, gc=False):
    """A committed entry, decoded, for the rows on disk; each index once and in order."""

    index: int
    term: int
    time_ms: int
    mutations: list[Mutation]


class Fetch(Struct, gc=False):
    """Contents of ``sequences`` of a queue are wanted from the rows; ``Node.fetched`` takes the answer.

    ``ticket`` tells fetches apart and comes back with the answer.
    """

    ticket: int
    queue_id: int
    sequences: list[int]


class Effects(Struct):
    """Filled by the node, drained by its shell.

    token: covers every record handed out so far; the shell calls
    ``node.synced(token)`` when they are durable.
    """

    records: list[Record] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    fetches: list[Fetch] = field(default_factory=list)
    log_floor: int = 0
    token: int = 0
    wake_at_ms: int | None = None
