"""Scheduled messages: delivered at their time, found, moved and cancelled by their ids, kept from delivery on."""

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.engine.sweep import Sweeper
from elasticq.engine.views.digest import state_digest
from elasticq.model import commands as c
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.errors import InvalidParameterValue, MissingParameter, UnsupportedOperation
from elasticq.model.extensions import ElasticqCancelScheduled, ElasticqReschedule, Peek
from elasticq.model.results import PrioritiesChangedResult, SendMessageBatchResult
from tests.engine.desk import Desk, replayed

YEAR_S = 365 * 86_400
every_kind = pytest.mark.parametrize("kind", [{}, {"ElasticqOrder": "priority"}, {"ElasticqFairness": "weighted"}])


def at(time_ms: int) -> dict[str, MessageAttributeValue]:
    return {"ElasticqDeliverAt": MessageAttributeValue("Number", str(time_ms))}


def schedule(desk: Desk, body: str, in_s: float, group: str | None = None) -> str:
    time_ms = desk.context.now_ms + int(in_s * 1_000)
    command = c.SendMessage("jobs", body, message_attributes=at(time_ms), message_group_id=group)
    return str(desk.do(command).message_id)


def made(**attributes: str) -> Desk:
    desk = Desk()
    desk.create(**attributes)
    return desk


def bodies(desk: Desk) -> list[str]:
    return [message.body for message in desk.receive(10)]


def changed(desk: Desk, command: ElasticqReschedule | ElasticqCancelScheduled, invocation: bytes = b"") -> list[str]:
    result = desk.do(command, invocation=invocation)
    assert isinstance(result, PrioritiesChangedResult)
    return result.changed


@every_kind
def test_message_comes_at_its_time_not_before(kind: dict[str, str]) -> None:
    desk = made(DelaySeconds="900", **kind)
    schedule(desk, "in an hour", 3_600, "a")
    schedule(desk, "at once", -5)
    schedule(desk, "in two hours", 7_200)
    assert bodies(desk) == ["at once"], "its time counts in place of the queue's delay"
    desk.wait(3_599.999)
    assert desk.counts() == (1, 0, 2)
    desk.wait(0.001)
    assert "in an hour" in bodies(desk)
    desk.wait(3_600)
    assert "in two hours" in bodies(desk)


def test_wrong_times_fail_their_entry_alone_and_fifo_queues_have_none() -> None:
    desk = made(MessageRetentionPeriod="60")
    entries = [
        c.SendMessageBatchEntry(
            "bad", "x", message_attributes={"ElasticqDeliverAt": MessageAttributeValue("Number", "x")}
        ),
        c.SendMessageBatchEntry("far", "x", message_attributes=at(desk.context.now_ms + 60_001)),
        c.SendMessageBatchEntry("good", "x", message_attributes=at(desk.context.now_ms + 60_000)),
    ]
    result = desk.do(c.SendMessageBatch("jobs", entries))
    assert isinstance(result, SendMessageBatchResult)
    assert [each.id for each in result.successful] == ["good"]
    assert [(each.id, each.code) for each in result.failed] == [
        ("bad", "InvalidParameterValue"),
        ("far", "InvalidParameterValue"),
    ]
    desk.create("jobs.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    with pytest.raises(InvalidParameterValue, match="ElasticqDeliverAt"):
        desk.do(c.SendMessage("jobs.fifo", "x", message_attributes=at(1), message_group_id="a"))


@every_kind
def test_messages_are_moved_to_another_time_by_their_ids(kind: dict[str, str]) -> None:
    desk = made(**kind)
    ids = [schedule(desk, str(number), 3_600, "a" if number % 2 else None) for number in range(4)]
    sent = desk.send("waits for nobody")
    now_ms = desk.context.now_ms
    assert changed(desk, ElasticqReschedule("jobs", [ids[0], sent, "unknown"], now_ms + 60_000)) == [ids[0]]
    assert changed(desk, ElasticqReschedule("jobs", ids[2:], 5)) == ids[2:], "a time that is past is at once"
    assert sorted(bodies(desk)) == ["2", "3", "waits for nobody"]
    assert changed(desk, ElasticqReschedule("jobs", ids[2:], now_ms + 5)) == [], "somebody has received them"
    desk.wait(60)
    assert "0" in bodies(desk)
    assert state_digest(replayed(desk.log)) == state_digest(replayed(desk.log, 2)) == state_digest(desk.state)


@every_kind
def test_messages_are_cancelled_by_their_ids(kind: dict[str, str]) -> None:
    desk = made(**kind)
    ids = [schedule(desk, str(number), 60) for number in range(3)]
    assert changed(desk, ElasticqCancelScheduled("jobs", ids[:2]), b"i" * 16) == ids[:2]
    assert changed(desk, ElasticqCancelScheduled("jobs", ids[:2]), b"i" * 16) == ids[:2], "a retry is told the same"
    assert changed(desk, ElasticqCancelScheduled("jobs", ids[:2])) == []
    desk.wait(60)
    assert bodies(desk) == ["2"]


def test_bad_calls_are_errors() -> None:
    desk = made(MessageRetentionPeriod="60")
    desk.create("jobs.fifo", FifoQueue="true")
    with pytest.raises(MissingParameter, match="MessageIds"):
        desk.do(ElasticqCancelScheduled("jobs"))
    with pytest.raises(MissingParameter, match="DeliverAt"):
        desk.do(ElasticqReschedule("jobs", ["x"]))
    with pytest.raises(InvalidParameterValue, match="seconds ahead"):
        desk.do(ElasticqReschedule("jobs", ["x"], desk.context.now_ms + 60_001))
    with pytest.raises(UnsupportedOperation, match="FIFO"):
        desk.do(ElasticqReschedule("jobs.fifo", ["x"], 5))
    assert all(not isinstance(each, m.VisibilityChanged) for each in desk.log)


def test_peek_shows_what_is_scheduled_and_when() -> None:
    desk = made()
    schedule(desk, "later", 90)
    (message,) = desk.do(Peek("jobs", states=["delayed"])).messages
    assert (message.body, message.deliver_at_ms) == ("later", desk.context.now_ms + 90_000)


def sweep(desk: Desk) -> None:
    sweeper = Sweeper()
    for _ in range(5):
        desk.write(sweeper.step(desk.state, desk.context.now_ms)[0])


def test_queue_with_a_schedule_keeps_messages_from_their_delivery_on() -> None:
    desk = made(MessageRetentionPeriod="60", ElasticqSchedule="true")
    schedule(desk, "next year", YEAR_S)
    schedule(desk, "in nine years", 9 * YEAR_S)
    desk.send("today")
    desk.wait(61)
    sweep(desk)
    assert desk.counts() == (0, 0, 2)
    desk.wait(YEAR_S - 61)
    (taken,) = desk.receive(10, visibility_s=1)
    assert taken.body == "next year"
    desk.wait(59)
    sweep(desk)
    assert desk.counts() == (1, 0, 1)
    desk.wait(2)
    sweep(desk)
    assert desk.counts() == (0, 0, 1)
    desk.wait(8 * YEAR_S)
    assert bodies(desk) == ["in nine years"]


def test_time_goes_along_with_a_copy() -> None:
    desk = made()
    desk.do(c.DeclareQueue("copies", {"DelaySeconds": "5"}))
    desk.do(c.DeclareQueue("jobs", {}, copy_to="copies"))
    schedule(desk, "later", 60)
    desk.wait(59)
    assert desk.counts("copies") == (0, 0, 1)
    desk.wait(1)
    assert desk.counts("copies") == (1, 0, 0)
