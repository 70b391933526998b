"""The effects of mutations on topics, subscriptions and undelivered publishes."""

from typing import Final

from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.tables import Drop, Put, RowChange
from elasticq.engine.writers import plain
from elasticq.engine.writers.contract import Declare, Undo, Writer


def _topic_set(state: State, mutation: m.TopicSet, undo: Undo | None) -> None:
    _add_topic_undo(state, mutation.number, undo)
    plain.write(state, _topic_set_rows(mutation), undo)
    state.topics.put_topic(mutation)


def _topic_set_rows(mutation: m.TopicSet) -> list[RowChange]:
    return [Put(m.TOPICS, mutation.number, mutation)]


def _topic_deleted(state: State, mutation: m.TopicDeleted, undo: Undo | None) -> None:
    _add_topic_undo(state, mutation.number, undo)
    plain.write(state, _topic_deleted_rows(mutation), undo)
    state.topics.drop_topic(mutation.number)


def _topic_deleted_rows(mutation: m.TopicDeleted) -> list[RowChange]:
    return [Drop(m.TOPICS, mutation.number)]


def _add_topic_undo(state: State, number: int, undo: Undo | None) -> None:
    if undo is not None:
        undo.append((_restore_topic, state, number, state.tables[m.TOPICS.name].get(number)))


def _restore_topic(state: State, number: int, row: m.TopicSet | None) -> None:
    if row is None:
        state.topics.drop_topic(number)
    else:
        state.topics.put_topic(row)


def _subscription_set(state: State, mutation: m.SubscriptionSet, undo: Undo | None) -> None:
    _add_subscription_undo(state, mutation.number, undo)
    plain.write(state, _subscription_set_rows(mutation), undo)
    state.topics.put_subscription(mutation)


def _subscription_set_rows(mutation: m.SubscriptionSet) -> list[RowChange]:
    return [Put(m.SUBSCRIPTIONS, mutation.number, mutation)]


def _subscription_deleted(state: State, mutation: m.SubscriptionDeleted, undo: Undo | None) -> None:
    _add_subscription_undo(state, mutation.number, undo)
    plain.write(state, _subscription_deleted_rows(mutation), undo)
    state.topics.drop_subscription(mutation.number)


def _subscription_deleted_rows(mutation: m.SubscriptionDeleted) -> list[RowChange]:
    return [Drop(m.SUBSCRIPTIONS, mutation.number)]


def _add_subscription_undo(state: State, number: int, undo: Undo | None) -> None:
    if undo is not None:
        undo.append((_restore_subscription, state, number, state.tables[m.SUBSCRIPTIONS.name].get(number)))


def _restore_subscription(state: State, number: int, row: m.SubscriptionSet | None) -> None:
    if row is None:
        state.topics.drop_subscription(number)
    else:
        state.topics.put_subscription(row)


def _publish_set_rows(mutation: m.PublishSet) -> list[RowChange]:
    return [Put(m.PUBLISHES, mutation.number, mutation)]


def _publish_delivered_rows(mutation: m.PublishDelivered) -> list[RowChange]:
    return [Drop(m.PUBLISHES, mutation.number)]


WRITERS: Final[dict[type, Writer]] = {
    m.TopicSet: _topic_set,
    m.TopicDeleted: _topic_deleted,
    m.SubscriptionSet: _subscription_set,
    m.SubscriptionDeleted: _subscription_deleted,
}

ROWS: Final[dict[type, Declare]] = {
    m.TopicSet: _topic_set_rows,
    m.TopicDeleted: _topic_deleted_rows,
    m.SubscriptionSet: _subscription_set_rows,
    m.SubscriptionDeleted: _subscription_deleted_rows,
    m.PublishSet: _publish_set_rows,
    m.PublishDelivered: _publish_delivered_rows,
}
