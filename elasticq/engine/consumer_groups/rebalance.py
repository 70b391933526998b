"""The rebalance of a consumer group: the mutations that assign its resources to its consumers.

An ``AssignmentPlan`` is the future state of a group. First a command or background work adds its changes: consumers
that join, leave or release resources. Then ``share_out`` decides, and ``mutations`` contains all resulting rows.

A resource that one consumer holds is never assigned to another. It is revoked first, and assigned when its holder has
released it or is gone. The same applies to a queue that was deleted and created again, or that left the group and
returned: its former holder must release it first.
"""

from heapq import heapify, heappop, heapreplace
from typing import Final

from msgspec.structs import replace

from elasticq.engine.consumer_groups.targets import PlannedConsumer, set_targets
from elasticq.engine.stored.consumer_group_index import Consumer, Group, Resource
from elasticq.engine.stored.consumer_group_rows import (
    ConsumerChanged,
    ConsumerRemoved,
    ConsumerSet,
    ResourceAssigned,
    ResourceFreed,
    TokensGiven,
)
from elasticq.engine.stored.mutations import Mutation
from elasticq.model.limits import MUTATION_ROWS_MAX

STEP_MAX: Final = MUTATION_ROWS_MAX  # assignments that one entry changes; the sweep does the rest


class AssignmentPlan:
    """The planned changes of one group in one entry.

    rows: the planned assignments, by resource. status: the planned progress of the rebalance.
    mutations: the mutations of the plan. last_token: the newest token that any group has issued.
    """

    def __init__(self, group: Group, last_token: int, now_ms: int) -> None:
        self.mutations: list[Mutation] = []
        self.rows: dict[Resource, ResourceAssigned] = dict(group.by_resource)
        self.status = group.status
        self.last_token = self._first_token = last_token
        self._group = group
        self._now_ms = now_ms
        self._planned: dict[int, PlannedConsumer] = {
            number: PlannedConsumer(number, each.row.weight, len(each.held)) for number, each in group.consumers.items()
        }
        self._requested: dict[Resource, int] = {}  # consumer that an operator chose for a resource that is free now
        self._touched: set[int] = set()
        self._version = 0
        self._left = STEP_MAX
        self._consumers_changed = False
        self._has_decided = False

    # --- changes that the plan must include ------------------------------------------------

    def version(self) -> int:
        """Return the version of the new view; all consumers that the plan affects get the same version."""
        if not self._version:
            self.last_token += 1
            self._version = self.last_token
        return self._version

    def join(self, row: ConsumerSet) -> None:
        """Add a consumer."""
        self._planned[row.number] = PlannedConsumer(row.number, row.weight, 0)
        self._touched.add(row.number)
        self.mutations.append(row)
        self._consumers_changed = True

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer and free all its resources.

        If it holds more than one entry may change, its session ends at once, and the sweep frees the rest.
        """
        row = consumer.row
        self._touched.add(row.number)
        held = consumer.rows()
        for each in held[: self._left]:
            self._free(each)
        if len(held) <= self._left:
            self.mutations.append(ConsumerRemoved(row.number))
        elif row.weight or row.deadline_ms > self._now_ms:
            self.mutations.append(replace(row, weight=0, deadline_ms=min(row.deadline_ms, self._now_ms)))
        self._left = max(0, self._left - len(held))
        del self._planned[row.number]
        self._consumers_changed = True

    def weigh(self, consumer: Consumer, weight: int) -> None:
        """Change the weight of a consumer."""
        self._planned[consumer.row.number].weight = weight
        self.mutations.append(replace(consumer.row, weight=weight))
        self._consumers_changed = True

    def release(self, consumer: Consumer, tokens: list[int]) -> None:
        """Free the resources that a consumer releases. Tokens that it does not hold are ignored."""
        for token in dict.fromkeys(tokens):
            row = consumer.held.get(token) or consumer.revoking.get(token)
            if row is not None:
                self._free(row)

    def move(self, resource: Resource, to: int) -> None:
        """Move a resource to a consumer, as requested by an operator, after its holder has released it.

        The resource stays there until the consumers of the group change.
        """
        generation = self.status.generation + 1
        row = self.rows.get(resource)
        if row is None:
            self._assign(resource, to, generation)
        elif row.consumer == to and not row.is_revoked:
            self._put(replace(row, wanted_by=to, wanted_in=generation))
        else:
            self._revoke(row, to, generation)
        self._has_decided = True

    # --- single assignments --------------------------------------------------------------

    def _touch(self, consumer: int) -> None:
        """Give the consumer's view a new version, because its assignments change."""
        if consumer not in self._touched:
            self._touched.add(consumer)
            self.mutations.append(ConsumerChanged(consumer, self.version()))

    def _put(self, row: ResourceAssigned) -> None:
        self._touch(row.consumer)
        self.rows[row.name, row.partition] = row
        self.mutations.append(row)

    def _lose(self, consumer: int) -> None:
        planned = self._planned.get(consumer)
        if planned is not None:
            planned.held -= 1

    def _free(self, row: ResourceAssigned) -> None:
        resource = row.name, row.partition
        if self.rows.get(resource) == row:
            del self.rows[resource]
        self._touch(row.consumer)
        if not row.is_revoked:
            self._lose(row.consumer)
        elif row.wanted_by:
            self._requested[resource] = row.wanted_by if row.wanted_in >= self.status.changed else 0
        self.mutations.append(ResourceFreed(row.token, row.queue_id))

    def _revoke(self, row: ResourceAssigned, wanted_by: int = 0, wanted_in: int = 0) -> None:
        if not row.is_revoked:
            self._lose(row.consumer)
            if self._group.present.get((row.name, row.partition)) == row.queue_id:
                self.status = replace(self.status, moves=self.status.moves + 1)
        self._put(replace(row, is_revoked=True, wanted_by=wanted_by, wanted_in=wanted_in))
        self._left -= 1

    def _assign(self, resource: Resource, consumer: int, wanted_in: int = 0) -> None:
        name, partition = resource
        self.last_token += 1
        self._planned[consumer].held += 1
        self._put(
            ResourceAssigned(
                self.last_token,
                self._group.row.number,
                self._group.present[resource],
                name,
                partition,
                consumer,
                self._now_ms,
                wanted_by=consumer if wanted_in else 0,
                wanted_in=wanted_in,
            )
        )
        self._left -= 1

    # --- division of the resources ---------------------------------------------------------

    def share_out(self) -> None:
        """Decide which resources are revoked, and assign the free ones. Call it once, after all other changes."""
        self._note_change()
        is_more = False
        before = len(self.mutations)
        self._assign_requested()
        if self.status.due_ms <= self._now_ms:
            self.status = replace(self.status, due_ms=0)
            is_more = self._decide()
        if len(self.mutations) > before and not self._has_decided and not self._consumers_changed:
            self.status = replace(self.status, generation=self.status.generation + 1)
        self._note_end(is_more=is_more)
        if self.last_token != self._first_token:
            self.mutations.append(TokensGiven(self.last_token))
        if self.status != self._group.status:
            self.mutations.append(self.status)

    def _note_change(self) -> None:
        status = self.status
        if self._has_decided or self._consumers_changed:
            status = replace(status, generation=status.generation + 1)
        if self._consumers_changed:
            due_ms = status.due_ms or (self._now_ms + self._group.row.delay_ms if self._group.row.delay_ms else 0)
            status = replace(status, changed=status.generation, due_ms=due_ms)
        self.status = status

    def _note_end(self, *, is_more: bool) -> None:
        status = self.status
        if is_more:
            status = replace(status, due_ms=self._now_ms)
        is_under_way = bool(status.due_ms) or any(row.is_revoked for row in self.rows.values())
        has_begun = status.generation != self._group.status.generation
        if is_under_way:
            started_ms = status.started_ms or (self._now_ms if has_begun else 0)
            status = replace(status, started_ms=started_ms)
        elif status.started_ms:
            status = replace(status, started_ms=0, rebalanced_ms=self._now_ms - status.started_ms)
        elif has_begun:
            status = replace(status, rebalanced_ms=0)
        self.status = status

    def _assign_requested(self) -> None:
        """Assign free resources that operators moved, even while a delay postpones the rebalance."""
        for resource, consumer in self._requested.items():
            if resource in self._group.present and resource not in self.rows and self._may_receive(consumer):
                self._assign(resource, consumer, self.status.generation)

    def _decide(self) -> bool:
        """Revoke and assign resources; return whether more is left than one entry may change."""
        group, all_planned = self._group, self._planned
        is_more = False
        for resource, row in list(self.rows.items()):
            is_there = group.present.get(resource) == row.queue_id
            if row.consumer not in all_planned:  # being removed, or lost in a repair: it will release nothing
                if self._left <= 0:
                    is_more = True
                    continue
                self._left -= 1
                del self.rows[resource]
                self.mutations.append(ResourceFreed(row.token, row.queue_id))
            elif not row.is_revoked:
                if not is_there and self._left > 0:
                    self._revoke(row)
            elif is_there and self._is_requested(row) and self._may_receive(row.wanted_by):
                all_planned[row.wanted_by].held += 1  # count it as held: it is promised
        set_targets(all_planned.values(), len(group.present), group.row.max_per_consumer)
        if self._revoke_surplus():
            return True
        return self._assign_free() or is_more

    def _is_requested(self, row: ResourceAssigned) -> bool:
        """Return whether an operator moved the resource, and no later change of consumers made that void."""
        return row.wanted_by > 0 and row.wanted_in >= self.status.changed and not self._consumers_changed

    def _may_receive(self, consumer: int) -> bool:
        planned = self._planned.get(consumer)
        return planned is not None and planned.weight > 0

    def _revoke_surplus(self) -> bool:
        """Revoke what consumers hold above their targets; return whether more is left than one entry may change.

        The newest assignments are revoked first, and those moved by an operator last.
        """
        for planned in self._planned.values():
            surplus = planned.held - planned.target
            if surplus <= 0 or planned.number not in self._group.consumers:
                continue
            held = self._group.consumers[planned.number].held.values()
            found = [row for row in held if self.rows.get((row.name, row.partition)) == row]
            found.sort(key=lambda row: (self._is_requested(row), -row.token))
            for row in found[:surplus]:
                if self._left <= 0:
                    return True
                self._revoke(row)
        return False

    def _assign_free(self) -> bool:
        """Assign free resources, first to consumers furthest below their targets.

        Return whether more is left than one entry may change.
        """
        wanting = [
            (planned.held - planned.target, planned.number)
            for planned in self._planned.values()
            if planned.held < planned.target
        ]
        if not wanting:
            return False
        heapify(wanting)
        rows = self.rows
        for resource in sorted(each for each in self._group.present if each not in rows):
            if not wanting:
                break
            if self._left <= 0:
                return True
            below, number = wanting[0]
            self._assign(resource, number)
            if below < -1:
                heapreplace(wanting, (below + 1, number))
            else:
                heappop(wanting)
        return False

    # --- the assignments of one consumer after the plan ------------------------------------

    def has_touched(self, consumer: int) -> bool:
        """Return whether the plan changes assignments of the consumer."""
        return consumer in self._touched

    def rows_of(self, consumer: int) -> tuple[list[ResourceAssigned], list[ResourceAssigned]]:
        """Return the assignments that the consumer will hold, and those it must release, each ordered by token."""
        own = sorted((row for row in self.rows.values() if row.consumer == consumer), key=_by_token)
        return [row for row in own if not row.is_revoked], [row for row in own if row.is_revoked]


def _by_token(row: ResourceAssigned) -> int:
    return row.token
