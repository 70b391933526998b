"""Background work in bounded steps: the removal of what expired, and the release of memory after purges.

The master's tick calls the next step and proposes its mutations. So the removals are replicated. After a failover the
new master continues, because the rows show what is left to do. Purged messages are gone at once, because they are below
the watermark; each member releases its own memory of them.
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
COUNTED_MAX = 20_000
TRIMMED_MAX = 10_000  # sequences without a message that one call skips
RECLAIMED_A_STEP = 5_000
LOOKED_AT_A_STEP = 5_000


def removable(queue: Queue, now_ms: int, limit: int = MUTATION_ROWS_MAX) -> list[int]:
    """Return the sequences of up to ``limit`` expired messages from the front of the queue, oldest first.

    No unexpired message is between them, so one RangeRemoved can remove them.
    """
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
            break  # send times grow with sequences, so no message after it has expired
    return found


def overdue(queue: Queue, now_ms: int, limit: int = MUTATION_ROWS_MAX) -> list[int]:
    """Remove up to ``limit`` expired dead letters from the heap ``late``; return those whose messages still exist.

    Their age counts from the first send, not from the move, so they may be behind unexpired messages.
    """
    gone_before_ms = queue.expired_before_ms(now_ms)
    late = queue.messages.late
    found: list[int] = []
    while late and late[0][0] <= gone_before_ms and len(found) < limit:
        sequence = heappop(late)[1]
        if queue.row(sequence) is not None:
            found.append(sequence)
    return found


def delivered(queue: Queue, now_ms: int, limit: int = MUTATION_ROWS_MAX) -> list[int]:
    """Return up to ``limit`` messages of a queue with a schedule that exceeded the retention period.

    It counts from the time at which a message became receivable: the first receive, before that the scheduled time.
    Each call looks at the next LOOKED_AT_A_STEP messages of the queue, in a cycle.
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
    """Return the messages that ``removable`` and ``overdue`` would find, up to COUNTED_MAX from each."""
    expired = removable(queue, now_ms, COUNTED_MAX)
    gone_before_ms = queue.expired_before_ms(now_ms)
    late = queue.messages.late
    if late and late[0][0] <= gone_before_ms:
        known = frozenset(expired)
        passed = [sequence for sent_ms, sequence in late[:COUNTED_MAX] if sent_ms <= gone_before_ms]
        expired += [each for each in passed if each not in known and queue.row(each) is not None]
    return expired


def _trim(queue: Queue) -> None:
    """Remove leading sequences without a message from ``issued``, up to TRIMMED_MAX."""
    for _ in range(TRIMMED_MAX):
        first = queue.issued.first()
        if first is None or queue.row(first) is not None:
            return
        queue.issued.discard(first)


def reclaim(state: State, committed_index: int) -> bool:
    """Release some memory of messages purged at ``committed_index`` or before; return whether more is left.

    A later purge may still be rolled back, so its messages stay.
    """
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
    """Return how many of the visible, in-flight and delayed messages have expired.

    It counts up to COUNTED_MAX; the sweeper soon removes a longer backlog.
    """
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
    """A cyclic sweep over deleted queues, all queues, metadata and leases.

    tally: the counters to which the expired messages are added.
    """

    def __init__(self, tally: Tally | None = None) -> None:
        self._tally = Tally() if tally is None else tally
        self._due: list[int] = []
        self._due_leases: list[Key] = []
        self._forgetter = Forgetter()

    def step(self, state: State, now_ms: int) -> tuple[list[m.Mutation], bool]:
        """Return the mutations of the next step, and whether more work is already due."""
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
        ended, is_more = self._sweep_leases(state, now_ms)
        return found + ended, is_more or has_more_deleted

    def _sweep_leases(self, state: State, now_ms: int) -> tuple[list[m.Mutation], bool]:
        """Return the mutations that end expired leases and forget old ones, and whether more leases are to forget.

        A lease is kept for LEASE_KEPT_MS after its end. If there are more leases than half of LEASES_MAX, those that
        ended first are kept for LEASE_KEPT_MIN_MS only.
        """
        leases = state.leases
        if not self._due_leases:
            self._due_leases = list(leases.living)
        found: list[m.Mutation] = []
        for _ in range(min(LEASES_A_STEP, len(self._due_leases))):
            key = self._due_leases.pop()
            lease = leases.living.get(key)
            if lease is not None and not lease.lives(state.grace, now_ms):
                found.append(lease.as_set(key, ended_ms=now_ms, state=m.LEASE_EXPIRED))
        ended_max = max(LEASES_MAX // 2 - len(leases.living), 0)
        surplus = len(leases.ended) - ended_max
        old = 0
        for key, lease in islice(leases.ended.items(), LEASES_A_STEP):
            kept_ms = LEASE_KEPT_MIN_MS if old < surplus else LEASE_KEPT_MS
            if now_ms < lease.ended_ms + kept_ms:
                break
            old += 1
            found.append(m.LeaseForgotten(*key))
        return found, old == LEASES_A_STEP
