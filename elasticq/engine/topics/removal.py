"""The removal of a subscription: its row, and its inner queue if it has one."""

from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.topic_index import QUEUE_PROTOCOL, Subscription


def removed(state: State, subscription: Subscription, now_ms: int) -> list[m.Mutation]:
    """Return the mutations that delete a subscription and its inner queue."""
    found: list[m.Mutation] = [m.SubscriptionDeleted(subscription.row.number)]
    queue = None if subscription.row.protocol == QUEUE_PROTOCOL else state.names.get(subscription.target)
    if queue is not None:
        found.append(m.QueueDeleted(queue.id, now_ms))
    return found
