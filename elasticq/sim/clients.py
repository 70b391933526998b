"""The simulated producers and consumers. They send real commands to the scenario's queues and record a history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice

from elasticq.checks.history import ChangeVisibility, Delete, HandedOut, Receive, Send, SentMessage
from elasticq.engine.ordering.schedule import DELIVER_AT
from elasticq.model.commands import (
    ChangeMessageVisibility,
    Command,
    DeleteMessage,
    MessageAttributeValue,
    ReceiveMessage,
    SendMessage,
    SendMessageBatch,
    SendMessageBatchEntry,
)
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.sim.adjusters import PRIORITIES, Dispatcher, Prioritiser, Redriver, named
from elasticq.sim.client import Client, Periodic
from elasticq.sim.cluster import Cluster
from elasticq.sim.process import TRUE_EPOCH_MS
from elasticq.sim.queues import QUEUE_VISIBILITY_S, LoadQueue
from elasticq.sim.reader import Reader, Shadow, handed_out
from elasticq.sim.workload import Workload

SCHEDULED_SHARE, SCHEDULED_AHEAD_MS = 0.3, (-500, 6_000)
PRODUCERS, CONSUMERS = 4, 3
THINK_US = (200_000, 2_000_000)
DRAIN_QUIET_US, DRAIN_PATIENCE_US = 2_500_000, 25_000_000
ALL_VISIBLE_AFTER_US = 12_000_000  # longer than the longest lease, visibility timeout or delay
GROUPS = ("red", "green", "blue")
DELETE_SHARE, FAILING_DELETE_SHARE = 0.8, 0.4  # share of messages deleted at once; smaller if there are dead letters
PASS_DEAD_SHARE = 0.7  # share of receives that skip a dead-letter queue, so its messages stay for move tasks
AGAIN_SHARE = 0.15  # share of messages to a FIFO queue that reuse an earlier deduplication id
SENT_KEPT = 12
REPEAT_SHARE = 0.3  # share of receives with a ReceiveRequestAttemptId that are repeated
SYSTEM_ATTRIBUTES = ["MessageGroupId", "SequenceNumber", "ApproximateReceiveCount", "DeadLetterQueueSourceArn"]


class Founder(Client):
    """The client that creates the queues, then calls ``then``."""

    def __init__(self, cluster: Cluster, workload: Workload, name: str, then: Callable[[], None]) -> None:
        super().__init__(cluster, workload, name)
        self.then = then

    def start(self) -> None:
        self._create(0)

    def _create(self, position: int) -> None:
        if position == len(self.workload.queues):
            self.then()
            return
        queue = self.workload.queues[position]
        event = queue.event(self.name, self.scheduler.now_us)
        self.begin(queue.command(), event, lambda result: self._create(position + (result is not None)))


class Producer(Periodic):
    """A producer of single messages and batches. Some have a delay, and some reuse a deduplication id."""

    pause_us = THINK_US

    def __init__(self, cluster: Cluster, workload: Workload, name: str) -> None:
        super().__init__(cluster, workload, name)
        self.recent: dict[str, list[SentMessage]] = {}
        self.deliver_at: dict[str, MessageAttributeValue] = {}

    def act(self) -> None:
        queue = self.random.choice(self.workload.sources)
        count = self.random.randint(2, 4) if self.random.random() < 0.2 else 1
        stem = f"{self.name}-{self.number + 1}"
        messages = [SentMessage(f"{stem}-{position}" + "." * self.random.randrange(200)) for position in range(count)]
        if queue.is_fifo:
            messages = self._in_groups(queue, messages)
        elif queue.is_shared:
            for message in messages:
                message.group = self.random.choice(GROUPS)
        if queue.has_priorities:
            for message in messages:
                message.priority = self.random.choice(PRIORITIES)
        self.workload.naming(queue, messages)
        self.deliver_at = self._time() if not queue.is_fifo and self.workload.has_schedules else {}
        event = Send(
            client=self.name,
            queue=queue.name,
            invoke_us=self.scheduler.now_us,
            messages=messages,
            is_scheduled=bool(self.deliver_at),
        )
        self.begin(self._command(queue, messages), event, lambda result: self.start())

    def _time(self) -> dict[str, MessageAttributeValue]:
        """Return the attribute with a delivery time of messages, for a share of sends; else an empty dict."""
        if self.random.random() >= SCHEDULED_SHARE:
            return {}
        time_ms = TRUE_EPOCH_MS + self.scheduler.now_us // 1_000 + self.random.randint(*SCHEDULED_AHEAD_MS)
        return {DELIVER_AT: MessageAttributeValue("Number", str(time_ms))}

    def _in_groups(self, queue: LoadQueue, fresh: list[SentMessage]) -> list[SentMessage]:
        recent = self.recent.setdefault(queue.name, [])
        messages = []
        for message in fresh:
            message.group = self.random.choice(GROUPS)
            message.deduplication_id = message.body if queue.is_content_based else f"id-{message.body[:40]}"
            if recent and self.random.random() < AGAIN_SHARE:
                message = self._again(queue, self.random.choice(recent), message)
            messages.append(message)
            recent.append(message)
        del recent[:-SENT_KEPT]
        return messages

    def _again(self, queue: LoadQueue, before: SentMessage, message: SentMessage) -> SentMessage:
        """Return a message with the deduplication id of ``before``, perhaps with another body.

        It may have another message group only if ids are deduplicated by queue.
        """
        group = before.group if queue.is_by_group else self.random.choice((before.group, message.group))
        keeps_body = queue.is_content_based or self.random.random() < 0.7
        return SentMessage(
            before.body if keeps_body else message.body, group=group, deduplication_id=before.deduplication_id
        )

    def _command(self, queue: LoadQueue, messages: list[SentMessage]) -> Command:
        if queue.is_fifo:
            entries = [_entry_in_order(queue, at, message) for at, message in enumerate(messages)]
        else:
            delay_s = self.random.randint(1, 4) if self.random.random() < 0.15 else None
            entries = [
                SendMessageBatchEntry(
                    id=str(position),
                    message_body=message.body,
                    delay_seconds=delay_s,
                    message_group_id=message.group or None,
                    message_attributes={**(named(message.priority) or {}), **self.deliver_at} or None,
                )
                for position, message in enumerate(messages)
            ]
        if len(entries) > 1:
            return SendMessageBatch(queue_url=queue.url, entries=entries)
        return SendMessage(
            queue_url=queue.url,
            message_body=entries[0].message_body,
            delay_seconds=entries[0].delay_seconds,
            message_attributes=entries[0].message_attributes,
            message_group_id=entries[0].message_group_id,
            message_deduplication_id=entries[0].message_deduplication_id,
        )


def _entry_in_order(queue: LoadQueue, position: int, message: SentMessage) -> SendMessageBatchEntry:
    return SendMessageBatchEntry(
        id=str(position),
        message_body=message.body,
        message_group_id=message.group,
        message_deduplication_id=None if queue.is_content_based else message.deduplication_id,
    )


class Consumer(Client):
    """A consumer that deletes a received message, changes its visibility timeout, or ignores it.

    During the drain it deletes every message.
    """

    def start(self) -> None:
        self.follow_ups: list[Callable[[], None]] = []
        self.places = self._places()
        self._next()

    def _places(self) -> Iterator[tuple[LoadQueue, int | None]]:
        """Return all queues and partitions in turn, without end. Each consumer begins at another one."""
        places = self.workload.places
        first = int(self.name[-1]) * len(places) // CONSUMERS
        return islice(cycle(places), first, None)

    def _next(self) -> None:
        if self.follow_ups:
            self.follow_ups.pop(0)()
        elif self.workload.is_draining:
            self.scheduler.schedule(20_000, self._receive)
        else:
            self.scheduler.schedule(self.random.randint(*THINK_US), self._receive)

    def _receive(self) -> None:
        draining = self.workload.is_draining
        if draining:
            # In turn, because a random choice could miss one.
            queue, partition = next(self.places)
        else:
            queue, partition = self._any_queue(), None
        wait_s = self.random.choice((0, 1, 2)) if draining else self.random.choice((0, 0, 1, 5))
        visibility_s = self.random.randint(1, 6) if self.random.random() < 0.3 else None
        count = self.random.choice((1, 3, 10)) if not draining else 10
        if self.cluster.scenario.bounds.is_relaxed:
            count *= 5
        if not draining and queue.partitions:
            partition = queue.any_partition(self.random)
        has_attempt = self.workload.has_attempts and queue.is_fifo and not draining
        attempt_id = f"{self.name}-{self.number + 1}" if has_attempt else ""
        self._ask(queue, count, wait_s, visibility_s, partition, attempt_id)

    def _any_queue(self) -> LoadQueue:
        queue = self.random.choice(self.workload.queues)
        if queue.source and self.random.random() < PASS_DEAD_SHARE:
            return self.random.choice(self.workload.sources)
        return queue

    def _ask(
        self,
        queue: LoadQueue,
        count: int,
        wait_s: int,
        visibility_s: int | None,
        partition: int | None,
        attempt_id: str,
    ) -> None:
        command = ReceiveMessage(
            queue_url=queue.url,
            message_system_attribute_names=SYSTEM_ATTRIBUTES if self.workload.asks_attributes else None,
            max_number_of_messages=count,
            visibility_timeout=visibility_s,
            wait_time_seconds=wait_s,
            receive_request_attempt_id=attempt_id or None,
            elasticq_partition=partition,
        )
        event = Receive(
            client=self.name,
            queue=queue.name,
            invoke_us=self.scheduler.now_us,
            visibility_ms=1_000 * (QUEUE_VISIBILITY_S if visibility_s is None else visibility_s),
            attempt_id=attempt_id,
            partition=partition,
        )
        done = partial(self._received, event, queue)
        if attempt_id and self.random.random() < REPEAT_SHARE:
            again = partial(self._ask, queue, count, wait_s, visibility_s, partition)
            done = partial(self._received_once, event, queue, again)
        self.begin(command, event, done, wait_us=wait_s * 1_000_000)

    def _received_once(
        self, event: Receive, queue: LoadQueue, ask: Callable[[str], None], result: Result | None
    ) -> None:
        """Repeat the receive, as if the application had not got its answer."""
        self._note(event, result)
        ask(event.attempt_id)

    def _received(self, event: Receive, queue: LoadQueue, result: Result | None) -> None:
        for message in self._note(event, result):
            self._plan(queue, message)
        self._next()

    def _note(self, event: Receive, result: Result | None) -> list[HandedOut]:
        if isinstance(result, ReceiveMessageResult) and result.messages:
            event.messages = [handed_out(message) for message in result.messages]
            self.workload.received([message.body for message in event.messages])
        return event.messages

    def _plan(self, queue: LoadQueue, message: HandedOut) -> None:
        choice = 0.0 if self.workload.is_draining else self.random.random()
        if choice < (FAILING_DELETE_SHARE if queue.target else DELETE_SHARE):
            self.follow_ups.append(lambda: self._delete(queue, message))
        elif choice < 0.9:
            self.follow_ups.append(lambda: self._change(queue, message, self.random.choice((0, 2, 5))))
        elif choice < 0.95:
            self.follow_ups.append(lambda: self._change_then_delete(queue, message))

    def _change_then_delete(self, queue: LoadQueue, message: HandedOut) -> None:
        self.follow_ups.append(lambda: self._delete(queue, message))
        self._change(queue, message, 5)

    def _delete(self, queue: LoadQueue, message: HandedOut) -> None:
        event = Delete(
            client=self.name,
            queue=queue.name,
            invoke_us=self.scheduler.now_us,
            message_id=message.message_id,
            receipt_handle=message.receipt_handle,
        )
        self.workload.deleting(message.body)
        command = DeleteMessage(queue_url=queue.url, receipt_handle=message.receipt_handle)
        self.begin(command, event, partial(self._tried_to_delete, event, message.body))

    def _tried_to_delete(self, event: Delete, body: str, result: Result | None) -> None:
        if event.outcome == "fail":
            self.workload.not_deleted(body)
        self._next()

    def _change(self, queue: LoadQueue, message: HandedOut, visibility_s: int) -> None:
        event = ChangeVisibility(
            client=self.name,
            queue=queue.name,
            invoke_us=self.scheduler.now_us,
            message_id=message.message_id,
            receipt_handle=message.receipt_handle,
            visibility_ms=visibility_s * 1_000,
        )
        command = ChangeMessageVisibility(
            queue_url=queue.url, receipt_handle=message.receipt_handle, visibility_timeout=visibility_s
        )
        self.begin(command, event, lambda result: self._next())


class Clients:
    """All clients of a run that use the scenario's queues."""

    def __init__(self, cluster: Cluster, workload: Workload) -> None:
        self.scheduler = cluster.scheduler
        self.workload = workload
        self.founder = Founder(cluster, workload, "founder", self._begin)
        self.producers = [Producer(cluster, workload, f"producer{number}") for number in range(PRODUCERS)]
        self.consumers = [Consumer(cluster, workload, f"consumer{number}") for number in range(CONSUMERS)]
        features = cluster.scenario.features
        readers = ("reader0", "reader1") if "leases" in features else ()
        self.readers: list[Client] = [Reader(cluster, workload, name) for name in readers]
        self.readers += [Shadow(cluster, workload, "shadow")] if readers else []
        has_dead = any(queue.source for queue in workload.queues)
        has_priorities = any(queue.has_priorities for queue in workload.queues)
        self.operators: list[Client] = []
        if has_dead and "move_tasks" in features:
            self.operators.append(Redriver(cluster, workload, "redriver"))
        if has_priorities:
            self.operators.append(Prioritiser(cluster, workload, "prioritiser"))
        if workload.has_schedules:
            self.operators.append(Dispatcher(cluster, workload, "dispatcher"))

    def start(self) -> None:
        """Create the queues, then start the other clients."""
        self.founder.start()

    def _begin(self) -> None:
        for client in (*self.producers, *self.consumers, *self.readers, *self.operators):
            client.start()

    @property
    def is_drained(self) -> bool:
        """Return whether all acknowledged messages were deleted, or are missing for so long that they must be lost."""
        if not self.workload.is_draining:
            return False
        quiet_us = self.scheduler.now_us - self.workload.last_message_us
        has_running_send = any(producer.running is not None for producer in self.producers)
        visible_us = self.workload.last_message_us + ALL_VISIBLE_AFTER_US
        if quiet_us > DRAIN_PATIENCE_US and self.workload.is_searched_since(visible_us):
            return True
        return quiet_us > DRAIN_QUIET_US and not self.workload.outstanding and not has_running_send
