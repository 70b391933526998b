"""Calls between members: those that this member passed on, and those that it executes for other members."""

from collections.abc import Callable

from msgspec import Struct

from elasticq.engine.stored.call_history import member_guid
from elasticq.model.ranges import PEERS_MAX
from elasticq.node.forwarding import Numbers
from elasticq.node.outputs import HeldCall, Ticket
from elasticq.node.waits.waiting_calls import ANSWER_MS

FAREWELL_MS = 1_000  # how long a former master may take to report which calls it did not execute


class Remote(Struct, frozen=True, gc=False):
    """The ticket of a call that another member accepted from its client and passed on."""

    sender: str
    incarnation: str
    number: int


class Sent(Struct, gc=False):
    """A call that this member passed on, and whose answer it awaits.

    to: the member that got the call.
    until_ms: the time on the boot clock at which this member stops waiting for the answer.
    term: the term in which ``to`` was master, as far as this member knew.
    was_uncertain: the call may have had its effect before it was passed on.
    is_ending: this member has asked ``to`` to end the call's wait for messages.
    """

    held: HeldCall
    to: str
    until_ms: int
    term: int = 0
    was_uncertain: bool = False
    is_ending: bool = False


def _any(sent: Sent) -> bool:
    return True


class PendingCalls:
    """The unanswered calls of this process, and the numbers of the calls that other members passed on.

    ``sent`` holds the calls that were passed on and are not answered yet, by number.
    """

    def __init__(self, incarnation: str) -> None:
        self.incarnation = incarnation
        self.sent: dict[int, Sent] = {}
        self.expires_at_ms: int | None = None  # no call of ``sent`` expires before this time
        self._numbers: dict[Ticket, int] = {}
        self._number = 0
        self._guids = 0
        self._answers = Numbers(incarnation)
        self._taken: dict[str, Numbers] = {}

    # --- calls of own clients, passed on to the master ----------------------------

    def send(self, held: HeldCall, to: str, now_ms: int, term: int = 0, wait_ms: int = 0) -> int:
        """Register a call that is passed on to ``to``, the master of ``term``. Return the call's number.

        wait_ms: how long the call itself may wait there.
        """
        self.next_number()
        until_ms = min(now_ms + wait_ms + ANSWER_MS, max(held.until_ms, now_ms))
        if self.expires_at_ms is None or until_ms < self.expires_at_ms:
            self.expires_at_ms = until_ms
        self.sent[self._number] = Sent(held, to, until_ms, term, held.is_uncertain)
        self._numbers[held.ticket] = self._number
        return self._number

    def new_guid(self) -> bytes:
        """Return a new invocation id for a call that has none."""
        self._guids += 1
        return member_guid(self._guids, self.incarnation)

    def next_number(self) -> int:
        """Return the next message number. The receiver executes each number at most once."""
        self._number += 1
        return self._number

    def was_used(self, number: int) -> bool:
        """Return whether this process has sent a message with this number."""
        return 0 < number <= self._number

    def arrived(self, number: int) -> Sent | None:
        """Remove and return the call with this number. Return None if this process does not wait for its answer."""
        sent = self.sent.pop(number, None)
        if sent is not None:
            self._numbers.pop(sent.held.ticket, None)
        return sent

    def is_first(self, number: int) -> bool:
        """Return whether this is the first answer with this number.

        The network may duplicate an answer. Messages of a duplicate must not be returned to their queue.
        """
        return self._answers.take(number)

    def cancelled(self, ticket: Ticket) -> tuple[int, str] | None:
        """Remove the call of a client that disconnected.

        Return (number, member that has the call), or None if the call was not passed on.
        """
        number = self._numbers.get(ticket)
        sent = self.arrived(number) if number is not None else None
        return None if sent is None or number is None else (number, sent.to)

    def lost_with(self, is_lost: Callable[[str], bool], is_taken: Callable[[Sent], bool] = _any) -> list[Sent]:
        """Remove and return the calls at members for which ``is_lost`` is true.

        Only calls for which ``is_taken`` returns true are removed.
        """
        lost = [number for number, sent in self.sent.items() if is_lost(sent.to) and is_taken(sent)]
        return [sent for number in lost if (sent := self.arrived(number)) is not None]

    def asked_of(self, ticket: Ticket) -> tuple[int, Sent] | None:
        """Return the number of the call with this ticket, and the call; None if it was not passed on.

        The call stays registered.
        """
        number = self._numbers.get(ticket)
        sent = self.sent.get(number) if number is not None else None
        return None if sent is None or number is None else (number, sent)

    def hasten(self, is_late: Callable[[str], bool], until_ms: int) -> None:
        """Stop waiting at ``until_ms`` for the answers of members for which ``is_late`` is true.

        Those are former masters. They report soon which calls they did not execute, or they never answer.
        """
        for sent in self.sent.values():
            if is_late(sent.to) and until_ms < sent.until_ms:
                sent.until_ms = until_ms
                self.expires_at_ms = min(until_ms, self.expires_at_ms or until_ms)

    def expired(self, now_ms: int) -> list[Sent]:
        if self.expires_at_ms is None or now_ms < self.expires_at_ms:
            return []
        over = [sent for number, sent in list(self.sent.items()) if sent.until_ms <= now_ms and self.arrived(number)]
        self.expires_at_ms = min((sent.until_ms for sent in self.sent.values()), default=None)
        return over

    # --- calls of other members, executed here ------------------------------------

    def take(self, remote: Remote) -> bool:
        """Return whether the call of another member is new and must be executed. Return False for a duplicate."""
        numbers = self._taken.get(remote.sender)
        if numbers is None or numbers.incarnation != remote.incarnation:
            self._taken.pop(remote.sender, None)
            while len(self._taken) >= PEERS_MAX:
                del self._taken[next(iter(self._taken))]
            numbers = self._taken[remote.sender] = Numbers(remote.incarnation)
        return numbers.take(remote.number)
