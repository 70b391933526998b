"""Background work in bounded steps: what expired goes, the memory of what was purged is given back.

The master's tick asks for the next step and proposes what it gets, so that the
work is replicated and goes on after a failover: the messages themselves say what
is left to do. Purged messages are gone by their watermark; each member empties
its own memory of them.
"""

from heapq import heappop
from itertools import islice

from elasticq.engine import turns
from elasticq.engine.metadata import Forgetter
from elasticq.engine.ordering.contract import has_due_messages
from elasticq.engine.ordering.counts import Counts
from elasticq.engine.ordering.leases import Key
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.invocations import SWEPT
from elasticq.engine.tally import Tally
from elasticq.model.limits import (
    LEASE_KEPT_MIN_MS,
    LEASE_KEPT_MS,
    LEASES_MAX,
    MUTATION_ROWS_MAX,
    SIXTY_SECOND_RULE_MS,
)

QUEUES_A_STEP = 200
LEASES_A_STEP = 200
COUNTED_MAX = 50_000
TRIMMED_MAX = 20_000  # sequences without a message that one look passes over
RECLAIMED_A_STEP = 5_000
LOOKED_AT_A_STEP = 5_000


def removable(queue: Queue, now_ms: int, limit: int = MUTATION_ROWS_MAX) -> list[int]:
    """Sequences of messages that have expired, oldest first, at most ``limit``; nothing that lives lies between."""
    _trim(queue)
    gone_before_ms = queue.expired_before_ms(now_ms)
    found: list[int] = []
    for passed, sequence in enumerate(queue.issued):
        if queue.row(sequence) is None:
            if passed > TRIMMED_MAX:
                break
        elif queue.sent_by_ms(sequence) <= gone_before_ms:
            found.append(sequence)
            if len(found) == limit:
                break
        else:
            break  # sent times grow with sequences: nothing behind it has expired
    return found


def overdue(queue: Queue, now_ms: int, limit: int = MUTATION_ROWS_MAX) -> list[int]:
    """Dead letters that have expired, wherever they stand: they are as old as when they were sent, not moved."""
    gone_before_ms = queue.expired_before_ms(now_ms)
    late = queue.messages.late
    found: list[int] = []
    while late and late[0][0] <= gone_before_ms and len(found) < limit:
        sequence = heappop(late)[1]
        if queue.row(sequence) is not None:
            found.append(sequence)
    return found


def delivered(queue: Queue, now_ms: int, limit: int = MUTATION_ROWS_MAX) -> list[int]:
    """Messages of a queue with a schedule that could be received for longer than the retention period.

    Looks at a part of the queue, and at the next one the next time. The row says since when: until the first receive
    its deadline, from then on that receive.
    """
    gone_before_ms = now_ms - queue.retention_ms
    messages, found = queue.messages, list[int]()
    for passed, sequence in enumerate(queue.issued.between(messages.swept + 1, queue.last_sequence)):
        if passed == LOOKED_AT_A_STEP or len(found) == limit:
            return found
        messages.swept = sequence
        row = queue.row(sequence)
        if row is None:
            continue
        since_ms = row.visible_at_ms if not row.delivery_number else row.first_received_ms or row.visible_at_ms
        if (since_ms or queue.sent_by_ms(sequence)) <= gone_before_ms:
            found.append(sequence)
    messages.swept = 0
    return found


def _expired(queue: Queue, now_ms: int) -> list[int]:
    """The messages that ``removable`` and ``overdue`` would find, up to COUNTED_MAX each."""
    expired = removable(queue, now_ms, COUNTED_MAX)
    gone_before_ms = queue.expired_before_ms(now_ms)
    late = queue.messages.late
    if late and late[0][0] <= gone_before_ms:
        known = frozenset(expired)
        passed = [sequence for sent_ms, sequence in late[:COUNTED_MAX] if sent_ms <= gone_before_ms]
        expired += [each for each in passed if each not in known and queue.row(each) is not None]
    return expired


def _trim(queue: Queue) -> None:
    """Forget leading sequences that have no message any more."""
    for _ in range(TRIMMED_MAX):
        first = queue.issued.first()
        if first is None or queue.row(first) is not None:
            return
        queue.issued.discard(first)


def reclaim(state: State, committed_index: int) -> bool:
    """Give back some memory of what was purged at ``committed_index`` or before; True if there is more."""
    trash = state.trash
    for _ in range(RECLAIMED_A_STEP):
        if not trash or trash[0][0] > committed_index:
            return False
        messages = trash[0][1]
        if messages.contents:
            messages.contents.popitem()
        elif messages.rows:
            messages.rows.popitem()
        else:
            trash.popleft()
    return True


