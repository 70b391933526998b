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
from elasticq.node.orders import OrderOutcome
from elasticq.replication.records import Entry, Record, Voter

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
    outcome: Result | SqsError | OrderOutcome
    index: int


class Committed(Struct, gc=False):
    """A committed entry, decoded, for the rows on disk; each index once and in order.

    voters: who they are from this entry on, None: as before. The rows keep the newest (``Base.voters``).
    """

    index: int
    term: int
    time_ms: int
    mutations: list[Mutation]
    voters: tuple[Voter, ...] | None = None


class Fetch(Struct, gc=False):
    """Contents of ``sequences`` of a queue are wanted from the rows; ``Node.fetched`` takes the answer.

    ``ticket`` tells fetches apart and comes back with the answer.
    """

    ticket: int
    queue_id: int
    sequences: list[int]


class Wanted(Struct, frozen=True):
    """This member is too far behind for entries: it wants a snapshot at ``index`` or above.

    source: the member that offered one, the first to be asked. When the shell has one whole, it
    installs it in its storage and goes on with a new Node over what that holds.
    """

    source: str
    index: int


class Failure(Struct):
    """Judging one command raised what no handler may: its caller was told InternalFailure, and nothing was changed.

    action: the command's; cause: for the log.
    """

    action: str
    cause: Exception


class Effects(Struct):
    """Filled by the node, drained by its shell.

    failures: to be told to whoever looks after the member; it goes on.

    wanted: a snapshot to be fetched; stays until the node is replaced by one over the snapshot.
    discarded: dropped entries that clients had been told are stored (modes async, one): for a file.

    token: covers every record handed out so far; the shell calls
    ``node.synced(token)`` when they are durable.
    """

    records: list[Record] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    fetches: list[Fetch] = field(default_factory=list)
    discarded: list[Entry] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    wanted: Wanted | None = None
    log_floor: int = 0
    token: int = 0
    wake_at_ms: int | None = None
