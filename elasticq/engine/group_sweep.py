"""Background work of consumer groups: sessions end, and resources that came or went are shared out.

The master's tick asks for the next step and proposes what it gets. What is left to do is in the rows: deadlines of
consumers, and when a sharing out is due.
"""

from typing import Final

from msgspec import Struct

from elasticq.engine.actions.consumer_groups import last_token
from elasticq.engine.consumer_groups import Consumer, Group
from elasticq.engine.consumer_rows import ConsumerRemoved, ResourceFreed
from elasticq.engine.mutations import Mutation
from elasticq.engine.rebalance import Draft
from elasticq.engine.state import State

CONSUMERS_A_STEP: Final = 100
GROUPS_A_STEP: Final = 10


class GroupStep(Struct, gc=False):
    """What to propose now, and when to ask again.

    next_ms: the cluster time at which there is more to do; 0: at once; None: not before a row changes.
    """

    mutations: list[Mutation]
    next_ms: int | None


def step(state: State, now_ms: int) -> GroupStep:
    """Return the mutations of the next step: for sessions that are over, and groups whose sharing out is due."""
    groups = state.groups
    gone: dict[int, list[Consumer]] = {}
    over = groups.over(state.grace, now_ms, CONSUMERS_A_STEP)
    found: list[Mutation] = []
    for consumer in over:
        if consumer.row.group in groups.by_number:
            gone.setdefault(consumer.row.group, []).append(consumer)
        else:  # a repair lost its group
            found += [ResourceFreed(row.token, row.queue_id) for row in consumer.rows()]
            found.append(ConsumerRemoved(consumer.row.number))
    due = _due(state, gone, now_ms)
    token = last_token(state) if due else 0
    for group in due:
        draft = Draft(group, token, now_ms)
        for consumer in gone.get(group.row.number, ()):
            draft.remove(consumer)
        draft.share_out()
        token = draft.last_token
        found += draft.mutations
        if not draft.mutations:
            groups.dirty.pop(group.row.number, None)
    if found or len(over) == CONSUMERS_A_STEP:
        return GroupStep(found, 0)
    return GroupStep(found, _next_ms(state, now_ms))


def _due(state: State, gone: dict[int, list[Consumer]], now_ms: int) -> list[Group]:
    groups = state.groups
    due = {number: groups.by_number[number] for number in gone}
    for number in groups.dirty:
        group = groups.by_number[number]
        if group.status.due_ms <= now_ms:
            due[number] = group
            if len(due) >= GROUPS_A_STEP + len(gone):
                break
    return list(due.values())


def _next_ms(state: State, now_ms: int) -> int | None:
    groups = state.groups
    times = [groups.by_number[number].status.due_ms for number in groups.dirty]
    if any(each <= now_ms for each in times):
        return 0
    end_ms = groups.next_end_ms()
    if end_ms is not None:
        times.append(end_ms)
    return min(times, default=None)
