"""What a queue tells of itself."""

import pytest

from elasticq.engine.views import figures as module
from elasticq.engine.views.figures import QueueFigures, figures
from elasticq.model import commands as c
from elasticq.model.names import DEFAULT_ACCOUNT
from tests.engine.desk import START_MS, Desk


def seen(desk: Desk) -> QueueFigures:
    return figures(desk.queue(), desk.context.now_ms)


def test_messages_are_told_by_state_and_the_oldest_by_its_time() -> None:
    desk = Desk()
    desk.create()
    assert seen(desk) == QueueFigures(DEFAULT_ACCOUNT, "jobs", 0, 0, 0, None)
    desk.send("first")
    desk.wait(5)
    desk.send("second")
    desk.send("later", delay_s=60)
    [received] = desk.receive()
    assert seen(desk) == QueueFigures(DEFAULT_ACCOUNT, "jobs", 1, 1, 1, START_MS, desk.queue().last_sequence)
    desk.do(c.DeleteMessage(queue_url="jobs", receipt_handle=received.receipt_handle))
    assert seen(desk) == QueueFigures(DEFAULT_ACCOUNT, "jobs", 1, 0, 1, START_MS + 5_000, desk.queue().last_sequence)


def test_the_look_for_the_oldest_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PASSED_MAX", 2)
    desk = Desk()
    desk.create()
    for number in range(5):
        desk.send(str(number))
        desk.wait(1)
    for _ in range(4):
        [received] = desk.receive()
        desk.do(c.DeleteMessage(queue_url="jobs", receipt_handle=received.receipt_handle))
    oldest_ms = seen(desk).oldest_ms
    assert oldest_ms is not None
    assert oldest_ms <= START_MS + 4_000


def test_a_fifo_queue_is_told_as_well() -> None:
    desk = Desk()
    desk.create("jobs.fifo", FifoQueue="true")
    desk.do(c.SendMessage(queue_url="jobs.fifo", message_body="x", message_group_id="g", message_deduplication_id="1"))
    told = figures(desk.queue("jobs.fifo"), desk.context.now_ms)
    assert (told.visible, told.oldest_ms) == (1, START_MS)


def test_delayed_messages_have_no_age_until_they_can_be_received() -> None:
    desk = Desk()
    desk.create()
    desk.send("later", delay_s=600)
    assert (seen(desk).delayed, seen(desk).oldest_ms) == (1, None)
    desk.wait(300)
    desk.send("now")
    assert seen(desk).oldest_ms == START_MS + 300_000
    desk.wait(400)
    [first] = desk.receive()
    [second] = desk.receive()
    assert {first.body, second.body} == {"later", "now"}
    for received in (first, second):
        if received.body == "now":
            desk.do(c.DeleteMessage(queue_url="jobs", receipt_handle=received.receipt_handle))
    assert seen(desk).oldest_ms == START_MS + 600_000  # the end of its delay, not its send


def test_many_delayed_messages_do_not_hide_the_oldest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PASSED_MAX", 2)
    desk = Desk()
    desk.create()
    for number in range(6):
        desk.send(str(number), delay_s=600)
    desk.wait(5)
    desk.send("now")
    desk.wait(60)
    assert seen(desk).oldest_ms == START_MS + 5_000


def test_a_fifo_queue_with_a_delay_has_no_old_message() -> None:
    desk = Desk()
    desk.create("jobs.fifo", FifoQueue="true", DelaySeconds="60")
    desk.do(c.SendMessage(queue_url="jobs.fifo", message_body="x", message_group_id="g", message_deduplication_id="1"))
    told = figures(desk.queue("jobs.fifo"), desk.context.now_ms)
    assert (told.delayed, told.oldest_ms) == (1, None)
