"""Background work of topics in bounded steps: large deliveries, and the removal of subscriptions.

The master's tick drives it, and its mutations are replicated. A publish that matches more subscriptions than one entry
can hold is stored as one row. The row lists the subscriptions that still wait for a copy. A step stores copies for the
next of them and removes them from the row, in the same entry. So a new master continues after the last committed step,
and no subscription gets a message twice. Publishes are delivered in the order in which they were made. Subscriptions
are matched once, at the publish; one that is deleted before its copy is stored gets none.

The steps also remove subscriptions of deleted topics, and those that were not confirmed or restored in time.
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
    """The outcome of a step.

    mutations: to be proposed by the master. topic: owner and name of the topic whose copies the step stores, or None.
    counts: what became of these copies. is_more: whether another step is due at once.
    """

    mutations: list[m.Mutation] = field(default_factory=list)
    topic: tuple[str, str] | None = None
    counts: PublishCounts = field(default_factory=PublishCounts)
    is_more: bool = False


def has_work(state: State) -> bool:
    """Return whether a step may have anything to do."""
    topics = state.topics
    return bool(state.publishes or topics.orphans or topics.pending)


def step(state: State, context: ExecutionContext) -> Step:
    """Return the next step: copies of the oldest publish, and subscriptions to remove. The state is not changed."""
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
    assert topic.row is not None, "a stored publish has a topic with a row"
    found.topic, found.counts = (topic.row.account, topic.row.name), fan_out.counts


def _remove(state: State, context: ExecutionContext, found: Step) -> None:
    """Add the removal of subscriptions of deleted topics, and of those not confirmed or restored in time."""
    topics = state.topics
    for orphan in topics.orphans.values():
        for subscription in islice(orphan.all(), REMOVED_A_STEP):
            found.mutations += removed(state, subscription, context.now_ms)
        found.is_more = True
        return
    lapsed_ms = context.now_ms - limits.PENDING_SUBSCRIPTION_MS
    for subscription in topics.pending_until(lapsed_ms, REMOVED_A_STEP):
        found.mutations += removed(state, subscription, context.now_ms)
