"""limits = relaxed: what ElasticMQ lets pass, up to what one call may cost."""

import pytest

from elasticq.model import commands as c
from elasticq.model.commands import MessageAttributeValue as Value
from elasticq.model.errors import InvalidMessageContents, InvalidParameterValue, SqsError, TooManyEntriesInBatchRequest
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
