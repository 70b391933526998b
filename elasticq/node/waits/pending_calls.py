"""Tracks the calls between members: those that this member passed on, and those that it executes for others."""

from collections.abc import Callable

from msgspec import Struct

from elasticq.engine.stored.call_history import member_guid
from elasticq.model.commands import ReceiveMessage
from elasticq.model.limits import WAIT_S_MAX
from elasticq.model.ranges import PEERS_MAX
from elasticq.node.forwarding import Numbers
from elasticq.node.outputs import HeldCall, Ticket
from elasticq.node.waits.waiting_calls import ANSWER_MS

FAREWELL_MS = 1_000  # how long a former master may take to say which calls it did not execute


class Remote(Struct, frozen=True, gc=False):
    """The ticket of a call that another member accepted."""

    sender: str
    incarnation: str
    number: int


class Sent(Struct, gc=False):
    """A call that was passed on to ``to``, the master of ``term``, and is waited for until ``until_ms``.

    was_uncertain: it may have had its effect before; is_ending: its wait for messages was ended.
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
    """``sent`` holds the calls that were passed on and are not answered yet, by their numbers."""

    def __init__(self, incarnation: str) -> None:
        self.incarnation = incarnation
        self.sent: dict[int, Sent] = {}
        self.expires_at_ms: int | None = None  # no call of ``sent`` is given up before this
        self._numbers: dict[Ticket, int] = {}
        self._number = 0
        self._guids = 0
        self._answers = Numbers(incarnation)
        self._taken: dict[str, Numbers] = {}

    # --- the accepting member -----------------------------------------------------

    def send(self, held: HeldCall, to: str, now_ms: int, term: int = 0) -> int:
        """Register a call that is passed on to ``to``, the master of ``term``; returns its number."""
        self.next_number()
        wait_ms = WAIT_S_MAX * 1_000 if type(held.call.command) is ReceiveMessage else 0
        until_ms = min(now_ms + wait_ms + ANSWER_MS, max(held.until_ms, now_ms))
        if self.expires_at_ms is None or until_ms < self.expires_at_ms:
            self.expires_at_ms = until_ms
        self.sent[self._number] = Sent(held, to, until_ms, term, held.is_uncertain)
        self._numbers[held.ticket] = self._number
        return self._number

    def new_guid(self) -> bytes:
        """A GUID for a call without one."""
        self._guids += 1
        return member_guid(self._guids, self.incarnation)

    def next_number(self) -> int:
        """The next message number; the receiver executes each number once."""
        self._number += 1
        return self._number

    def was_used(self, number: int) -> bool:
        """True for the number of a message that was sent."""
        return 0 < number <= self._number

    def arrived(self, number: int) -> Sent | None:
        """Remove and return the call with this number, which is over; None if nobody waits for it any more."""
        sent = self.sent.pop(number, None)
        if sent is not None:
            self._numbers.pop(sent.held.ticket, None)
        return sent

    def is_first(self, number: int) -> bool:
        """True for the first answer with this number: the network may bring copies, and only one may be given back."""
        return self._answers.take(number)

    def cancelled(self, ticket: Ticket) -> tuple[int, str] | None:
        """Remove the call of a client that left; returns its (number, to), None if it is not under way."""
        number = self._numbers.get(ticket)
        sent = self.arrived(number) if number is not None else None
        return None if sent is None or number is None else (number, sent.to)

    def lost_with(self, is_lost: Callable[[str], bool], is_taken: Callable[[Sent], bool] = _any) -> list[Sent]:
        """Remove and return the calls that went to members whose answer is not waited for any more."""
        lost = [number for number, sent in self.sent.items() if is_lost(sent.to) and is_taken(sent)]
        return [sent for number in lost if (sent := self.arrived(number)) is not None]

    def asked_of(self, ticket: Ticket) -> tuple[int, Sent] | None:
        """The number of the call with this ticket, and the call, which stays under way; None if it is not."""
        number = self._numbers.get(ticket)
        sent = self.sent.get(number) if number is not None else None
        return None if sent is None or number is None else (number, sent)

    def hasten(self, is_late: Callable[[str], bool], until_ms: int) -> None:
        """Shorten to ``until_ms`` the wait for members that will say soon what became of their calls, or never."""
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

    # --- the master ---------------------------------------------------------------

    def take(self, remote: Remote) -> bool:
        """True if the call of another member is new and must be executed; False for a repetition."""
        numbers = self._taken.get(remote.sender)
        if numbers is None or numbers.incarnation != remote.incarnation:
            self._taken.pop(remote.sender, None)
            while len(self._taken) >= PEERS_MAX:
                del self._taken[next(iter(self._taken))]
            numbers = self._taken[remote.sender] = Numbers(remote.incarnation)
        return numbers.take(remote.number)
