"""Publishes that a master matches in slices, between the calls of others and across failovers."""

import json

import pytest

from elasticq.model import commands as c
from elasticq.model import topic_commands as t
from elasticq.model.errors import TopicThrottled
from elasticq.model.results import EmptyResult, Result, SendMessageResult
from elasticq.model.topic_results import PublishResult
from elasticq.node.waits import publishes as matchings
from tests.node.cluster import Cluster, Solo

ARN = "arn:aws:sns:us-east-1:000000000000:news"
RANGES = {"a": [{"numeric": [">", 10**8 + at, "<", 10**8 + at + 2]} for at in range(0, 300, 2)]}
LONG = json.dumps({"a": [*range(30_000), 10**8 + 1]})
SETUP = (
    c.CreateQueue("jobs"),
    t.CreateTopic("news"),
    t.Subscribe(
        ARN,
        "sqs",
        "arn:aws:sqs:us-east-1:000000000000:jobs",
        {"FilterPolicyScope": "MessageBody", "FilterPolicy": json.dumps(RANGES), "RawMessageDelivery": "true"},
    ),
)


@pytest.fixture
def solo() -> Solo:
    made = Solo()
    for command in SETUP:
        made.do(command)
    return made


def bodies(solo: Solo) -> list[str]:
    (queue,) = solo.node.state.queues.values()
    return [each.body for each in queue.contents.values()]


def test_others_are_answered_between_the_slices(solo: Solo) -> None:
    ticket = solo.start_call(t.Publish(ARN, message=LONG))
    rounds = 0
    while not solo.answers(ticket):
        assert isinstance(solo.send("between"), SendMessageResult)
        solo.advance(1)
        rounds += 1
    assert rounds > 2
    (answer,) = solo.answers(ticket)
    assert isinstance(answer, PublishResult)
    assert bodies(solo) == ["between"] * rounds + [LONG]


def test_calls_take_turns_and_begin_when_others_have_ended(solo: Solo) -> None:
    tickets = [solo.start_call(t.Publish(ARN, message=LONG)) for _ in range(2 * matchings.BEGUN_MAX + 1)]
    assert len(solo.node._executor.matchings) == len(tickets)
    solo.advance(1_000)
    assert all(isinstance(solo.answers(ticket)[0], PublishResult) for ticket in tickets)
    assert len(bodies(solo)) == len(tickets)


def test_too_many_are_refused(solo: Solo) -> None:
    waiting = solo.node._executor.matchings
    last = [solo.start_call(t.Publish(ARN, message=LONG)) for _ in range(matchings.BEGUN_MAX + 1)][-1]
    call, ticket = waiting._later[0]
    assert ticket == last
    waiting._later.extend([(call, -1)] * (matchings.WAITING_MAX - 1))
    with pytest.raises(TopicThrottled):
        solo.do(t.Publish(ARN, message=LONG))


def test_a_publish_whose_client_left_is_forgotten(solo: Solo) -> None:
    tickets = [solo.start_call(t.Publish(ARN, message=LONG)) for _ in range(matchings.BEGUN_MAX + 2)]
    for ticket in (tickets[0], tickets[-1]):
        solo.call_node("cancel", ticket)
    solo.advance(1_000)
    assert [len(solo.answers(ticket)) for ticket in tickets] == [0, *[1] * matchings.BEGUN_MAX, 0]


def test_a_retry_while_the_first_attempt_is_matched_is_the_same_publish(solo: Solo) -> None:
    tickets = [solo.start_call(t.Publish(ARN, message=LONG), b"i" * 16) for _ in range(2)]
    solo.advance(1_000)
    answers = [solo.answers(ticket)[0] for ticket in tickets]
    assert [each.message_id for each in answers if isinstance(each, PublishResult)] == [answers[0].message_id] * 2  # type: ignore[union-attr]
    assert len(bodies(solo)) == 1


def test_the_next_master_begins_again() -> None:
    cluster = Cluster(hold_ms=25_000)
    cluster.introduce_all()
    master = cluster.elect()
    for command in SETUP:
        assert isinstance(cluster.do(master, command), Result)
    cluster.advance(300)
    follower = next(name for name in cluster.names if name != master)
    tickets = [(name, cluster.say(name, t.Publish(ARN, message=LONG))) for name in (master, follower)]
    assert len(cluster.node(master)._executor.matchings) == 2
    cluster.isolate(master)
    cluster.advance(5_000)
    assert not cluster.node(master)._executor.matchings
    cluster.heal()
    cluster.advance(5_000)
    for name, ticket in tickets:
        assert isinstance(cluster.answer(name, ticket), PublishResult)
    for name in cluster.names:
        (queue,) = cluster.node(name).state.queues.values()
        assert len(queue.contents) == 2
    assert isinstance(cluster.do(cluster.elect(), c.PurgeQueue("jobs")), EmptyResult)
