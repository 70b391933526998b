"""What a Node gives out, each a line of one of the lists of its Effects (effects.py), and the calls that it keeps."""

from collections.abc import Hashable

from msgspec import Struct

from elasticq.engine.stored.mutations import Mutation
from elasticq.model.commands import Call
from elasticq.model.errors import SqsError
from elasticq.model.results import Result
from elasticq.node.orders import OrderOutcome
from elasticq.replication.records import Voter

Ticket = Hashable
"""A value that the shell gives to ``submit``; it comes back in the one Reply to that call."""


class HeldCall(Struct, gc=False):
    """A call that waits here or was passed on; its client is answered by ``until_ms`` (boot clock) at the latest.

    is_uncertain: it may have had its effect.
    masters_lost: how many masters were lost, or gave no answer in time, while they had it to execute.
    """

    call: Call
    ticket: Ticket
    until_ms: int
    is_uncertain: bool = False
    masters_lost: int = 0


class Frame(Struct, gc=False):
    """Bytes for the member ``to``, which may leave once the records up to ``token`` are synced (0: at once)."""

    to: str
    data: bytes
    token: int


class Reply(Struct, gc=False):
    """An answer that may leave now; ``index`` is the log index that it rests on (for checkers)."""

    ticket: Ticket
    outcome: Result | SqsError | OrderOutcome
    index: int


class Committed(Struct, gc=False):
    """A committed entry, decoded, for the rows on disk; each index comes once and in order.

    voters: the voters from this entry on, None if they stay. The rows keep the newest (``Base.voters``).
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

    source: the member that offered one, the first to be asked. When the shell has all of it, it
    installs it in its storage and goes on with a new Node over what that holds.
    """

    source: str
    index: int


class News(Struct, frozen=True):
    """Something that the operator's log tells once.

    event: a word by which lines are found; text: a whole sentence; is_warning: somebody should look at it.
    """

    event: str
    text: str
    is_warning: bool = False


class Failure(Struct):
    """A command or its answer raised an unexpected exception: its caller got InternalFailure, and nothing was changed.

    action: the class of the command or answer; cause: the exception, for the log of the process.
    """

    action: str
    cause: Exception
