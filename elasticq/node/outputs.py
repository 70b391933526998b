"""The outputs of a Node, which are items of the lists in Effects (effects.py), and the calls that it holds."""

from collections.abc import Hashable

from msgspec import Struct

from elasticq.engine.stored.mutations import Mutation
from elasticq.model.commands import Call
from elasticq.replication.records import Voter

Ticket = Hashable
"""A value that the shell passes to ``submit``. It comes back in the one Reply to that call."""


class HeldCall(Struct, gc=False):
    """A call that waits here or was passed on. Its client is answered by ``until_ms`` (boot clock) at the latest.

    is_uncertain: the call may have had its effect.
    masters_lost: how many masters were lost, or gave no answer in time, while they had the call.
    """

    call: Call
    ticket: Ticket
    until_ms: int
    is_uncertain: bool = False
    masters_lost: int = 0


class Frame(Struct, gc=False):
    """Bytes for the member ``to``. They may leave once the records up to ``token`` are synced (0: at once)."""

    to: str
    data: bytes
    token: int


class Committed(Struct, gc=False):
    """A committed entry, decoded, for the rows on disk. Each index comes once and in order.

    voters: the voters from this entry on; None if it does not change them. The rows keep the newest (``Base.voters``).
    """

    index: int
    term: int
    time_ms: int
    mutations: list[Mutation]
    voters: tuple[Voter, ...] | None = None


class Fetch(Struct, gc=False):
    """A request for the contents of ``sequences`` of a queue from the rows. ``Node.fetched`` takes the answer.

    ``ticket`` identifies the fetch and comes back with the answer.
    """

    ticket: int
    queue_id: int
    sequences: list[int]


class Wanted(Struct, frozen=True):
    """A request for a snapshot at ``index`` or above, because the log no longer holds the entries that this member
    needs.

    source: the member that offered a snapshot, and the first one to ask. When the shell has the complete snapshot, it
        installs it in its storage and continues with a new Node over it.
    """

    source: str
    index: int


class News(Struct, frozen=True):
    """One line for the operator's log.

    event: a fixed word to search for.
    text: a complete sentence.
    is_warning: an operator should look at it.
    """

    event: str
    text: str
    is_warning: bool = False


class Failure(Struct):
    """An unexpected exception of a command or its answer. The caller got InternalFailure, and nothing was changed.

    action: the class of the command or answer.
    cause: the exception, for the log of the process.
    """

    action: str
    cause: Exception
