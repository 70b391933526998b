"""A publish to more than an entry holds is one row, delivered in steps: each subscription once, come what may."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.engine.views.dump import dump
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import errors, limits
from elasticq.model import topic_commands as t
from tests.engine.desk import replayed
from tests.engine.topic_desk import TopicDesk, arn, attribute

MANY = limits.MUTATION_ROWS_MAX + 501


@pytest.fixture(scope="module")
def log() -> list[m.Mutation]:
    """A topic with more subscriptions than one entry has copies, all raw."""
    desk = TopicDesk()
    desk.topic()
    for number in range(MANY):
        desk.create(f"q{number}")
        desk.subscribe(f"q{number}", RawMessageDelivery="true")
    return desk.log


@pytest.fixture
def desk(log: list[m.Mutation]) -> TopicDesk:
    made = TopicDesk()
    made.state = replayed(log)
    made.context._numbers = MANY + 1
    return made


def copies(desk: TopicDesk) -> list[int]:
    return [queue.count for queue in desk.state.queues.values()]


def test_publish_is_one_row_and_each_subscription_gets_it_once(desk: TopicDesk) -> None:
    published = desk.publish("to all", invocation=b"1" * 16)
    (row, recorded) = desk.steps[-1]
    assert isinstance(row, m.PublishSet)
    assert isinstance(recorded, m.InvocationRecorded)
    assert (len(row.waiting), sum(copies(desk))) == (MANY, 0)
    again = desk.publish("to all", invocation=b"1" * 16)
    assert again.message_id == published.message_id
    assert desk.deliver() == 2
    assert copies(desk) == [1] * MANY
    assert desk.state.publishes == {}
    assert all(len(step) <= limits.MUTATION_ROWS_MAX + 1 for step in desk.steps[-2:])


def test_filters_are_asked_at_the_publish_and_not_at_the_delivery(desk: TopicDesk) -> None:
    some = list(desk.state.topics.by_key.values())
    desk.publish("to all", message_attributes={"a": attribute("b")})
    topic = arn()
    refusing, removed, last = some[MANY - 2], some[MANY - 1], some[0]
    desk.do(t.SetSubscriptionAttributes(f"{topic}:{refusing.row.key}", "FilterPolicy", '{"a": ["c"]}'))
    desk.do(t.Unsubscribe(f"{topic}:{removed.row.key}"))
    desk.create("late")
    desk.subscribe("late")
    desk.deliver()
    got = {queue.name: queue.count for queue in desk.state.queues.values()}
    assert got[refusing.target[1]] == got[last.target[1]] == 1, "it was chosen"
    assert got[removed.target[1]] == 0, "it is no subscription any more"
    assert got["late"] == 0, "it was none yet"


def test_publish_to_a_topic_that_goes_is_over(desk: TopicDesk) -> None:
    desk.publish("to all")
    desk.step()
    desk.do(t.DeleteTopic(arn()))
    desk.deliver()
    assert (desk.state.publishes, sum(copies(desk))) == ({}, limits.MUTATION_ROWS_MAX)


@pytest.mark.parametrize("steps", [0, 1])
def test_what_waits_is_in_a_snapshot_and_goes_on_there(desk: TopicDesk, steps: int) -> None:
    desk.publish("to all")
    for _ in range(steps):
        desk.step()
    joiner = TopicDesk()
    joiner.state = State()
    for chunk in dump(desk.state):
        for mutation in chunk:
            apply(joiner.state, mutation)
    assert state_digest(joiner.state) == state_digest(desk.state)
    joiner.deliver()
    assert copies(joiner) == [1] * MANY


def test_step_that_is_rolled_back_is_made_again(desk: TopicDesk) -> None:
    desk.publish("to all")
    desk.step()
    before = state_digest(desk.state)
    undo: Undo = []
    desk.step(undo)
    roll_back(undo)
    assert state_digest(desk.state) == before
    desk.context.term += 1
    desk.deliver()
    assert copies(desk) == [1] * MANY


def test_long_messages_to_few_go_in_steps_of_few_bytes() -> None:
    desk = TopicDesk()
    desk.topic()
    for number in range(30):
        desk.create(f"q{number}")
        desk.subscribe(f"q{number}")
    desk.publish("x" * 250_000)
    assert [type(mutation) for mutation in desk.steps[-1]] == [m.PublishSet]
    assert desk.deliver() > 3
    assert all(len(m.encode(step)) <= limits.ENTRY_BYTES_MAX for step in desk.steps)
    assert copies(desk) == [1] * 30


def test_messages_of_a_fifo_topic_wait_behind_one_that_is_not_delivered() -> None:
    desk = TopicDesk()
    desk.topic("orders.fifo")
    for number in range(30):
        desk.fifo(f"q{number}.fifo")
        desk.subscribe(f"q{number}.fifo", topic="orders.fifo", RawMessageDelivery="true")
    for at, body in enumerate(["x" * 250_000, "second", "third"]):
        desk.publish(body, topic="orders.fifo", message_group_id="g", message_deduplication_id=str(at))
        desk.step()
    assert len(desk.state.publishes) > 1
    desk.deliver()
    for number in range(30):
        assert [body[:6] for body in desk.bodies(f"q{number}.fifo")] == ["xxxxxx", "second", "third"]


def test_subscriptions_that_nobody_confirms_lapse_whichever_was_changed_last() -> None:
    desk = TopicDesk()
    desk.topic()
    old = desk.subscribe(protocol="http", endpoint="http://old")
    desk.wait(1)
    desk.subscribe(protocol="http", endpoint="http://young")
    desk.do(t.SetSubscriptionAttributes(old, "RawMessageDelivery", "true"))
    desk.wait(limits.PENDING_SUBSCRIPTION_MS // 1_000 - 1)
    desk.deliver()
    assert [each.row.endpoint for each in desk.state.topics.by_key.values()] == ["http://young"]
    desk.wait(1)
    desk.deliver()
    assert desk.state.topics.by_key == {}


@pytest.mark.pure
def test_too_many_that_wait_throttle_the_publisher(desk: TopicDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PUBLISHES_MAX", 1)
    desk.publish("1")
    with pytest.raises(errors.TopicThrottled):
        desk.publish("2")
    desk.deliver()
    desk.publish("2")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["publish", "step", "lose", "takeover", "subscribe", "unsubscribe"]), max_size=12))
def test_each_subscription_that_stays_gets_each_publish_once(actions: list[str]) -> None:
    """A topic whose publishes never fit one entry, as their messages are long."""
    desk = TopicDesk()
    desk.topic()
    for number in range(4):
        desk.create(f"q{number}")
    arns = [desk.subscribe(f"q{number}", RawMessageDelivery="true") for number in range(3)]
    published: list[str] = []
    for action in actions:
        if action == "publish":
            published.append(f"{len(published)}" + "x" * 1_000_000)
            desk.do(t.SetTopicAttributes(arn(), "MaximumMessageSize", str(limits.TOPIC_MESSAGE_BYTES_MAX)))
            desk.publish(published[-1])
        elif action == "step":
            desk.step()
        elif action == "lose":
            undo: Undo = []
            desk.step(undo)
            roll_back(undo)
        elif action == "takeover":
            desk.context.term += 1
        elif action == "subscribe":
            desk.subscribe("q3", RawMessageDelivery="true")
        elif arns:
            desk.do(t.Unsubscribe(arns.pop()))
    desk.deliver()
    for number in range(len(arns)):
        assert sorted(desk.bodies(f"q{number}")) == sorted(published), "in any order: the topic is not FIFO"
    for number in range(4):
        bodies = desk.bodies(f"q{number}")
        assert len(set(bodies)) == len(bodies), "none twice"
