"""Background work of consumer groups: end of sessions, rebalances, and removal of deleted groups.

The master's tick calls the next step and proposes its mutations. The rows show what is left to do: they contain the
deadlines of consumers, and the time at which a rebalance is due.
"""

from typing import Final

from msgspec import Struct

from elasticq.engine.consumer_groups.actions import last_token, rows_of_gone
from elasticq.engine.consumer_groups.rebalance import STEP_MAX, AssignmentPlan
from elasticq.engine.state import State
from elasticq.engine.stored.consumer_group_index import Consumer, Group
from elasticq.engine.stored.mutations import Mutation

CONSUMERS_A_STEP: Final = 100
LOOKED_AT_A_STEP: Final = 10_000
"""Consumers and resources of the groups that one step looks at."""


class GroupStep(Struct, gc=False):
    """The mutations to propose, and the time of the next step.

    next_ms: the cluster time at which there is more to do; 0: at once; None: not before a row changes.
    """

    mutations: list[Mutation]
    next_ms: int | None


def step(state: State, now_ms: int) -> GroupStep:
    """Return the next step: rows of deleted groups to remove, sessions to end, and rebalances that are due."""
    groups = state.groups
    for orphan in groups.orphans.values():
        return GroupStep(rows_of_gone(orphan), 0)
    gone: dict[int, list[Consumer]] = {}
    over = groups.ended_sessions(state.grace, now_ms, CONSUMERS_A_STEP)
    found: list[Mutation] = []
    for consumer in over:
        gone.setdefault(consumer.row.group, []).append(consumer)
    due = _due(state, gone, now_ms)
    token = last_token(state) if due else 0
    for group in due:
        plan = AssignmentPlan(group, token, now_ms)
        for consumer in gone.get(group.row.number, ()):
            plan.remove(consumer)
        plan.share_out()
        token = plan.last_token
        found += plan.mutations
        if not plan.mutations:
            groups.dirty.pop(group.row.number, None)
        if len(found) > STEP_MAX:
            break
    if found or len(over) == CONSUMERS_A_STEP:
        return GroupStep(found, 0)
    return GroupStep(found, _next_ms(state, now_ms))


def _due(state: State, gone: dict[int, list[Consumer]], now_ms: int) -> list[Group]:
    """Return groups to rebalance, bounded by LOOKED_AT_A_STEP. gone: consumers whose session ended, by group."""
    groups = state.groups
    due: dict[int, Group] = {}
    looked_at = 0
    for number in (*gone, *groups.dirty):
        group = groups.by_number[number]
        if number in gone or group.status.due_ms <= now_ms:
            due[number] = group
            looked_at += len(group.present) + len(group.by_resource) + len(group.consumers)
            if looked_at > LOOKED_AT_A_STEP:
                break
    return list(due.values())


def _next_ms(state: State, now_ms: int) -> int | None:
    """Return when the next rebalance is due or the next session ends; see ``GroupStep.next_ms``."""
    groups = state.groups
    times = [groups.by_number[number].status.due_ms for number in groups.dirty]
    if any(each <= now_ms for each in times):
        return 0
    end_ms = groups.next_end_ms()
    if end_ms is not None:
        times.append(end_ms)
    return min(times, default=None)