def expired_counts(queue: Queue, now_ms: int) -> Counts:
    """How many of the queue's counted messages have expired; a longer backlog than COUNTED_MAX is swept soon."""
    counts = Counts(visible=0, in_flight=0, delayed=0)
    for sequence in _expired(queue, now_ms):
        if queue.order.is_in_flight(sequence, now_ms):
            counts.in_flight += 1
        elif queue.order.is_delayed(sequence, now_ms):
            counts.delayed += 1
        else:
            counts.visible += 1
    return counts


class Sweeper:
    """Goes round all queues, QUEUES_A_STEP at a time, deleted ones first; then round the leases.

    tally: where the expired messages are counted.
    """

    __slots__ = ("_due", "_due_leases", "_forgetter", "_tally")

    def __init__(self, tally: Tally | None = None) -> None:
        self._tally = Tally() if tally is None else tally
        self._due: list[int] = []
        self._due_leases: list[Key] = []
        self._forgetter = Forgetter()

    def step(self, state: State, now_ms: int) -> tuple[list[m.Mutation], bool]:
        """The next step's mutations, and whether more is waiting already."""
        found: list[m.Mutation] = [
            mutation
            for queue in islice(state.deleted_queues.values(), QUEUES_A_STEP)
            if queue.deleted_ms is not None and now_ms >= queue.deleted_ms + SIXTY_SECOND_RULE_MS
            for mutation in (turns.forgotten(queue) or [m.QueueReclaimed(queue.id)])
        ]
        has_more_deleted = len(found) == QUEUES_A_STEP
        if state.invocations.is_any_over(now_ms) or state.sent_ids.is_any_over(now_ms):
            found.append(m.InvocationRecorded(SWEPT, now_ms, 0, 0))
        rows = 0
        if not self._due:
            self._due = list(state.queues)
            self._tally.forget(state)
        for _ in range(min(QUEUES_A_STEP, len(self._due))):
            due = state.queues.get(self._due.pop())
            if due is None:
                continue
            if has_due_messages(due.order, now_ms):
                due.order.advance(now_ms)
                if has_due_messages(due.order, now_ms):
                    self._due.append(due.id)
                    return found, True
            sequences = removable(due, now_ms, MUTATION_ROWS_MAX - rows)
            if sequences:
                found.append(m.RangeRemoved(due.id, sequences[0], sequences[-1]))
            late = overdue(due, now_ms, MUTATION_ROWS_MAX - rows - len(sequences)) if due.messages.late else []
            if late:
                found.append(m.MessagesRemoved(due.id, late))
            if due.is_scheduled and (
                old := delivered(due, now_ms, MUTATION_ROWS_MAX - rows - len(sequences) - len(late))
            ):
                late += old
                found.append(m.MessagesRemoved(due.id, old))
            gone = len(sequences) + len(late)
            if gone:
                self._tally.expire(due.id, gone)
            rows += gone
            if rows >= MUTATION_ROWS_MAX:
                self._due.append(due.id)
                return found, True
        if state.metadata:
            found += self._forgetter.step(state)
        ended, is_more = self._leases(state, now_ms)
        return found + ended, is_more or has_more_deleted

    def _leases(self, state: State, now_ms: int) -> tuple[list[m.Mutation], bool]:
        """The end of some whose time is up is written down, some that ended long ago are forgotten."""
        leases = state.leases
        if not self._due_leases:
            self._due_leases = list(leases.living)
        found: list[m.Mutation] = []
        for _ in range(min(LEASES_A_STEP, len(self._due_leases))):
            key = self._due_leases.pop()
            lease = leases.living.get(key)
            if lease is not None and not lease.lives(state.grace, now_ms):
                found.append(lease.as_set(key, ended_ms=now_ms, state=m.LEASE_EXPIRED))
        room = max(LEASES_MAX // 2 - len(leases.living), 0)
        crowd = len(leases.ended) - room
        old = 0
        for key, lease in islice(leases.ended.items(), LEASES_A_STEP):
            kept_ms = LEASE_KEPT_MIN_MS if old < crowd else LEASE_KEPT_MS
            if now_ms < lease.ended_ms + kept_ms:
                break
            old += 1
            found.append(m.LeaseForgotten(*key))
        return found, old == LEASES_A_STEP
