"""The comparisons of all members' rows, which the master runs one at a time and in parts.

Between two parts, each member serves calls.
"""

from typing import Final

from elasticq.engine.stored.comparisons import RowsCompared
from elasticq.engine.views.digest import Position
from elasticq.node.journal import Journal
from elasticq.node.outputs import Ticket
from elasticq.node.parts import Parts

PART_MS: Final = 10  # pause between two parts, in which the member serves calls


class Comparison:
    """The comparison in progress, and the operators' orders that wait for the next one.

    The master proposes a part once the previous part is committed. The comparison for an order begins after the order
    arrived.
    """

    def __init__(self, parts: Parts, journal: Journal) -> None:
        self._replica = parts.replica
        self._voter_changes = parts.voter_changes
        self._safe_executor = parts.safe_executor
        self._journal = journal
        self._digests = parts.digests
        self._waiting: list[Ticket] = []
        self.number = 0  # of the comparison in progress; 0: none
        self._after: Position = []
        self.at_ms = 0  # when the next part of the comparison in progress is due

    def order(self, ticket: Ticket, now_ms: int) -> None:
        """Begin a comparison now, or after the one in progress."""
        self._waiting.append(ticket)
        if not self.number:
            self._begin(now_ms)

    def work(self, now_ms: int) -> None:
        """Propose the next part, if it is due."""
        if not self.number or now_ms < self.at_ms:
            return
        if self._replica.commit_index < self._replica.log.last_index:
            self.at_ms = now_ms + PART_MS
        else:
            self._propose(now_ms)

    def lost_mastership(self) -> None:
        """End the comparison, because the next master does not continue it. Refuse the orders that wait for one."""
        self.number = 0
        for ticket in self._waiting:
            self._voter_changes.refuse_lost(ticket)
        self._waiting.clear()

    def _begin(self, now_ms: int) -> None:
        self._journal.stamp_command(now_ms)
        if self._journal.is_open:
            self._journal.close(now_ms)
        self.number, self._after = self._replica.log.last_index + 1, []
        for ticket in self._waiting:
            self._voter_changes.promise(ticket, f"digest at {self.number}")
        self._waiting.clear()
        self._propose(now_ms)
        self._voter_changes.keep_promises()  # in a memory-only cluster of one the entry is committed already

    def _propose(self, now_ms: int) -> None:
        """Compute the digest of the next part, and propose an entry that makes all members compute theirs."""
        journal = self._journal
        time_ms = journal.stamp_command(now_ms)
        if journal.is_open:
            journal.close(now_ms)
        part = self._digests.part(self._after, time_ms)
        compared = RowsCompared(self.number, self._after, part.until)
        journal.append(self._safe_executor.own([compared]), now_ms, None)
        journal.close(now_ms)
        self._digests.note(compared, journal.applied_index, time_ms, part)
        self._after, self.at_ms = part.until, now_ms + PART_MS
        if not part.until:
            self.number = 0
            if self._waiting:
                self._begin(now_ms)
