"""Background work in bounded steps: what expired, was purged or belonged to a deleted queue goes.

The master's tick asks for the next step and proposes what it gets, so that the
work is replicated and goes on after a failover: the rows themselves say what
is left to do.
"""

from elasticq.engine import mutations as m
from elasticq.engine.ordering.standard import Counts
from elasticq.engine.state import Queue, State
from elasticq.model.limits import MUTATION_ROWS_MAX, SIXTY_SECOND_RULE_MS

QUEUES_A_STEP = 200
COUNTED_MAX = 50_000
TRIMMED_MAX = 20_000  # sequences without a row that one look passes over


def removable(queue: Queue, now_ms: int, limit: int = MUTATION_ROWS_MAX) -> list[int]:
    """Sequences of rows that nobody may see again, oldest first, at most ``limit``."""
    rows, issued = queue.rows, queue.issued
    _trim(queue)
    gone_before_ms = queue.expired_before_ms(now_ms)
    found: list[int] = []
    for passed, sequence in enumerate(issued):
        row = rows.get(sequence)
        if row is None:
            if passed > TRIMMED_MAX:
                break
        elif queue.deleted_ms is not None or sequence < queue.watermark or row.content.sent_ms <= gone_before_ms:
            found.append(sequence)
            if len(found) == limit:
                break
        else:
            break  # sent times grow with sequences: nothing behind it has expired
    return found


def _trim(queue: Queue) -> None:
    """Forget leading sequences that have no row any more."""
    for _ in range(TRIMMED_MAX):
        first = queue.issued.first()
        if first is None or first in queue.rows:
            return
        queue.issued.discard(first)


def expired_counts(queue: Queue, now_ms: int) -> Counts:
    """How many of the queue's counted messages have expired; a longer backlog than COUNTED_MAX is swept soon."""
    counts = Counts(visible=0, in_flight=0, delayed=0)
    for sequence in removable(queue, now_ms, COUNTED_MAX):
        if sequence < queue.watermark:
            continue
        if queue.order.is_in_flight(sequence, now_ms):
            counts.in_flight += 1
        elif queue.order.is_delayed(sequence, now_ms):
            counts.delayed += 1
        else:
            counts.visible += 1
    return counts


class Sweeper:
    """Goes round all queues, QUEUES_A_STEP at a time, deleted ones first."""

    __slots__ = ("_due",)

    def __init__(self) -> None:
        self._due: list[int] = []

    def step(self, state: State, now_ms: int) -> tuple[list[m.Mutation], bool]:
        """The next step's mutations, and whether more is waiting already."""
        found: list[m.Mutation] = []
        rows = 0
        for queue in list(state.doomed.values())[:QUEUES_A_STEP]:
            sequences = removable(queue, now_ms, MUTATION_ROWS_MAX - rows)
            rows += len(sequences)
            if sequences:
                found.append(m.MessagesRemoved(queue.id, sequences))
            elif not queue.rows and queue.deleted_ms is not None and now_ms >= queue.deleted_ms + SIXTY_SECOND_RULE_MS:
                found.append(m.QueueReclaimed(queue.id))
            if rows >= MUTATION_ROWS_MAX:
                return found, True
        if not self._due:
            self._due = list(state.queues)
        for _ in range(min(QUEUES_A_STEP, len(self._due))):
            due = state.queues.get(self._due.pop())
            sequences = removable(due, now_ms, MUTATION_ROWS_MAX - rows) if due is not None else []
            rows += len(sequences)
            if due is not None and sequences:
                found.append(m.MessagesRemoved(due.id, sequences))
                if rows >= MUTATION_ROWS_MAX:
                    self._due.append(due.id)
                    return found, True
        return found, False
