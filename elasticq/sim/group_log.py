"""The decisions of the masters about consumer groups, read from the committed log entries, for checks/groups.py."""

from __future__ import annotations

from elasticq.checks.group_history import (
    Added,
    Assigned,
    Event,
    Freed,
    Joined,
    Left,
    Removed,
    Revoked,
    TookOver,
)
from elasticq.checks.queue_history import Jump
from elasticq.engine.consumer_groups.actions import consumer_id, resource_name
from elasticq.engine.ordering.partitions import PARTITIONS
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.consumer_group_rows import (
    WHOLE,
    ConsumerGroupSet,
    ConsumerRemoved,
    ConsumerSet,
    GroupMutation,
    ResourceAssigned,
    ResourceFreed,
)

PREFIX = "shared-"
"""The prefix of the names of the group's queues. No other queue has it."""

Relevant = GroupMutation | m.QueueCreated | m.QueueDeleted | m.TookOver | m.ClockAdvanced


class GroupLog:
    """The decisions about the group of a run, in the order of the log."""

    def __init__(self) -> None:
        self.decisions: list[Event] = []
        self.advances: list[Jump] = []  # of cluster time, by AdvanceClock
        self.left: set[str] = set()  # consumers that asked to leave
        # (index, term) -> (cluster ms, true us, mutations)
        self._made: dict[tuple[int, int], tuple[int, int, list[Relevant]]] = {}
        self._resources: dict[int, list[str]] = {}  # by queue id
        self._weights: dict[int, int] = {}
        self._wanted_by: dict[
            int, int | None
        ] = {}  # token -> consumer that shall get the resource next; None: not revoked
        self._of_token: dict[int, str] = {}  # token -> resource
        self._max_per_consumer = 0
        self._ahead_ms = 0

    def proposed(self, place: tuple[int, int], made: list[m.Mutation], time_ms: int, now_us: int) -> None:
        """Record the mutations of an entry that a master made. place: its index and term."""
        relevant: list[Relevant] = [each for each in made if isinstance(each, Relevant)]
        if relevant:
            self._made[place] = time_ms, now_us, relevant

    def committed(self, place: tuple[int, int]) -> None:
        """Record that the entry at ``place`` is committed. Called once for each entry, in the order of the log."""
        time_ms, at_us, relevant = self._made.pop(place, (0, 0, []))
        for mutation in relevant:
            self._decided(mutation, time_ms, at_us)

    def _decided(self, mutation: Relevant, time_ms: int, at_us: int) -> None:
        decisions = self.decisions
        match mutation:
            case m.TookOver():
                from_us, until_us = (
                    at_us + 1_000 * (each - time_ms) for each in (mutation.grace_from_ms, mutation.grace_until_ms)
                )
                decisions.append(TookOver(at_us, from_us, until_us))
            case m.ClockAdvanced():
                self.advances.append(Jump(at_us, mutation.ahead_ms - self._ahead_ms))
                self._ahead_ms = mutation.ahead_ms
            case m.QueueCreated() if mutation.name.startswith(PREFIX):
                partitions = range(int(mutation.attributes.get(PARTITIONS, 0))) or [WHOLE]
                resources = [resource_name((mutation.name, each)) for each in partitions]
                self._resources[mutation.queue_id] = resources
                decisions += [Added(at_us, each) for each in resources]
            case m.QueueDeleted() if mutation.queue_id in self._resources:
                decisions += [Removed(at_us, each) for each in self._resources.pop(mutation.queue_id)]
            case ConsumerGroupSet():
                self._max_per_consumer = mutation.max_per_consumer
            case ConsumerSet():
                if self._weights.get(mutation.number) != mutation.weight:
                    self._weights[mutation.number] = mutation.weight
                    consumer, bound = consumer_id(mutation.number), self._max_per_consumer
                    decisions.append(Joined(at_us, consumer, mutation.weight, bound, mutation.name))
            case ConsumerRemoved():
                consumer = consumer_id(mutation.number)
                decisions.append(Left(at_us, consumer, consumer not in self.left))
            case ResourceAssigned():
                self._assigned(mutation, at_us)
            case ResourceFreed():
                decisions.append(Freed(at_us, self._of_token[mutation.token], mutation.token))

    def _assigned(self, row: ResourceAssigned, at_us: int) -> None:
        is_new, before = row.token not in self._wanted_by, self._wanted_by.get(row.token)
        wanted_by = self._wanted_by[row.token] = row.wanted_by if row.is_revoked else None
        resource = self._of_token[row.token] = resource_name((row.name, row.partition))
        if is_new:
            self.decisions.append(Assigned(at_us, resource, consumer_id(row.consumer), row.token))
        if wanted_by is not None and wanted_by != before:
            self.decisions.append(Revoked(at_us, resource, row.token, consumer_id(wanted_by) if wanted_by else ""))
