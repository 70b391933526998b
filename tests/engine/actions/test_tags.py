"""TagQueue, UntagQueue, ListQueueTags: limits and the rule that tags never change a queue's times."""

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue, MissingParameter, QueueDoesNotExist, QueueNameExists
from tests.engine.desk import Desk


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.do(c.CreateQueue(queue_name="jobs", tags={"team": "blue"}))
    return desk


def tags(desk: Desk) -> dict[str, str]:
    return desk.do(c.ListQueueTags(queue_url="jobs")).tags


def test_tagging_adds_and_overwrites(desk: Desk) -> None:
    desk.do(c.TagQueue(queue_url="jobs", tags={"team": "red", "cost centre": ""}))
    assert tags(desk) == {"team": "red", "cost centre": ""}
    assert desk.steps[-2] == [m.QueueTagged(desk.queue().id, {"team": "red", "cost centre": ""})]


def test_untagging_removes_and_an_unknown_key_is_no_error(desk: Desk) -> None:
    desk.do(c.UntagQueue(queue_url="jobs", tag_keys=["team", "other"]))
    assert tags(desk) == {}
    desk.do(c.UntagQueue(queue_url="jobs", tag_keys=["other"]))
    assert desk.steps[-1] == []


def test_case_of_keys_counts(desk: Desk) -> None:
    desk.do(c.TagQueue(queue_url="jobs", tags={"Team": "x"}))
    assert tags(desk) == {"team": "blue", "Team": "x"}


def test_fifty_tags_are_the_most(desk: Desk) -> None:
    desk.do(c.TagQueue(queue_url="jobs", tags={f"key{at}": "" for at in range(49)}))
    desk.do(c.TagQueue(queue_url="jobs", tags={"key1": "again"}))
    with pytest.raises(InvalidParameterValue, match=r"Too many tags added for queue jobs\."):
        desk.do(c.TagQueue(queue_url="jobs", tags={"one more": ""}))
    assert len(tags(desk)) == 50


@pytest.mark.parametrize(
    "bad", [{"": "x"}, {"k" * 129: ""}, {"k": "v" * 257}, {"aws:k": ""}, {"k": "AWS:v"}, {"k!": ""}, {"k": "v\n"}]
)
def test_bad_tags_are_refused_also_at_creation(desk: Desk, bad: dict[str, str]) -> None:
    with pytest.raises(InvalidParameterValue):
        desk.do(c.TagQueue(queue_url="jobs", tags=bad))
    with pytest.raises(InvalidParameterValue):
        desk.do(c.CreateQueue(queue_name="other", tags=bad))


@pytest.mark.parametrize("good", [{"k" * 128: "v" * 256}, {"a_b.c:d/e=f+g-h@i j": "äß1"}])
def test_allowed_characters_and_lengths_pass(desk: Desk, good: dict[str, str]) -> None:
    desk.do(c.TagQueue(queue_url="jobs", tags=good))
    assert tags(desk) == {"team": "blue", **good}


@pytest.mark.parametrize("command", [c.TagQueue(queue_url="jobs"), c.ListQueueTags()])
def test_members_that_are_required(desk: Desk, command: c.Command) -> None:
    with pytest.raises(MissingParameter):
        desk.do(command)


def test_untagging_needs_keys(desk: Desk) -> None:
    with pytest.raises(InvalidParameterValue, match=r"Tag keys must be between 1 and 128 characters in length\."):
        desk.do(c.UntagQueue(queue_url="jobs"))


def test_unknown_queue_is_an_error(desk: Desk) -> None:
    for command in (
        c.TagQueue(queue_url="none", tags={"a": "b"}),
        c.UntagQueue(queue_url="none", tag_keys=["a"]),
        c.ListQueueTags(queue_url="none"),
    ):
        with pytest.raises(QueueDoesNotExist):
            desk.do(command)


def test_creating_again_with_other_tags_is_refused(desk: Desk) -> None:
    desk.do(c.CreateQueue(queue_name="jobs"))
    desk.do(c.CreateQueue(queue_name="jobs", tags={"team": "blue"}))
    with pytest.raises(QueueNameExists):
        desk.do(c.CreateQueue(queue_name="jobs", tags={"team": "red"}))
