"""limits = relaxed: what ElasticMQ lets pass, up to what one call may cost."""

import pytest

from elasticq.engine.context import IGNORED_MAX
from elasticq.model import commands as c
from elasticq.model.commands import MessageAttributeValue as Value
from elasticq.model.errors import (
    InvalidAttributeName,
    InvalidAttributeValue,
    InvalidMessageContents,
    InvalidParameterValue,
    SqsError,
    TooManyEntriesInBatchRequest,
)
from elasticq.model.limits import RELAXED
from elasticq.model.results import SendMessageBatchResult
from tests.engine.desk import Desk


def relaxed(**attributes: str) -> Desk:
    desk = Desk()
    desk.context.limits = RELAXED
    desk.create(**attributes)
    return desk


def entries(count: int) -> list[c.SendMessageBatchEntry]:
    return [c.SendMessageBatchEntry(id=str(at), message_body="x") for at in range(count)]


@pytest.mark.parametrize(
    "command",
    [
        c.SendMessage("jobs", "x" * (2 * 1_048_576)),
        c.SendMessage("jobs", "\x00\x0b"),
        c.SendMessage("jobs", "x", message_attributes={str(at): Value("String", "x") for at in range(30)}),
        c.SendMessage("jobs", "x", message_attributes={"a": Value("String", "")}),
        c.SendMessage("jobs", "x", message_attributes={"a": Value("Number", "9" * 60)}),
        c.SendMessageBatch("jobs", entries(25)),
        c.ReceiveMessage("jobs", max_number_of_messages=5_000),
        c.ReceiveMessage("jobs", wait_time_seconds=120),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_strict_limits_refuse_passes(command: c.Command) -> None:
    desk = relaxed()
    desk.do(command)
    desk.context.limits = Desk().context.limits
    with pytest.raises(SqsError):
        desk.do(command)


@pytest.mark.parametrize(
    "command",
    [
        c.CreateQueue("more", {"QueueName": "more", "DelaySeconds": "7"}),
        c.SetQueueAttributes("jobs", {"Colour": "red", "DelaySeconds": "7"}),
    ],
    ids=lambda command: type(command).__name__,
)
def test_unknown_attributes_of_queues_are_passed_over_and_noted(command: c.CreateQueue | c.SetQueueAttributes) -> None:
    desk = relaxed()
    desk.do(command)
    (unknown,) = {*command.attributes} - {"DelaySeconds"}
    assert desk.context.ignored == {unknown}
    attributes = desk.queue("more" if isinstance(command, c.CreateQueue) else "jobs").attributes
    assert attributes == {"DelaySeconds": "7"}
    desk.context.limits = Desk().context.limits
    with pytest.raises(InvalidAttributeName):
        desk.do(command)


def test_a_set_of_unknown_attributes_only_changes_nothing() -> None:
    desk = relaxed()
    desk.do(c.SetQueueAttributes("jobs", {"Colour": "red"}))
    assert desk.steps[-1] == []


@pytest.mark.parametrize("name", ["QueueArn", "ContentBasedDeduplication", "FifoQueue"])
def test_known_attributes_that_do_not_fit_are_refused_still(name: str) -> None:
    desk = relaxed()
    with pytest.raises((InvalidAttributeName, InvalidAttributeValue)):
        desk.do(c.SetQueueAttributes("jobs", {name: "true"}))


def test_what_is_noted_is_bounded_and_fit_for_a_log() -> None:
    desk = relaxed()
    for name in ("a\nb", "x" * 65, "", "é", *map(str, range(2 * IGNORED_MAX))):
        desk.do(c.SetQueueAttributes("jobs", {name: "1"}))
    assert len(desk.context.ignored) == IGNORED_MAX
    assert all(name.isdigit() for name in desk.context.ignored)


def test_a_relaxed_queue_takes_more_than_its_maximum_size() -> None:
    desk = relaxed(MaximumMessageSize="1024")
    desk.send("x" * 2_000)
    assert len(desk.receive_one().body) == 2_000


def test_a_relaxed_receive_answers_a_hundred_at_most() -> None:
    desk = relaxed()
    sent = desk.do(c.SendMessageBatch("jobs", entries(150)))
    assert isinstance(sent, SendMessageBatchResult)
    assert len(sent.successful) == 150
    assert len(desk.receive(1_000)) == 100
    assert len(desk.receive(1_000)) == 50


def test_a_relaxed_receive_answers_what_fits_and_one_at_least() -> None:
    desk = relaxed()
    for _ in range(3):
        desk.send("x" * (4 * 1_048_576))
    assert [len(desk.receive(10)) for _ in range(4)] == [1, 1, 1, 0]


def test_relaxed_limits_have_bounds_too() -> None:
    desk = relaxed()
    for command, error in (
        (c.SendMessage("jobs", "x" * (5 * 1_048_576)), InvalidParameterValue),
        (c.SendMessage("jobs", "\ud800"), InvalidMessageContents),
        (c.SendMessageBatch("jobs", entries(1_001)), TooManyEntriesInBatchRequest),
        (c.ReceiveMessage("jobs", wait_time_seconds=50_000), InvalidParameterValue),
        (c.ReceiveMessage("jobs", max_number_of_messages=0), InvalidParameterValue),
    ):
        with pytest.raises(error):
            desk.do(command)
