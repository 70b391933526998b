"""The common state of a run's clients: their queues, their history, the outstanding messages and the drain."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from elasticq.checks.history import Event, Receive, Send, SentMessage
from elasticq.sim.cluster import Cluster
from elasticq.sim.queues import SCHEDULES, LoadQueue, queues_of


class LeasedCall(Struct, frozen=True):
    """A numbered receive of a lease. partition: the queue's partition that it names, None for the whole queue."""

    queue: LoadQueue
    lease: str
    number: int
    lease_s: int
    count: int
    partition: int | None = None


class Workload:
    """The common state of the clients.

    outstanding: the keys of messages that were acknowledged or received, and are probably not deleted. An attempt to
    delete a message removes its key. If the attempt certainly failed, the key is added again.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.scheduler = cluster.scheduler
        self.history: list[Event] = []
        self.is_draining = False
        self.drain_us = 0
        self.last_message_us = 0
        self.first_write_after_heal_us: int | None = None
        self.outstanding: set[tuple[str, ...]] = set()
        self.maybe_deleted: set[tuple[str, ...]] = set()
        self.keys: dict[str, tuple[str, ...]] = {}  # by body; sends with the same deduplication id are one message
        features = cluster.scenario.features
        self.queues = queues_of(features)
        self.sources = [queue for queue in self.queues if not queue.source]
        self.has_attempts = "attempts" in features
        self.has_schedules = SCHEDULES in features
        self.drains_by_partition = cluster.scenario.seed % 2 == 0
        self.asks_attributes = bool(features)
        self.leased: LeasedCall | None = None  # the newest leased call of any reader
        self.places = [(queue, partition) for queue in self.queues for partition in self._partitions(queue)]
        self.found_empty_us: dict[tuple[str, int | None], int] = {}

    def drain(self) -> None:
        """Start the drain: clients send nothing more, and receive and delete everything."""
        self.is_draining = True
        self.drain_us = self.last_message_us = self.scheduler.now_us

    def _partitions(self, queue: LoadQueue) -> Sequence[int | None]:
        """Return the partitions that a drain receives from in turn. None stands for the whole queue."""
        return range(queue.partitions) if queue.partitions and self.drains_by_partition else (None,)

    def is_searched_since(self, since_us: int) -> bool:
        """Return whether receives that began at ``since_us`` or later found every queue and partition empty."""
        return all(self.found_empty_us.get((queue.name, partition), -1) >= since_us for queue, partition in self.places)

    def naming(self, queue: LoadQueue, messages: list[SentMessage]) -> None:
        """Record messages that a client is about to send."""
        for message in messages:
            scope = message.group if queue.is_by_group else ""
            id_ = message.deduplication_id
            self.keys[message.body] = (queue.name, scope, id_) if id_ else (message.body,)

    def deleting(self, body: str) -> None:
        """Record that a client is about to delete the message with this body."""
        self.maybe_deleted.add(self.keys[body])
        self.outstanding.discard(self.keys[body])

    def not_deleted(self, body: str) -> None:
        """Record that the delete of the message with this body certainly had no effect. It must be received again."""
        self.outstanding.add(self.keys[body])

    def received(self, bodies: list[str]) -> None:
        """Record messages that a consumer got. They exist, even if their senders got no answer."""
        self.last_message_us = self.scheduler.now_us
        self.outstanding.update({self.keys[body] for body in bodies if body in self.keys} - self.maybe_deleted)

    def finished(self, event: Event) -> None:
        """Record the end of an operation."""
        if event.outcome != "ok":
            return
        if isinstance(event, Send):
            self.outstanding.update({self.keys[message.body] for message in event.messages} - self.maybe_deleted)
        if isinstance(event, Receive) and not event.lease and not event.messages:
            self.found_empty_us[event.queue, event.partition] = event.invoke_us
        is_write = not isinstance(event, Receive)
        if is_write and self.cluster.is_healed and self.first_write_after_heal_us is None:
            self.first_write_after_heal_us = self.scheduler.now_us
