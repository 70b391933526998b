"""What is in flight in a queue."""

import pytest

from elasticq.engine.views import in_flight as module
from elasticq.engine.views.in_flight import InFlight, InFlightMessage, in_flight
from elasticq.model import commands as c
from tests.engine.desk import START_MS, Desk


def seen(desk: Desk, limit: int = 10, name: str = "jobs") -> InFlight:
    return in_flight(desk.queue(name), desk.state.grace, desk.context.now_ms, limit)


def test_the_one_that_is_in_flight_for_longest_comes_first() -> None:
    desk = Desk()
    desk.create(VisibilityTimeout="100")
    assert seen(desk) == InFlight(0, 0, None, None, [])
    for body in ("first", "second", "third"):
        desk.send(body)
    [first] = desk.receive()
    desk.wait(5)
    desk.receive()
    told = seen(desk)
    assert (told.in_flight, told.looked_at, told.oldest_ms, told.next_ms) == (2, 2, START_MS, START_MS + 100_000)
    assert [each.received_ms for each in told.messages] == [START_MS, START_MS + 5_000]
    desk.do(c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=first.receipt_handle, visibility_timeout=1_000))
    told = seen(desk, limit=1)
    assert (told.oldest_ms, told.next_ms) == (START_MS, START_MS + 105_000)
    first_one = desk.queue().issued.first()
    assert told.messages == [InFlightMessage(first_one or 0, None, START_MS, START_MS + 1_005_000, 1)]
    desk.wait(100)
    assert [each.receive_count for each in seen(desk).messages] == [1]


def test_a_message_that_came_back_and_one_that_is_delayed_are_not_in_flight() -> None:
    desk = Desk()
    desk.create(VisibilityTimeout="1")
    desk.send("back")
    desk.send("later", delay_s=60)
    desk.receive()
    desk.wait(1)
    assert seen(desk) == InFlight(0, 0, None, None, [])


def test_a_span_without_a_master_prolongs_what_is_told() -> None:
    desk = Desk()
    desk.create(VisibilityTimeout="10")
    desk.send("x")
    desk.receive()
    desk.state.grace.spans.append((START_MS + 5_000, START_MS + 30_000))
    assert seen(desk).next_ms == START_MS + 30_000


def test_the_look_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOKED_AT_MAX", 2)
    desk = Desk()
    desk.create()
    for _ in range(4):
        desk.send()
        desk.receive()
        desk.wait(1)
    told = seen(desk)
    assert (told.in_flight, told.looked_at, told.oldest_ms) == (4, 2, START_MS)
    assert len(told.messages) == 2


def test_the_group_of_a_fifo_queue_s_message_is_told() -> None:
    desk = Desk()
    desk.create("jobs.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    desk.do(c.SendMessage(queue_url="jobs.fifo", message_body="x", message_group_id="g"))
    desk.do(c.ReceiveMessage(queue_url="jobs.fifo"))
    assert [each.group for each in seen(desk, name="jobs.fifo").messages] == ["g"]
