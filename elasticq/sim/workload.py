"""What the clients of a run share: their queues and their history, what is sent and not deleted, and the drain."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from elasticq.checks.history import Event, Receive, Send, SentMessage
from elasticq.sim.cluster import Cluster
from elasticq.sim.queues import SCHEDULES, LoadQueue, queues_of


class LeasedCall(Struct, frozen=True):
    """A numbered receive of a lease; partition: the queue's that it asks for, None: any."""

    queue: LoadQueue
    lease: str
    number: int
    lease_s: int
    count: int
    partition: int | None = None


class Workload:
    """``outstanding``: keys of messages that were acknowledged or received, and not deleted, as far as anybody knows.

    Who tries to delete a message takes it out; who is told that this had no effect puts it back.
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
        self.keys: dict[str, tuple[str, ...]] = {}  # by body: sends with one deduplication id are one message
        features = cluster.scenario.features
        self.queues = queues_of(features)
        self.sources = [queue for queue in self.queues if not queue.source]
        self.has_attempts = "attempts" in features
        self.has_schedules = SCHEDULES in features
        self.drains_by_partition = cluster.scenario.seed % 2 == 0
        self.asks_attributes = bool(features)
        self.leased: LeasedCall | None = None  # the newest
        self.places = [(queue, partition) for queue in self.queues for partition in self._partitions(queue)]
        self.found_empty_us: dict[tuple[str, int | None], int] = {}

    def drain(self) -> None:
        """Nothing is sent from now on; everything is taken and deleted."""
        self.is_draining = True
        self.drain_us = self.last_message_us = self.scheduler.now_us

    def _partitions(self, queue: LoadQueue) -> Sequence[int | None]:
        """Return what a drain asks the queue for, one after the other: each partition, or None for all of them."""
        return range(queue.partitions) if queue.partitions and self.drains_by_partition else (None,)

    def is_searched_since(self, since_us: int) -> bool:
        """Return whether receives that began at ``since_us`` or later found every queue and partition empty."""
        return all(self.found_empty_us.get((queue.name, partition), -1) >= since_us for queue, partition in self.places)

    def naming(self, queue: LoadQueue, messages: list[SentMessage]) -> None:
        """A client is about to send these messages."""
        for message in messages:
            scope = message.group if queue.is_by_group else ""
            id_ = message.deduplication_id
            self.keys[message.body] = (queue.name, scope, id_) if id_ else (message.body,)

    def deleting(self, body: str) -> None:
        """A client is about to delete the message with this body."""
        self.maybe_deleted.add(self.keys[body])
        self.outstanding.discard(self.keys[body])

    def not_deleted(self, body: str) -> None:
        """A delete of the message with this body certainly had no effect, so that it must be received again."""
        self.outstanding.add(self.keys[body])

    def received(self, bodies: list[str]) -> None:
        """A consumer got messages with these bodies: they are there, whether their senders were told or not."""
        self.last_message_us = self.scheduler.now_us
        self.outstanding.update({self.keys[body] for body in bodies if body in self.keys} - self.maybe_deleted)

    def finished(self, event: Event) -> None:
        """An operation has ended."""
        if event.outcome != "ok":
            return
        if isinstance(event, Send):
            self.outstanding.update({self.keys[message.body] for message in event.messages} - self.maybe_deleted)
        if isinstance(event, Receive) and not event.lease and not event.messages:
            self.found_empty_us[event.queue, event.partition] = event.invoke_us
        is_write = not isinstance(event, Receive)
        if is_write and self.cluster.is_healed and self.first_write_after_heal_us is None:
            self.first_write_after_heal_us = self.scheduler.now_us
