"""Attributes of queues whose groups share: what they say, and AWS-shaped errors for what they may not."""

import json

import pytest

from elasticq.engine.ordering.sharing import Sharing, sharing_of
from elasticq.model import commands as c
from elasticq.model import limits
from elasticq.model.errors import InvalidAttributeName, InvalidAttributeValue
from tests.engine.desk import Desk

ALL = {
    "ElasticqFairness": "weighted",
    "ElasticqGroupSeparator": ".",
    "ElasticqGroupWeights": '{"a": 3, "nobody yet": 2}',
    "ElasticqMaxInFlightPerGroup": "5",
}


def test_attributes_say_how_groups_share() -> None:
    sharing = sharing_of(ALL)
    assert sharing is not None
    assert (sharing.separator, sharing.weights, sharing.in_flight_max) == (".", {"a": 3, "nobody yet": 2}, 5)
    assert not sharing.is_adaptive
    assert Sharing({**ALL, "ElasticqFairness": "adaptive"}).weights == {}
    assert sharing_of({}) is sharing_of({"ElasticqFairness": "sqs"}) is None


def test_attributes_read_back_and_may_be_changed_and_taken_away() -> None:
    desk = Desk()
    desk.create(**ALL)
    desk.create(**{**ALL, "ElasticqGroupWeights": '{"nobody yet":2,"a":3}'})
    shown = desk.do(c.GetQueueAttributes("jobs", ["All"])).attributes
    assert {name: shown[name] for name in ALL} == ALL
    desk.do(c.SetQueueAttributes("jobs", {"ElasticqGroupWeights": "", "ElasticqGroupSeparator": ""}))
    desk.do(c.SetQueueAttributes("jobs", {"ElasticqFairness": "sqs", "ElasticqMaxInFlightPerGroup": "0"}))
    shown = desk.do(c.GetQueueAttributes("jobs", ["All"])).attributes
    assert {name for name in ALL if name in shown} == {"ElasticqFairness", "ElasticqMaxInFlightPerGroup"}


MANY = json.dumps({str(at): 1 for at in range(limits.GROUP_WEIGHTS_MAX + 1)})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ElasticqFairness", "fair", "ElasticqFairness"),
        ("ElasticqFairness", "", "ElasticqFairness"),
        ("ElasticqGroupSeparator", "::", "punctuation"),
        ("ElasticqGroupSeparator", "a", "punctuation"),
        ("ElasticqGroupSeparator", " ", "punctuation"),
        ("ElasticqGroupWeights", "{", "JSON map"),
        ("ElasticqGroupWeights", "[1]", "JSON map"),
        ("ElasticqGroupWeights", "[" * 5_000, "JSON map"),
        ("ElasticqGroupWeights", '{"a": -1}', "between 1 and 1000"),
        ("ElasticqGroupWeights", '{"a": 0}', "between 1 and 1000"),
        ("ElasticqGroupWeights", '{"a": 1001}', "between 1 and 1000"),
        ("ElasticqGroupWeights", '{"a": 1.5}', "between 1 and 1000"),
        ("ElasticqGroupWeights", '{"a": true}', "between 1 and 1000"),
        ("ElasticqGroupWeights", '{"a": NaN}', "Must be a JSON map"),
        ("ElasticqGroupWeights", MANY, "at most 1000 weights"),
        ("ElasticqMaxInFlightPerGroup", "-1", "ElasticqMaxInFlightPerGroup"),
        ("ElasticqMaxInFlightPerGroup", "120001", "ElasticqMaxInFlightPerGroup"),
        ("ElasticqMaxInFlightPerGroup", "x", "ElasticqMaxInFlightPerGroup"),
    ],
)
def test_wrong_values_are_refused_and_nothing_is_changed(name: str, value: str, words: str) -> None:
    desk = Desk()
    desk.create(ElasticqFairness="round_robin")
    before = dict(desk.queue().attributes)
    with pytest.raises(InvalidAttributeValue, match=words):
        desk.do(c.SetQueueAttributes("jobs", {name: value}))
    with pytest.raises(InvalidAttributeValue, match=words):
        desk.create("other", **{"ElasticqFairness": "weighted", name: value})
    assert desk.queue().attributes == before


def test_limit_needs_groups_that_share() -> None:
    desk = Desk()
    with pytest.raises(InvalidAttributeValue, match="needs ElasticqFairness"):
        desk.create(ElasticqMaxInFlightPerGroup="3")
    desk.create(ElasticqFairness="adaptive", ElasticqMaxInFlightPerGroup="3")
    with pytest.raises(InvalidAttributeValue, match="needs ElasticqFairness"):
        desk.do(c.SetQueueAttributes("jobs", {"ElasticqFairness": "sqs"}))


@pytest.mark.parametrize(("queue", "kind"), [("q.fifo", {"FifoQueue": "true"}), ("q", {"ElasticqOrder": "priority"})])
def test_other_kinds_of_queue_do_not_share(queue: str, kind: dict[str, str]) -> None:
    desk = Desk()
    for name, value in ALL.items():
        with pytest.raises(InvalidAttributeName, match=f"{name} only for standard queues"):
            desk.create(queue, **kind, **{name: value})
