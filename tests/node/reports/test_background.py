"""What a member is busy with in the background."""

import json

from elasticq.engine.sweep import reclaim
from elasticq.model import commands as c
from elasticq.model import limits
from elasticq.model import topic_commands as t
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.node.reports.background import (
    DELIVERY,
    FETCH,
    MOVE,
    RECLAIM,
    REMOVAL,
    SWEEP,
    TRANSFER,
    Task,
    of_member,
    of_state,
)
from elasticq.replication.progress import Progress
from tests.engine.desk import START_MS, Desk
from tests.engine.topic_desk import TopicDesk, arn

PREFIX = "arn:aws:sqs:us-east-1:000000000000:"
MANY = limits.MUTATION_ROWS_MAX + 1


def test_a_move_is_told_with_its_progress_and_rate() -> None:
    desk = Desk()
    desk.create("dead")
    policy = json.dumps({"deadLetterTargetArn": f"{PREFIX}dead", "maxReceiveCount": 1})
    desk.create("jobs", RedrivePolicy=policy)
    for _ in range(3):
        desk.send(url="dead")
    assert of_state(desk.state, 10) == []
    desk.do(c.StartMessageMoveTask(PREFIX + "dead", PREFIX + "jobs", 7))
    expected = Task(MOVE, DEFAULT_ACCOUNT, "dead", PREFIX + "jobs", done=0, left=3, rate=7, since_ms=START_MS)
    assert of_state(desk.state, 10) == [expected]
    assert of_state(desk.state, 0) == []


def test_a_publish_in_steps_and_the_removal_of_a_topic_are_told() -> None:
    desk = TopicDesk()
    desk.topic()
    for number in range(MANY):
        desk.create(f"q{number}")
        desk.subscribe(f"q{number}")
    desk.publish("to all")
    assert of_state(desk.state, 10) == [Task(DELIVERY, DEFAULT_ACCOUNT, "news", left=MANY, since_ms=START_MS)]
    desk.deliver()
    assert of_state(desk.state, 10) == []
    desk.do(t.DeleteTopic(topic_arn=arn()))
    (told,) = of_state(desk.state, 10)
    assert (told.kind, told.left) == (
        REMOVAL,
        sum(len(each.subscriptions) for each in desk.state.topics.orphans.values()),
    )
    assert told.left


def test_purged_messages_are_told_until_their_memory_is_given_back() -> None:
    desk = Desk()
    desk.create()
    for _ in range(3):
        desk.send()
    desk.receive()
    desk.do(c.PurgeQueue(queue_url="jobs"))
    assert of_state(desk.state, 10) == [Task(RECLAIM, left=4)]
    while reclaim(desk.state, 1 << 60):
        pass
    assert of_state(desk.state, 10) == []


def test_a_member_that_takes_the_state_and_a_sweep_that_is_behind_are_told() -> None:
    followers = {"n2-0123456789abcdef": Progress(1), "n3-0123456789abcdef": Progress(1, 40, offered_index=90)}
    assert of_member(followers, 100, None, is_sweep_behind=False) == [Task(TRANSFER, name="n3", left=60)]
    assert of_member({}, 100, "n1-0123456789abcdef", is_sweep_behind=True) == [Task(FETCH, name="n1"), Task(SWEEP)]
