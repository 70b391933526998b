"""The effects of mutations on consumer groups, their consumers and assignments."""

from typing import Final

from elasticq.engine.state import State
from elasticq.engine.stored import consumer_group_rows as r
from elasticq.engine.stored.tables import Change, Drop, Put, RowChange
from elasticq.engine.writers import plain
from elasticq.engine.writers.contract import Declare, Undo, Writer


def _group_set(state: State, mutation: r.ConsumerGroupSet, undo: Undo | None) -> None:
    if undo is not None:
        group = state.groups.by_number.get(mutation.number)
        undo.append((_restore_group, state, mutation.number, None if group is None else group.row))
    plain.write(state, _group_set_rows(mutation), undo)
    state.groups.put_group(mutation)


def _group_set_rows(mutation: r.ConsumerGroupSet) -> list[RowChange]:
    return [Put(r.CONSUMER_GROUPS, mutation.number, mutation)]


def _restore_group(state: State, number: int, row: r.ConsumerGroupSet | None) -> None:
    if row is None:
        state.groups.drop_group(number)
    else:
        state.groups.put_group(row)


def _group_deleted(state: State, mutation: r.ConsumerGroupDeleted, undo: Undo | None) -> None:
    group = state.groups.by_number.get(mutation.number)
    if group is None:
        return
    if undo is not None:
        undo.append((state.groups.put_status, group.status))
        undo.append((state.groups.put_group, group.row))
    plain.write(state, _group_deleted_rows(mutation), undo)
    state.groups.drop_group(mutation.number)


def _group_deleted_rows(mutation: r.ConsumerGroupDeleted) -> list[RowChange]:
    return [Drop(r.CONSUMER_GROUPS, mutation.number), Drop(r.REBALANCES, mutation.number)]


def _rebalanced(state: State, mutation: r.GroupRebalanced, undo: Undo | None) -> None:
    group = state.groups.by_number.get(mutation.number)
    if undo is not None and group is not None:
        undo.append((_restore_status, state, group.status))
    plain.write(state, _rebalanced_rows(mutation), undo)
    state.groups.put_status(mutation)


def _restore_status(state: State, row: r.GroupRebalanced) -> None:
    state.groups.put_status(row)
    state.groups.mark_dirty(row.number)


def _rebalanced_rows(mutation: r.GroupRebalanced) -> list[RowChange]:
    return [Put(r.REBALANCES, mutation.number, mutation)]


def _consumer_set(state: State, mutation: r.ConsumerSet, undo: Undo | None) -> None:
    if undo is not None:
        consumer = state.groups.consumers.get(mutation.number)
        undo.append((_restore_consumer, state, mutation.number, None if consumer is None else consumer.row))
    plain.write(state, _consumer_set_rows(mutation), undo)
    state.groups.put_consumer(mutation)


def _consumer_set_rows(mutation: r.ConsumerSet) -> list[RowChange]:
    return [Put(r.CONSUMERS, mutation.number, mutation)]


def _restore_consumer(state: State, number: int, row: r.ConsumerSet | None) -> None:
    if row is None:
        state.groups.drop_consumer(number)
    else:
        state.groups.put_consumer(row)


def _consumer_renewed(state: State, mutation: r.ConsumerRenewed, undo: Undo | None) -> None:
    _change_consumer(state, mutation.number, _consumer_renewed_rows(mutation), undo)


def _consumer_changed(state: State, mutation: r.ConsumerChanged, undo: Undo | None) -> None:
    _change_consumer(state, mutation.number, _consumer_changed_rows(mutation), undo)


def _change_consumer(state: State, number: int, changes: list[RowChange], undo: Undo | None) -> None:
    consumer = state.groups.consumers.get(number)
    if consumer is None:
        return
    if undo is not None:
        undo.append((_restore_consumer, state, number, consumer.row))
    plain.write(state, changes, undo)
    consumer.row = state.tables[r.CONSUMERS.name][number]


def _consumer_renewed_rows(mutation: r.ConsumerRenewed) -> list[RowChange]:
    return [Change(r.CONSUMERS, mutation.number, {"deadline_ms": mutation.deadline_ms}, grows="deadline_ms")]


def _consumer_changed_rows(mutation: r.ConsumerChanged) -> list[RowChange]:
    return [Change(r.CONSUMERS, mutation.number, {"version": mutation.version}, grows="version")]


def _consumer_removed(state: State, mutation: r.ConsumerRemoved, undo: Undo | None) -> None:
    consumer = state.groups.consumers.get(mutation.number)
    if consumer is None:
        return
    if undo is not None:
        undo.append((_restore_consumer, state, mutation.number, consumer.row))
    plain.write(state, _consumer_removed_rows(mutation), undo)
    state.groups.drop_consumer(mutation.number)


def _consumer_removed_rows(mutation: r.ConsumerRemoved) -> list[RowChange]:
    return [Drop(r.CONSUMERS, mutation.number)]


def _resource_assigned(state: State, mutation: r.ResourceAssigned, undo: Undo | None) -> None:
    if undo is not None:
        undo.append((_restore_assignment, state, mutation, state.groups.assignments.get(mutation.token)))
    state.groups.put_assignment(mutation)


def _resource_assigned_rows(mutation: r.ResourceAssigned) -> list[RowChange]:
    return [Put(r.ASSIGNMENTS, mutation.token, mutation)]


def _resource_freed(state: State, mutation: r.ResourceFreed, undo: Undo | None) -> None:
    row = state.groups.assignments.get(mutation.token)
    if row is None:
        return
    if undo is not None:
        undo.append((_restore_assignment, state, row, row))
    state.groups.drop_assignment(mutation.token)


def _resource_freed_rows(mutation: r.ResourceFreed) -> list[RowChange]:
    return [Drop(r.ASSIGNMENTS, mutation.token)]


def _restore_assignment(state: State, undone: r.ResourceAssigned, row: r.ResourceAssigned | None) -> None:
    if row is None:
        state.groups.drop_assignment(undone.token)
    else:
        state.groups.put_assignment(row)
    state.groups.mark_dirty(undone.group)


def _tokens_given_rows(mutation: r.TokensGiven) -> list[RowChange]:
    return [Put(r.TOKENS, r.LAST_TOKEN, mutation)]


WRITERS: Final[dict[type, Writer]] = {
    r.ConsumerGroupSet: _group_set,
    r.ConsumerGroupDeleted: _group_deleted,
    r.GroupRebalanced: _rebalanced,
    r.ConsumerSet: _consumer_set,
    r.ConsumerRenewed: _consumer_renewed,
    r.ConsumerChanged: _consumer_changed,
    r.ConsumerRemoved: _consumer_removed,
    r.ResourceAssigned: _resource_assigned,
    r.ResourceFreed: _resource_freed,
}

ROWS: Final[dict[type, Declare]] = {
    r.ConsumerGroupSet: _group_set_rows,
    r.ConsumerGroupDeleted: _group_deleted_rows,
    r.GroupRebalanced: _rebalanced_rows,
    r.ConsumerSet: _consumer_set_rows,
    r.ConsumerRenewed: _consumer_renewed_rows,
    r.ConsumerChanged: _consumer_changed_rows,
    r.ConsumerRemoved: _consumer_removed_rows,
    r.ResourceAssigned: _resource_assigned_rows,
    r.ResourceFreed: _resource_freed_rows,
    r.TokensGiven: _tokens_given_rows,
}
