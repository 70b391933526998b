"""The reply rule: an answer leaves when every entry that it depends on is committed.

The modes async, one and all change the rule for sends to standard queues (docs/adr/0018).
"""

from collections import deque

from elasticq.model.commands import Call
from elasticq.model.errors import ServiceUnavailable, SqsError
from elasticq.model.results import Result
from elasticq.node.outputs import Ticket
from elasticq.node.reply import Reply
from elasticq.node.settings import Mode
from elasticq.replication.replica import Replica


class Pending:
    """A held answer.

    call: the call that it answers; None if no client waits for the answer any more.
    index: the newest log index that the answer depends on.
    by_lease: the answer depends on committed entries only. It waits for proof that this member is still the master.
    until_ms: the time on the boot clock at which a send of mode ``all`` is refused; 0 for other answers.
    """

    __slots__ = ("by_lease", "call", "index", "outcome", "ticket", "until_ms")

    def __init__(
        self,
        call: Call | None,
        ticket: Ticket | None,
        outcome: Result | SqsError,
        index: int,
        by_lease: bool,
        until_ms: int = 0,
    ) -> None:
        self.call = call
        self.ticket = ticket
        self.outcome = outcome
        self.index = index
        self.by_lease = by_lease
        self.until_ms = until_ms


class Replies:
    """The held answers of a master. Answers that may leave are added to ``due``."""

    def __init__(self, replica: Replica, due: list[Reply], mode: Mode, all_timeout_ms: int) -> None:
        self._replica = replica
        self._due = due
        self._mode = mode
        self._all_timeout_ms = all_timeout_ms
        self._pending: deque[Pending] = deque()
        self._sends: deque[Pending] = deque()  # sends in the modes one and all
        self.acked_before_commit = mode in ("async", "one")

    def __bool__(self) -> bool:
        return bool(self._pending or self._sends)

    def answer(
        self, call: Call | None, ticket: Ticket | None, outcome: Result | SqsError, index: int, now_ms: int
    ) -> None:
        """Let an answer leave now, or hold it. ``index`` is the newest log index that the answer depends on."""
        replica = self._replica
        by_lease = index <= replica.commit_index
        if by_lease and replica.lease_is_valid(now_ms):
            self._due.append(Reply(ticket, outcome, index))
            return
        if by_lease and not any(pending.by_lease for pending in self._pending):
            replica.ask_round(now_ms)
        self._pending.append(Pending(call, ticket, outcome, index, by_lease))

    def answer_send(
        self, call: Call | None, ticket: Ticket | None, outcome: Result | SqsError, index: int, now_ms: int
    ) -> None:
        """Answer a send that stored messages in a standard queue at ``index``, as soon as the mode allows it."""
        match self._mode:
            case "majority":
                self.answer(call, ticket, outcome, index, now_ms)
            case "async":
                self._due.append(Reply(ticket, outcome, index))
            case _:
                self._sends.append(Pending(call, ticket, outcome, index, False, now_ms + self._all_timeout_ms))

    def release(self, now_ms: int) -> None:
        pending = self._pending
        while pending and self.may_release(pending[0], now_ms):
            held = pending.popleft()
            self._due.append(Reply(held.ticket, held.outcome, held.index))
        if self._sends:
            self._release_sends(now_ms)

    def may_release(self, pending: Pending, now_ms: int) -> bool:
        """Return whether all entries that the answer depends on are committed.

        If the answer also needs proof of the mastership, the leader lease must be valid, too.
        """
        replica = self._replica
        return pending.index <= replica.commit_index and (not pending.by_lease or replica.lease_is_valid(now_ms))

    def _release_sends(self, now_ms: int) -> None:
        replica, sends = self._replica, self._sends
        is_for_all = self._mode == "all"
        stored = replica.tracker.durable_on(len(replica.others) if is_for_all else 1)
        index = min(stored, replica.commit_index) if is_for_all else max(stored, replica.commit_index)
        while sends and sends[0].index <= index:
            held = sends.popleft()
            self._due.append(Reply(held.ticket, held.outcome, held.index))
        while is_for_all and sends and sends[0].until_ms <= now_ms:
            late = ServiceUnavailable("ReplicationTimeout: not every member has it yet; a retry is safe.")
            self._due.append(Reply(sends.popleft().ticket, late, 0))

    @property
    def wake_at_ms(self) -> int | None:
        """Return the time on the boot clock at which the oldest send of mode ``all`` is refused; None without such a
        send."""
        return self._sends[0].until_ms if self._sends and self._mode == "all" else None

    def give_up(self) -> list[Pending]:
        """Remove and return all held answers, because the mastership is lost."""
        given_up = [*self._pending, *self._sends]
        self._pending.clear()
        self._sends.clear()
        return given_up
