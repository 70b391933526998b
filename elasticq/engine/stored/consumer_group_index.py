"""The index of consumer groups, their consumers, resources and assignments, for heartbeats and the fence.

The rows are mutations (consumer_group_rows.py), and ``writers/consumer_groups.py`` updates this index. No row lists the
resources of a group, because they follow from the names of the existing queues. ``QueueNames`` calls this index when a
queue is created or deleted.
"""

from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Any

from elasticq.engine.stored.consumer_group_rows import (
    WHOLE,
    ConsumerGroupSet,
    ConsumerSet,
    GroupRebalanced,
    ResourceAssigned,
)
from elasticq.engine.stored.delivery_rows import Grace
from elasticq.engine.stored.queue_names import QueueNames
from elasticq.model.limits import RESOURCES_MAX

Resource = tuple[str, int]
"""The name of a queue, and one of its partitions or WHOLE."""


class Consumer:
    """A consumer and its assignments by token. Revoked assignments are in ``revoking``, the others in ``held``."""

    __slots__ = ("held", "revoking", "row")

    def __init__(self, row: ConsumerSet) -> None:
        self.row = row
        self.held: dict[int, ResourceAssigned] = {}
        self.revoking: dict[int, ResourceAssigned] = {}

    def lives(self, grace: Grace, now_ms: int) -> bool:
        return now_ms < grace.until_ms(self.row.deadline_ms)

    def put(self, row: ResourceAssigned) -> None:
        self.take(row.token)
        (self.revoking if row.is_revoked else self.held)[row.token] = row

    def rows(self) -> list[ResourceAssigned]:
        """Return all its assignments, revoked ones last."""
        return [*self.held.values(), *self.revoking.values()]

    def take(self, token: int) -> None:
        self.held.pop(token, None)
        self.revoking.pop(token, None)


class Group:
    """A consumer group.

    - present: Its resources, each with the id of the queue.
    - by_resource: The assignments by resource.
    - last: The name of its last queue if its prefix matches at least RESOURCES_MAX queues, else empty.
    """

    __slots__ = ("by_resource", "consumers", "last", "present", "row", "status")

    def __init__(self, row: ConsumerGroupSet) -> None:
        self.row = row
        self.status = GroupRebalanced(row.number, 0, 0, 0, 0, 0, 0)
        self.consumers: dict[int, Consumer] = {}
        self.present: dict[Resource, int] = {}
        self.last = ""
        self.by_resource: dict[Resource, ResourceAssigned] = {}


