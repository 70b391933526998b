"""The simulated clients that manage messages of others: move tasks, priorities, delivery times and cluster time."""

from __future__ import annotations

from typing import Final

from elasticq.checks.history import Advance, ChangePriority, Delete, Send, StartMove
from elasticq.engine.ordering.priority import PRIORITY
from elasticq.model.commands import (
    CancelMessageMoveTask,
    MessageAttributes,
    MessageAttributeValue,
    StartMessageMoveTask,
)
from elasticq.model.extensions import AdvanceClock, ElasticqCancelScheduled, ElasticqChangePriority, ElasticqReschedule
from elasticq.model.results import MoveTaskStartedResult, PrioritiesChangedResult, Result
from elasticq.sim.client import Client, Periodic
from elasticq.sim.process import TRUE_EPOCH_MS
from elasticq.sim.queues import LoadQueue, arn

RATES: Final = (None, None, 5, 50)
CANCEL_MOVE_SHARE: Final = 0.2
PRIORITIES: Final = (None, None, -(1 << 63), -1, 2, 9, (1 << 63) - 1)
"""The priorities of messages. None: the message has no priority attribute and gets the queue's default."""
IDS_MAX: Final = 5
AHEAD_MS: Final = (-500, 6_000)
CANCEL_SHARE: Final = 0.4


class Redriver(Periodic):
    """A client that starts message move tasks of dead-letter queues, and cancels some."""

    pause_us = 2_000_000, 6_000_000

    def act(self) -> None:
        queue = self.random.choice([queue for queue in self.workload.queues if queue.source])
        destination = self.random.choice(("", queue.source))
        event = StartMove(client=self.name, queue=queue.name, invoke_us=self.scheduler.now_us, destination=destination)
        command = StartMessageMoveTask(
            source_arn=arn(queue.name),
            destination_arn=arn(destination) if destination else None,
            max_number_of_messages_per_second=self.random.choice(RATES),
        )
        self.begin(command, event, self._moved)

    def _moved(self, result: Result | None) -> None:
        if isinstance(result, MoveTaskStartedResult) and self.random.random() < CANCEL_MOVE_SHARE:
            self.begin(CancelMessageMoveTask(task_handle=result.task_handle), None, lambda _: self.start())
        else:
            self.start()


class Prioritiser(Periodic):
    """A client that changes priorities of messages, also of deleted and moved ones."""

    pause_us = 300_000, 3_000_000

    def act(self) -> None:
        queue = self.random.choice([queue for queue in self.workload.queues if queue.has_priorities])
        sends = [event for event in self.workload.history if isinstance(event, Send) and event.queue == queue.name]
        known = [each for send in sends[-20:] for sent in send.messages for each in sent.message_ids]
        if not known:
            self.start()
            return
        ids = self.random.sample(known, min(len(known), self.random.randint(1, IDS_MAX)))
        priority = self.random.choice([each for each in PRIORITIES if each is not None])
        now_us = self.scheduler.now_us
        event = ChangePriority(client=self.name, queue=queue.name, invoke_us=now_us, message_ids=ids, priority=priority)

        def done(result: Result | None) -> None:
            if isinstance(result, PrioritiesChangedResult):
                event.changed = result.changed
            self.start()

        self.begin(ElasticqChangePriority(queue.url, ids, priority), event, done)


def named(priority: int | None) -> MessageAttributes | None:
    """Return the message attributes for a priority, None for the queue's default."""
    return None if priority is None else {PRIORITY: MessageAttributeValue("Number", str(priority))}


class Dispatcher(Periodic):
    """A client that reschedules or cancels one scheduled message at a time.

    Somebody may have received, cancelled or deleted that message before.
    """

    pause_us = 100_000, 1_500_000

    def act(self) -> None:
        sends = [event for event in self.workload.history if isinstance(event, Send) and event.is_scheduled]
        known = [(send.queue, sent) for send in sends[-10:] for sent in send.messages if sent.message_ids]
        if not known:
            self.start()
            return
        name, sent = self.random.choice(known)
        queue = next(queue for queue in self.workload.queues if queue.name == name)
        if self.random.random() < CANCEL_SHARE:
            self._cancel(queue, sent.message_ids[0], sent.body)
        else:
            time_ms = TRUE_EPOCH_MS + self.scheduler.now_us // 1_000 + self.random.randint(*AHEAD_MS)
            command = ElasticqReschedule(queue.url, [sent.message_ids[0]], max(time_ms, 0))
            self.begin(command, None, lambda result: self.start())

    def _cancel(self, queue: LoadQueue, message_id: str, body: str) -> None:
        """Cancel a message; the history records it as a delete.

        If the message is not found, the outcome is unknown: an earlier attempt may have cancelled it.
        """
        now_us = self.scheduler.now_us
        event = Delete(client=self.name, queue=queue.name, invoke_us=now_us, message_id=message_id, receipt_handle="")
        self.workload.deleting(body)

        def done(result: Result | None) -> None:
            if not isinstance(result, PrioritiesChangedResult) or not result.changed:
                event.outcome = "unknown"
            self.start()

        self.begin(ElasticqCancelScheduled(queue.url, [message_id]), event, done)


class Timekeeper(Client):
    """The client that advances cluster time when a fault orders it. It retries like other clients."""

    def start(self) -> None:
        """Do nothing: faults call ``advance``."""

    def advance(self, advance_ms: int) -> bool:
        """Advance cluster time and return True. While an earlier advance is in progress, only return False."""
        if self.running is not None:
            return False
        event = Advance(client=self.name, queue="", invoke_us=self.scheduler.now_us, advance_ms=advance_ms)
        self.begin(AdvanceClock(advance_ms=advance_ms), event, lambda _: None)
        return True
