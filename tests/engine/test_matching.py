"""Publishes that are too much work for one turn."""

import json
from typing import Any

import pytest

from elasticq.engine import matching
from elasticq.engine.matching import Matching, Unfinished
from elasticq.model import topic_commands as t
from elasticq.model.errors import InvalidParameter
from tests.engine.topic_desk import TopicDesk, arn

RANGES = {"a": [{"numeric": [">", 10**8 + at, "<", 10**8 + at + 2]} for at in range(0, 300, 2)]}
NUMBERS = json.dumps({"a": list(range(30_000))})
HIT = json.dumps({"a": [*range(30_000), 10**8 + 1]})


def desk() -> TopicDesk:
    found = TopicDesk()
    found.topic()
    for name in ("jobs", "more"):
        found.create(name)
        found.subscribe(name, FilterPolicyScope="MessageBody", FilterPolicy=RANGES, RawMessageDelivery="true")
    return found


def finished(given: TopicDesk, command: Any) -> tuple[Any, int]:
    """The result of a publish that the node executes until it is finished, and how many slices it took."""
    slices = 1
    given.context.matching = None
    while True:
        try:
            return given.do(command), slices
        except Unfinished as unfinished:
            while not unfinished.matching.go_on():
                slices += 1
            given.context.matching = unfinished.matching


def test_a_publish_of_many_values_is_matched_in_slices() -> None:
    given = desk()
    for body, copies in ((NUMBERS, 0), (HIT, 1)):
        assert len(body) > 100_000
        _, slices = finished(given, t.Publish(arn(), message=body))
        assert slices > 3
        assert [given.bodies(name) for name in ("jobs", "more")] == [[body] * copies] * 2


def test_a_batch_counts_each_copy_once() -> None:
    given = desk()
    entries = [t.PublishBatchRequestEntry(f"{at}", body) for at, body in enumerate((HIT, '{"a": 100000001}'))]
    result, _ = finished(given, t.PublishBatch(arn(), entries))
    assert result.counts.delivered == 4
    assert given.context.tally.of(given.state.topics.by_key.popitem()[1].row.number).delivered == 2


def test_what_is_unsubscribed_meanwhile_gets_nothing() -> None:
    given = desk()
    subscription = given.subscribe(protocol="lambda", endpoint="arn:aws:lambda:us-east-1:000000000000:function:f")
    with pytest.raises(Unfinished) as raised:
        given.publish(HIT)
    given.do(t.Unsubscribe(subscription))
    while not raised.value.matching.go_on():
        given.subscribe(
            protocol="lambda", endpoint=f"arn:aws:lambda:us-east-1:000000000000:function:{len(given.state.queues)}"
        )
    given.context.matching = raised.value.matching
    assert given.publish(HIT).counts.delivered == 2


def test_a_publish_that_would_take_minutes_is_refused() -> None:
    given = desk()
    with pytest.raises(Unfinished) as raised:
        given.publish(HIT)
    raised.value.matching._slices = matching.SLICES_MAX
    assert raised.value.matching.go_on()
    given.context.matching = raised.value.matching
    with pytest.raises(InvalidParameter, match="takes too long to match"):
        given.publish(HIT)


def test_a_short_publish_is_matched_at_once() -> None:
    given = desk()
    assert given.publish('{"a": 100000001}').counts.delivered == 2
    assert Matching().of(0, given.state.topics.names["000000000000", "news"], None, "{}") == []
