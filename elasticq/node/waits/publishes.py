"""Publishes that wait at the master while it computes, in slices, which subscriptions they match."""

from collections import deque
from typing import Final

from elasticq.engine.matching import Matching
from elasticq.model.commands import Call
from elasticq.node.outputs import Ticket

WAITING_MAX: Final = 1_000
TOO_MANY: Final = "Too many publishes wait for the subscriptions that they match; try again later."
BEGUN_MAX: Final = 8  # publishes whose partial work is kept; matching a message of 1 MiB takes 40 MB of memory


class Matchings:
    """The waiting publishes.

    Up to BEGUN_MAX of them have begun, and these take turns. The others wait until one of these ends.
    """

    def __init__(self) -> None:
        self._begun: deque[tuple[Call, Ticket, Matching]] = deque()
        self._later: deque[tuple[Call, Ticket]] = deque()

    def __len__(self) -> int:
        return len(self._begun) + len(self._later)

    def add(self, call: Call, ticket: Ticket, matching: Matching) -> bool:
        """Let a call wait. Return False if too many calls wait.

        If BEGUN_MAX others have begun, the work that was done for this call is dropped.
        """
        if len(self._begun) < BEGUN_MAX:
            self._begun.append((call, ticket, matching))
        elif len(self._later) < WAITING_MAX:
            self._later.append((call, ticket))
        else:
            return False
        return True

    def go_on(self) -> tuple[Call, Ticket, Matching | None] | None:
        """Do one slice for the call whose turn it is.

        Remove and return a call that must be executed again, with its finished matching. The matching is None for a
        call that can begin now. Return None if no call is ready.
        """
        if self._later and len(self._begun) < BEGUN_MAX:
            return (*self._later.popleft(), None)
        first = self._begun.popleft()
        if first[2].go_on():
            return first
        self._begun.append(first)
        return None

    def cancel(self, ticket: Ticket) -> None:
        """Remove the call with this ticket, if it waits."""
        if not self:
            return
        self._begun = deque(each for each in self._begun if each[1] != ticket)
        self._later = deque(each for each in self._later if each[1] != ticket)

    def take_all(self) -> list[tuple[Call, Ticket]]:
        """Remove and return all calls."""
        found = [(call, ticket) for call, ticket, _ in self._begun] + list(self._later)
        self._begun.clear()
        self._later.clear()
        return found
