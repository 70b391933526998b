"""Counts of what a master did: counted with the work, by queue and by subscription, and forgotten with these."""

from elasticq.engine.sweep import Sweeper
from elasticq.engine.tally import Tally
from elasticq.model import commands as c
from elasticq.model import topic_commands as t
from elasticq.model.limits import Limits
from tests.engine.desk import Desk
from tests.engine.topic_desk import TopicDesk, arn_of_queue, attribute


def counts(desk: TopicDesk, subscription: str) -> tuple[int, int, int]:
    """What the subscription's queue took, its dead-letter queue, and nothing."""
    number = desk.state.topics.by_key[subscription.rpartition(":")[2]].row.number
    found = desk.context.tally.copies.get(number)
    return (0, 0, 0) if found is None else (found.delivered, found.dead_lettered, found.failed)


def test_copies_are_counted_by_subscription_and_by_what_became_of_them() -> None:
    desk = TopicDesk()
    desk.topic()
    for name in ("taken", "gone", "lost", "dead"):
        desk.create(name)
    taken = desk.subscribe("taken", FilterPolicy={"kind": ["a"]})
    gone = desk.subscribe("gone", RedrivePolicy={"deadLetterTargetArn": arn_of_queue("dead")})
    lost = desk.subscribe("lost")
    for name in ("gone", "lost"):
        desk.do(c.DeleteQueue(queue_url=name))
    desk.publish("filtered by one of them")
    desk.publish("for all", message_attributes={"kind": attribute("a")})
    assert [counts(desk, each) for each in (taken, gone, lost)] == [(1, 0, 0), (0, 2, 0), (0, 0, 2)]


def test_what_is_delivered_in_steps_is_counted_with_its_step() -> None:
    desk = TopicDesk()
    desk.topic()
    desk.create("q")
    subscription = desk.subscribe("q")
    for number in range(3):
        desk.create(f"other-{number}")
        desk.subscribe(f"other-{number}")
    desk.context.limits = Limits(copies=2)
    desk.publish("to many")
    assert counts(desk, subscription) == (0, 0, 0)
    assert desk.step().is_more
    desk.step()
    assert desk.state.publishes == {}
    assert counts(desk, subscription) == (1, 0, 0)


def test_expired_messages_are_counted_by_their_queue() -> None:
    desk, tally = Desk(), Tally()
    sweeper = Sweeper(tally)
    for name in ("short", "long"):
        desk.create(name, MessageRetentionPeriod="60" if name == "short" else "600")
        for _ in range(3):
            desk.send(url=name)
    desk.wait(61)
    desk.write(sweeper.step(desk.state, desk.context.now_ms)[0])
    assert tally.expired == {desk.queue("short").id: 3}
    desk.write(sweeper.step(desk.state, desk.context.now_ms)[0])
    assert tally.expired == {desk.queue("short").id: 3}


def test_counts_go_with_what_they_are_of() -> None:
    desk = TopicDesk()
    desk.topic()
    desk.create("q")
    subscription = desk.subscribe("q")
    desk.publish("x")
    tally = desk.context.tally
    tally.expire(desk.queue("q").id, 2)
    tally.forget(desk.state)
    assert (len(tally.copies), len(tally.expired)) == (1, 1)
    desk.do(t.Unsubscribe(subscription))
    desk.do(c.DeleteQueue(queue_url="q"))
    tally.forget(desk.state)
    assert (tally.copies, tally.expired) == ({}, {})
