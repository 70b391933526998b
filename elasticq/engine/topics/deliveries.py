"""Deliveries that one entry could not hold: replicated background work in bounded steps, driven by the master's tick.

A publish that matches too many subscriptions is one row, with the numbers of those that it still waits for: its
cursor. A step stores copies for the next of them and writes the row without them, in the same entry, so that a new
master goes on where the last committed step ended and no subscription gets a message twice. Publishes go in the order
in which they were made. What was chosen at the publish is not chosen again; a subscription that is deleted meanwhile
gets nothing more.

Besides, subscriptions go whose topic was deleted, and those that nobody confirmed, or restored, in time.
"""

from itertools import islice
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from elasticq.engine.context import ExecutionContext
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.topic_index import Topic
from elasticq.engine.topics.arns import arn_of
from elasticq.engine.topics.fan_out import FanOut, Message, read_texts
from elasticq.engine.topics.removal import removed
from elasticq.model import limits
from elasticq.model.topic_results import PublishCounts

BYTES_A_STEP: Final = 2 * 1_048_576
REMOVED_A_STEP: Final = 500  # subscriptions, each with its inner queue


class Step(Struct):
    """mutations to propose; counts: of the copies among them, which are all of the topic of this owner and name;
    is_more: whether another step is due at once.
    """

    mutations: list[m.Mutation] = field(default_factory=list)
    topic: tuple[str, str] | None = None
    counts: PublishCounts = field(default_factory=PublishCounts)
    is_more: bool = False


def has_work(state: State) -> bool:
    topics = state.topics
    return bool(state.publishes or topics.orphans or topics.pending)


def step(state: State, context: ExecutionContext) -> Step:
    """A bit of the oldest publish, and of what must be removed. Changes nothing."""
    found = Step()
    for publish in state.publishes.values():
        topic = state.topics.by_number.get(publish.topic)
        if topic is None:
            found.mutations.append(m.PublishDelivered(publish.number))
        else:
            _deliver(state, publish, topic, context, found)
        found.is_more = True
        break
    _remove(state, context, found)
    return found


def _deliver(state: State, publish: m.PublishSet, topic: Topic, context: ExecutionContext, found: Step) -> None:
    message = Message(
        state,
        topic,
        arn_of(topic, context),
        publish.number,
        publish.published_ms,
        publish.base_url,
        publish.message,
        texts=read_texts(publish.message) if publish.is_structured else None,
        subject=publish.subject,
        attributes=publish.attributes,
        trace_header=publish.trace_header,
        group_id=publish.group_id,
        deduplication_id=publish.deduplication_id,
        sign=context.sign,
    )
    count = max(1, min(context.limits.copies, BYTES_A_STEP // message.copies_bytes(1)))
    waiting = m.from_distances(publish.waiting)
    now, later = waiting[:count], waiting[count:]
    fan_out = FanOut(state, context, is_checked=publish.is_checked)
    fan_out.add(message, [topic.subscriptions[number] for number in now if number in topic.subscriptions])
    found.mutations += fan_out.mutations
    found.mutations.append(
        replace(publish, waiting=m.distances(later)) if later else m.PublishDelivered(publish.number)
    )
    assert topic.row is not None, "it is published to"
    found.topic, found.counts = (topic.row.account, topic.row.name), fan_out.counts


def _remove(state: State, context: ExecutionContext, found: Step) -> None:
    """The subscriptions of deleted topics, and those that were not confirmed or restored in time."""
    topics = state.topics
    for orphan in topics.orphans.values():
        for subscription in islice(orphan.all(), REMOVED_A_STEP):
            found.mutations += removed(state, subscription, context.now_ms)
        found.is_more = True
        return
    lapsed_ms = context.now_ms - limits.PENDING_SUBSCRIPTION_MS
    for subscription in topics.pending_until(lapsed_ms, REMOVED_A_STEP):
        found.mutations += removed(state, subscription, context.now_ms)