class Groups:
    """All consumer groups of a state. Only ``apply`` writes here.

    - dirty: The numbers of groups that background work must visit. Their resources changed, or they wait for a time or
      for the next step of their rebalance.
    - orphans: Deleted groups that still have rows, which further steps delete.
    """

    def __init__(self, names: QueueNames[Any]) -> None:
        self._names = names
        self.by_number: dict[int, Group] = {}
        self.names: QueueNames[Group] = QueueNames()
        self.consumers: dict[int, Consumer] = {}
        self.assignments: dict[int, ResourceAssigned] = {}
        self.dirty: dict[int, None] = {}
        self.orphans: dict[int, Group] = {}
        self._by_queue: dict[tuple[str, str], dict[int, Group]] = {}
        self._by_prefix: dict[str, dict[int, Group]] = {}  # by account
        self._deadlines: list[tuple[int, int]] = []

    def __bool__(self) -> bool:
        return bool(self.by_number or self.orphans)

    # --- groups ------------------------------------------------------------------------

    def put_group(self, row: ConsumerGroupSet) -> None:
        group = self.by_number.get(row.number)
        if group is None:
            group = self.by_number[row.number] = self.orphans.get(row.number) or Group(row)
            self.orphans.pop(row.number, None)
        else:
            self._unfollow(group.row)
        group.row = row
        self.names[row.account, row.name] = group
        if row.prefix:
            self._by_prefix.setdefault(row.account, {})[row.number] = group
        for name in _named(row):
            self._by_queue.setdefault((row.account, name), {})[row.number] = group
        if group.present or self._names:  # during a start, rows are read before there are queues
            self._look_for_resources(group)

    def _unfollow(self, row: ConsumerGroupSet) -> None:
        if row.prefix:
            _discard(self._by_prefix, row.account, row.number)
        for name in _named(row):
            _discard(self._by_queue, (row.account, name), row.number)

    def drop_group(self, number: int) -> None:
        group = self.by_number.pop(number, None)
        if group is None:
            return
        self._unfollow(group.row)
        self.dirty.pop(number, None)
        if group.consumers or group.by_resource:
            self.orphans[number] = group
        key = (group.row.account, group.row.name)
        if self.names.get(key) is group:
            del self.names[key]

    def _group(self, number: int) -> Group:
        """Return the group of a consumer or assignment. The group may be deleted."""
        group = self.by_number.get(number) or self.orphans.get(number)
        if group is None:  # a repair lost its row
            group = self.orphans[number] = Group(ConsumerGroupSet(number, "", "", 0, 0, 0, []))
        return group

    def _drop_empty_orphan(self, number: int) -> None:
        """Remove a deleted group when all of its rows are deleted."""
        group = self.orphans.get(number)
        if group is not None and not group.consumers and not group.by_resource:
            del self.orphans[number]

    def put_status(self, row: GroupRebalanced) -> None:
        group = self.by_number.get(row.number)
        if group is not None:
            group.status = row
            if row.started_ms or row.due_ms:
                self.dirty[row.number] = None

    def mark_dirty(self, number: int) -> None:
        """Mark the group for background work, because a row of it was rolled back and finished work may have to be
        repeated.
        """
        if number in self.by_number:
            self.dirty[number] = None

    # --- resources ---------------------------------------------------------------------

    def queue_named(self, key: tuple[str, str], queue: Any) -> None:
        """Update the groups after ``queue`` got this name; None: no queue has it."""
        account, name = key
        for group in self._by_queue.get(key, {}).values():
            self._follow(group, name, queue)
        for group in self._by_prefix.get(account, {}).values():
            if name.startswith(group.row.prefix):
                self._follow_prefix(group, name, queue)

    def _follow(self, group: Group, name: str, queue: Any) -> None:
        self.dirty[group.row.number] = None
        if queue is not None:
            self._add(group, name, queue)
            return
        count = 0
        while group.present.pop((name, count), None) is not None:
            count += 1
        group.present.pop((name, WHOLE), None)

    def _follow_prefix(self, group: Group, name: str, queue: Any) -> None:
        """Update a group with a prefix after a queue was created or deleted.

        If the prefix matches more queues than a group may have, the group has the first RESOURCES_MAX ones by name. The
        update does not scan the names.
        """
        present, account, resource = group.present, group.row.account, (name, WHOLE)
        if queue is None:
            if present.pop(resource, None) is None:
                return
            if group.last:
                group.last = next(self._names.of(account, group.row.prefix, group.last), "")
            if group.last:
                present[group.last, WHOLE] = self._names[account, group.last].id
        else:
            if group.last and resource not in present:
                if name > group.last:
                    return
                del present[group.last, WHOLE]
                group.last = self._names.before(account, group.last)
            present[resource] = queue.id
            if not group.last and len(present) == RESOURCES_MAX:  # all matching queues are in the group so far
                group.last = self._names.last_of(account, group.row.prefix)
        self.dirty[group.row.number] = None

    def _add(self, group: Group, name: str, queue: Any) -> None:
        if not group.row.partitions_of:
            group.present[name, WHOLE] = queue.id
            return
        for partition in range(queue.partitions):
            group.present[name, partition] = queue.id

    def _look_for_resources(self, group: Group) -> None:
        row, names = group.row, self._names
        group.present, group.last = {}, ""
        self.dirty[row.number] = None
        found = names.of(row.account, row.prefix, "") if row.prefix else _named(row)
        for name in islice(found, RESOURCES_MAX):
            queue = names.get((row.account, name))
            if queue is not None:
                self._add(group, name, queue)
                if row.prefix and len(group.present) == RESOURCES_MAX:
                    group.last = name

    # --- consumers ---------------------------------------------------------------------

    def put_consumer(self, row: ConsumerSet) -> None:
        consumer = self.consumers.get(row.number)
        if consumer is not None:
            if (
                row.deadline_ms < consumer.row.deadline_ms
            ):  # a renewal was rolled back, and ``ended_sessions`` may have met it
                heappush(self._deadlines, (row.deadline_ms, row.number))
            consumer.row = row
            return
        consumer = self.consumers[row.number] = Consumer(row)
        self._group(row.group).consumers[row.number] = consumer
        heappush(self._deadlines, (row.deadline_ms, row.number))

    def drop_consumer(self, number: int) -> None:
        consumer = self.consumers.pop(number, None)
        if consumer is None:
            return
        self._group(consumer.row.group).consumers.pop(number, None)
        self._drop_empty_orphan(consumer.row.group)
        if len(self._deadlines) > 64 and len(self._deadlines) > 2 * len(self.consumers):
            self._deadlines = [each for each in self._deadlines if each[1] in self.consumers]
            heapify(self._deadlines)

    def ended_sessions(self, grace: Grace, now_ms: int, limit: int) -> list[Consumer]:
        """Return up to ``limit`` consumers whose sessions have ended, earliest end first."""
        found: list[Consumer] = []
        looked_at: list[tuple[int, int]] = []
        met: set[int] = set()  # a consumer whose removal was rolled back has two entries
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now_ms and len(found) < limit:
            number = heappop(deadlines)[1]
            consumer = self.consumers.get(number)
            if consumer is None or number in met:
                continue
            met.add(number)
            until_ms = grace.until_ms(consumer.row.deadline_ms)
            looked_at.append((until_ms, number))
            if until_ms <= now_ms:
                found.append(consumer)
        for each in looked_at:
            heappush(deadlines, each)
        return found

    def next_end_ms(self) -> int | None:
        """Return a cluster time before which no session ends; None if there are no consumers."""
        return self._deadlines[0][0] if self._deadlines else None

    # --- assignments -------------------------------------------------------------------

    def put_assignment(self, row: ResourceAssigned) -> None:
        self.assignments[row.token] = row
        self._group(row.group).by_resource[row.name, row.partition] = row
        consumer = self.consumers.get(row.consumer)
        if consumer is not None:
            consumer.put(row)

    def drop_assignment(self, token: int) -> None:
        row = self.assignments.pop(token, None)
        if row is None:
            return
        self._group(row.group).by_resource.pop((row.name, row.partition), None)
        self._drop_empty_orphan(row.group)
        consumer = self.consumers.get(row.consumer)
        if consumer is not None:
            consumer.take(token)

    def rows(self) -> list[ResourceAssigned]:
        """Return all assignments by token."""
        return [self.assignments[token] for token in sorted(self.assignments)]

    def behind(self, account: str, name: str, count: int) -> list[Group]:
        """Return the first ``count`` groups of an account with names after ``name``, in the order of names."""
        return [self.names[account, each] for each in islice(self.names.of(account, "", name), count)]


def _named(row: ConsumerGroupSet) -> list[str]:
    """Return the queues that the group names: those that it assigns, or the queue whose partitions it assigns."""
    return row.queue_names or ([row.partitions_of] if row.partitions_of else [])


def _discard(index: dict[Any, dict[int, Group]], key: Any, number: int) -> None:
    found = index.get(key)
    if found is not None:
        found.pop(number, None)
        if not found:
            del index[key]
