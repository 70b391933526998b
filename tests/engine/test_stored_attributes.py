"""What a client stores can be read wherever it is read again; a damaged value counts as absent."""

import json
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from elasticq.engine.apply import apply
from elasticq.engine.ordering.sharing import WEIGHTS
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.redrive_policies import ALLOW_POLICY, POLICY
from elasticq.engine.stored_attributes import READERS
from elasticq.engine.views.digest import state_digest
from elasticq.engine.views.dump import dump
from elasticq.model import commands as c
from elasticq.model import topic_commands as t
from elasticq.model.errors import SqsError
from elasticq.model.limits import RETENTION_S_DEFAULT
from elasticq.model.names import DEFAULT_ACCOUNT
from tests.engine.topic_desk import TopicDesk, arn, arn_of_queue
from tests.model.test_documents import at_stack_depth, nested

DEPTHS = (1, 3, 28, 29, 30, 31, 32, 33, 100, 140, 150, 151, 290, 300, 310, 400, *range(500, 1_000, 9), 5_000)
DEAD = json.dumps({"deadLetterTargetArn": arn_of_queue("dead"), "maxReceiveCount": 3})
Store = Callable[[str, str], c.Command]


def of_queue(name: str) -> Store:
    return lambda text, key: c.SetQueueAttributes("jobs", {name: text})


def of_topic(name: str) -> Store:
    return lambda text, key: t.SetTopicAttributes(arn(), name, text)


def of_subscription(name: str) -> Store:
    return lambda text, key: t.SetSubscriptionAttributes(key, name, text)


def with_member(document: str) -> Callable[[int], str]:
    """Return the document with one more member of a depth."""
    head = document[:-1] + (", " if len(document) > 2 else "")
    return lambda depth: f'{head}"x": {nested(depth)}}}'


DOCUMENTS: dict[str, tuple[Callable[[int], str], Store]] = {
    "queue RedrivePolicy": (with_member(DEAD), of_queue(POLICY)),
    "queue RedriveAllowPolicy": (with_member('{"redrivePermission": "allowAll"}'), of_queue(ALLOW_POLICY)),
    "queue Policy": (with_member('{"Version": "2012-10-17", "Statement": []}'), of_queue("Policy")),
    "queue weights": (with_member('{"a": 2}'), of_queue(WEIGHTS)),
    "topic Policy": (with_member('{"Version": "2012-10-17", "Statement": []}'), of_topic("Policy")),
    "topic DeliveryPolicy": (with_member('{"http": {}}'), of_topic("DeliveryPolicy")),
    "topic DeliveryPolicy in http": (lambda depth: f'{{"http": {{"x": {nested(depth)}}}}}', of_topic("DeliveryPolicy")),
    "data protection": (with_member("{}"), lambda text, key: t.PutDataProtectionPolicy(arn(), text)),
    "subscription RedrivePolicy": (with_member(DEAD), of_subscription(POLICY)),
    "subscription DeliveryPolicy": (with_member('{"healthyRetryPolicy": {}}'), of_subscription("DeliveryPolicy")),
    "filter of lists": (with_member("{}"), of_subscription("FilterPolicy")),
    "filter of objects": (lambda depth: '{"a":' * depth + '["x"]' + "}" * depth, of_subscription("FilterPolicy")),
    "filter of $or": (
        lambda depth: '{"$or":[{"b":["y"]},' * depth + '{"a":["x"]}' + "]}" * depth,
        of_subscription("FilterPolicy"),
    ),
}


def reloaded(state: State, frames: int) -> State:
    """Return the state of a member that reads all rows again, from so many more frames."""
    fresh = State()

    def load() -> None:
        for chunk in dump(state):
            for mutation in chunk:
                apply(fresh, mutation)

    at_stack_depth(frames, load)
    return fresh


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_document_that_was_accepted_is_read_on_every_stack(kind: str) -> None:
    document, store = DOCUMENTS[kind]
    accepted: dict[int, set[int]] = {}
    desk = TopicDesk()
    desk.create("dead")
    desk.create(ElasticqFairness="weighted")
    desk.topic()
    key = desk.subscribe("dead", FilterPolicyScope="MessageBody")
    for frames in (0, 400):
        for depth in DEPTHS:
            command = store(document(depth), key)
            try:
                at_stack_depth(frames, lambda command=command: desk.do(command))
            except SqsError:
                continue
            accepted.setdefault(frames, set()).add(depth)
            again = reloaded(desk.state, 300 - frames // 2)
            assert state_digest(again) == state_digest(desk.state)
            assert not any(queue.unreadable for queue in again.queues.values())
            assert not any(each.unreadable for each in again.topics.all_subscriptions())
            at_stack_depth(300, lambda: desk.do(t.GetTopicAttributes(arn())))
            at_stack_depth(300, lambda: desk.do(t.GetSubscriptionAttributes(key)))
    assert accepted.get(0) == accepted.get(400), "the depth of the stack does not decide"
    assert all(depth <= 150 for depth in accepted.get(0, ()))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("value", ["soon", "-", "9" * 5_000, "[]", nested(900), '{"a": "b"}'])
def test_damaged_attribute_of_a_queue_counts_as_absent(name: str, value: str) -> None:
    state = State()
    attributes = {"ElasticqFairness": "weighted", "ReceiveMessageWaitTimeSeconds": "7", name: value}
    apply(state, m.QueueCreated(1, DEFAULT_ACCOUNT, "jobs", attributes, {}, 1))
    queue = state.queues[1]
    assert queue.unreadable == {name}
    assert queue.attributes == attributes
    assert (queue.wait_s, queue.redrive) == (0 if name == "ReceiveMessageWaitTimeSeconds" else 7, None)
    assert queue.retention_ms == RETENTION_S_DEFAULT * 1_000
    apply(state, m.QueueAttributesSet(1, {}, 2))
    assert not queue.unreadable


def test_damaged_number_of_partitions_counts_as_none() -> None:
    for value in ("x", "-1", "1", "257", "9" * 5_000):
        attributes = {"FifoQueue": "true", "ElasticqPartitions": value}
        assert Queue(1, "", "a.fifo", 0, State().grace, attributes).partitions == 0


def test_damaged_attributes_of_a_subscription_deliver_nothing() -> None:
    desk = TopicDesk()
    desk.create()
    desk.topic()
    desk.subscribe()
    (subscription,) = desk.state.topics.all_subscriptions()
    row = subscription.row
    for damaged in ({"FilterPolicy": nested(900)}, {"FilterPolicy": "{", "RedrivePolicy": "[]"}):
        apply(desk.state, replace(row, attributes=damaged))
        (found,) = desk.state.topics.all_subscriptions()
        assert set(found.unreadable) == set(damaged)
        desk.publish()
        assert desk.messages() == []


def test_engine_reads_stored_json_by_one_reader(pytestconfig: pytest.Config) -> None:
    """Any other reader refuses by the depth of the stack, so that what was stored once cannot be read later."""
    after_the_reader = {"policies/language.py", "filters/document.py"}
    allowed = {*after_the_reader, "topics/fan_out.py", "stored/envelopes.py"}  # texts of messages, and our own
    engine = pytestconfig.rootpath / "elasticq" / "engine"
    found = [
        path.relative_to(engine).as_posix()
        for path in engine.rglob("*.py")
        if any(reader in path.read_text() for reader in ("json.loads", "json.decode", "json.Decoder"))
    ]
    assert set(found) <= allowed
