"""Faults planted in how topics deliver: each breaks "all or none, once each" in another way."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest.mock import patch

from msgspec.structs import replace

from elasticq.engine import retry_answers
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.execute import HANDLERS, Handler
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.identity import next_sequence
from elasticq.engine.stored.topic_index import Topic
from elasticq.engine.topics import deliveries
from elasticq.engine.topics.deliveries import Step
from elasticq.model.commands import Call
from elasticq.model.topic_commands import Publish
from elasticq.node import executor as executor_module
from tests.sim.planted import retries_without_memory


@contextmanager
def copies_in_two_entries() -> Iterator[None]:
    """A publish stores its first copy; the others follow with the next other command that changes something."""
    honest, publish = executor_module._run, HANDLERS[Publish].run
    late: dict[int, list[m.MessageStored]] = {}

    def halved(state: State, call: Call, command: Publish, context: ExecutionContext) -> Outcome:
        result, mutations = publish(state, call, command, context)
        copies = [each for each in mutations if isinstance(each, m.MessageStored)]
        late.setdefault(id(state), []).extend(copies[1:])
        return result, [each for each in mutations if each not in copies[1:]]

    def following(state: State, call: Call, context: ExecutionContext) -> Outcome:
        result, mutations = honest(state, call, context)
        if mutations and not isinstance(call.command, Publish):
            lasts: dict[int, int] = {}
            for copy in late.pop(id(state), ()):
                last = lasts.get(copy.queue_id, state.queues[copy.queue_id].last_sequence)
                lasts[copy.queue_id] = sequence = next_sequence(last, context.term)
                mutations.append(replace(copy, sequence=sequence))
        return result, mutations

    with (
        patch.dict(HANDLERS, {Publish: Handler(halved, retry_answers.PUBLISHED)}),
        patch.object(executor_module, "_run", following),
    ):
        yield


@contextmanager
def cursor_in_memory_only() -> Iterator[None]:
    """How far a publish was delivered is known to its master alone: the next one begins anew."""
    honest, known = deliveries._deliver, dict[tuple[int, int], list[int]]()

    def forgetful(state: State, publish: m.PublishSet, topic: Topic, context: ExecutionContext, found: Step) -> None:
        key = id(state), publish.number
        honest(state, replace(publish, waiting=known.get(key, publish.waiting)), topic, context, found)
        for mutation in found.mutations:
            if isinstance(mutation, m.PublishSet):
                known[key] = mutation.waiting
        found.mutations = [each for each in found.mutations if not isinstance(each, m.PublishSet)]

    with patch.object(deliveries, "_deliver", forgetful):
        yield


@contextmanager
def filter_asked_at_the_delivery() -> Iterator[None]:
    """Who gets a publish that is delivered in steps is asked again at each of them."""
    honest = deliveries._deliver

    def late(state: State, publish: m.PublishSet, topic: Topic, context: ExecutionContext, found: Step) -> None:
        matching = set(topic.matching(publish.attributes, publish.message))
        still = [number for number in m.from_distances(publish.waiting) if number in matching]
        if still:
            honest(state, replace(publish, waiting=m.distances(still)), topic, context, found)
        else:
            found.mutations.append(m.PublishDelivered(publish.number))

    with patch.object(deliveries, "_deliver", late):
        yield


def retried_publish_is_another() -> AbstractContextManager[None]:
    return retries_without_memory(Publish)
