"""The number of messages of the next batch, by backlog, limits, rate, minimum and the target of availableNow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from elasticq.spark.offsets import Part
from elasticq.spark.options import Read
from elasticq.spark.queues import Backlog

MESSAGES_A_TASK: Final = 5_000  # a task costs the JVM about as much CPU as 1,000 messages do the worker
RATE_SAVED_S: Final = 60  # after a longer idle time, a batch still gets the messages of a minute only


class Admission:
    """The admission of messages to the batches of one run of a query. On AWS the counts are approximate."""

    def __init__(self, options: Read, now_s: Callable[[], float]) -> None:
        self._options = options
        self._now_s = now_s
        self._waiting_since_s: float | None = None
        self._admitted_at_s: float | None = None
        self._target: int | None = None  # messages that availableNow still has to read
        self._planned = 0  # messages planned for the last batch
        self._total_before = 0

    def until(self, backlogs: Sequence[Backlog]) -> None:
        """Set the target of Trigger.AvailableNow to the number of messages that are visible now."""
        self._target = sum(backlog.visible for backlog in backlogs)

    def amount(self, backlogs: Sequence[Backlog], limit: int | None, is_fifo: bool) -> int:
        """Return how many messages the next batch may have, or 0 if it must wait or there are no more.

        limit: Spark's limit; None or 0: none. is_fifo: whether any of the queues is a FIFO queue.
        """
        readable = sum(backlog.readable for backlog in backlogs)
        if self._target is not None:
            self._target -= self._progress(backlogs, is_fifo)
            return min(readable, self._target, limit or readable)
        if not readable:
            self._waiting_since_s = None
            return 0
        if self._waits_for_more(readable):
            return 0
        return min(readable, self._by_rate(), limit or readable)

    def admitted(self, messages: int, backlogs: Sequence[Backlog]) -> None:
        """Record that a batch of ``messages`` messages is planned."""
        self._waiting_since_s = None
        self._admitted_at_s = self._now_s()
        self._planned = messages
        self._total_before = sum(backlog.total for backlog in backlogs)

    def _progress(self, backlogs: Sequence[Backlog], is_fifo: bool) -> int:
        """Return how many messages the last batch read, as far as that is known.

        For standard queues it is the planned number. In FIFO queues, locked groups may have given fewer messages. There
        it is the number that left the queues, and at least one, so the query ends.
        """
        planned, self._planned = self._planned, 0
        if not is_fifo or not planned:
            return planned
        left = self._total_before - sum(backlog.total for backlog in backlogs)
        return min(planned, max(1, left))

    def _waits_for_more(self, readable: int) -> bool:
        if readable >= self._options.min_messages_per_trigger:
            return False
        if self._waiting_since_s is None:
            self._waiting_since_s = self._now_s()
        return self._now_s() - self._waiting_since_s < self._options.max_trigger_delay

    def _by_rate(self) -> int:
        rate = self._options.max_rate_per_second
        if not rate:
            return 2**63
        passed_s = 1.0 if self._admitted_at_s is None else self._now_s() - self._admitted_at_s
        return int(rate * min(passed_s, RATE_SAVED_S))


@dataclass(frozen=True, slots=True)
class Tasks:
    """The number of tasks of a batch.

    count: for all queues together. of_fifo: for a FIFO queue. A task locks the groups that it reads, so the other tasks
    of the queue find little.
    """

    count: int
    of_fifo: int


def tasks_of(options: Read, messages: int) -> Tasks:
    """Return the tasks for so many messages: ``partitions``, or at least ``minPartitions`` and more by the backlog."""
    if options.partitions:
        return Tasks(options.partitions, options.partitions)
    by_backlog = -(-messages // MESSAGES_A_TASK)
    return Tasks(max(options.min_partitions, by_backlog), options.min_partitions)


def divided(
    backlogs: Sequence[tuple[str, Backlog]], messages: int, wanted: Tasks, share_messages_max: int
) -> tuple[Part, ...]:
    """Divide a batch among its queues, in proportion to their backlogs. Each queue with a backlog gets a task.

    share_messages_max: the largest number of messages for a task.
    """
    waiting = [(url, backlog.readable) for url, backlog in backlogs if backlog.readable]
    readable = sum(count for _, count in waiting)
    parts: list[Part] = []
    for url, count in waiting:
        taken = max(1, messages * count // readable)
        by_queue = wanted.of_fifo if url.endswith(".fifo") else round(wanted.count * count / readable)
        tasks = max(1, by_queue, -(-taken // share_messages_max))
        parts.append(Part(url, min(tasks, taken), taken))
    return tuple(parts)
