"""How the messages of groups stand behind each other."""

import pytest

from elasticq.engine.ordering.fair import NOISY_MIN
from elasticq.engine.views import message_group_order as module
from elasticq.engine.views.message_group_order import FULL, NOISY, GroupOrder, GroupPlace, group_order
from elasticq.model import commands as c
from tests.engine.desk import START_MS, Desk

FIFO = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "100"}


def fifo(**attributes: str) -> Desk:
    desk = Desk()
    desk.create("jobs.fifo", **FIFO, **attributes)
    return desk


def send(desk: Desk, group: str, *bodies: str, url: str = "jobs.fifo") -> None:
    for body in bodies:
        desk.do(c.SendMessage(queue_url=url, message_body=body, message_group_id=group))


def seen(desk: Desk, wanted: str = "", groups: int = 10, messages: int = 10, name: str = "jobs.fifo") -> GroupOrder:
    told = group_order(desk.queue(name), desk.context.now_ms, wanted, groups, messages)
    assert told is not None
    return told


def one(desk: Desk, wanted: str, messages: int = 10, name: str = "jobs.fifo") -> GroupPlace:
    (found,) = seen(desk, wanted, 1, messages, name).groups
    assert found.group == wanted
    return found


def states(place: GroupPlace) -> list[str]:
    return [each.state for each in place.messages]


def test_all_wait_behind_the_first_message_in_flight() -> None:
    desk = fifo()
    send(desk, "g", "1", "2", "3")
    send(desk, "other", "4")
    assert (one(desk, "g").blocked_by, states(one(desk, "g"))) == (None, ["visible"] * 3)
    desk.do(c.ReceiveMessage(queue_url="jobs.fifo"))
    blocked = one(desk, "g")
    assert (blocked.count, blocked.blocked_by) == (3, blocked.messages[0].sequence)
    assert blocked.blocked_until_ms == blocked.messages[0].until_ms == START_MS + 100_000
    assert states(blocked) == ["inflight", "waits", "waits"]
    assert [each.receive_count for each in blocked.messages] == [1, 0, 0]
    assert one(desk, "other").blocked_by is None
    assert [each.sequence for each in blocked.messages] == sorted(each.sequence for each in blocked.messages)
    desk.wait(100)
    assert (one(desk, "g").blocked_until_ms, states(one(desk, "g"))) == (None, ["visible"] * 3)


def test_what_comes_before_the_blocking_message_can_be_handed_out() -> None:
    desk = fifo()
    send(desk, "g", "1", "2", "3")
    received = desk.do(c.ReceiveMessage(queue_url="jobs.fifo", max_number_of_messages=2))
    handle = received.messages[0].receipt_handle  # type: ignore[attr-defined]
    desk.do(c.ChangeMessageVisibility(queue_url="jobs.fifo", receipt_handle=handle, visibility_timeout=0))
    assert states(one(desk, "g")) == ["visible", "inflight", "waits"]
    shown = one(desk, "g", messages=1)
    assert (states(shown), shown.blocked_by) == (["visible"], one(desk, "g").messages[1].sequence)


def test_a_delayed_message_blocks_until_its_delay_is_over() -> None:
    desk = fifo(DelaySeconds="60")
    send(desk, "g", "1", "2")
    blocked = one(desk, "g")
    assert blocked.blocked_until_ms == START_MS + 60_000
    assert states(blocked) == ["delayed", "delayed"]


def test_groups_are_found_by_a_part_of_their_ids_and_always_by_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = fifo()
    for number in range(6):
        send(desk, f"order-{number}", f"{number}")
    send(desk, "5", "x")
    assert [each.group for each in seen(desk, "r-").groups] == [f"order-{number}" for number in range(6)]
    assert [each.group for each in seen(desk, "5").groups] == ["5", "order-5"]
    assert [each.group for each in seen(desk, groups=2).groups] == ["order-0", "order-1"]
    assert seen(desk, "none") == GroupOrder(is_strict=True, count=7, looked_at=7, groups=[])
    monkeypatch.setattr(module, "GROUPS_LOOKED_AT_MAX", 2)
    assert seen(desk, "order-4").looked_at == 2
    assert [each.group for each in seen(desk, "order-4").groups] == ["order-4"]
    assert seen(desk, "order-").count == 7
    assert len(seen(desk, "order-").groups) == 2


def test_a_blocking_message_is_looked_for_in_a_bounded_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCKER_LOOKED_AT_MAX", 2)
    desk = fifo()
    send(desk, "g", "1", "2", "3")
    received = desk.do(c.ReceiveMessage(queue_url="jobs.fifo", max_number_of_messages=3))
    for message in received.messages[:2]:  # type: ignore[attr-defined]
        handle = message.receipt_handle
        desk.do(c.ChangeMessageVisibility(queue_url="jobs.fifo", receipt_handle=handle, visibility_timeout=0))
    assert one(desk, "g", messages=2).blocked_by is None
    assert one(desk, "g", messages=3).blocked_by is not None


def test_groups_of_a_standard_queue_tell_what_they_have_in_flight() -> None:
    desk = Desk()
    desk.create(VisibilityTimeout="100")
    assert group_order(desk.queue(), desk.context.now_ms, "", 10, 10) is None
    send(desk, "g", *map(str, range(NOISY_MIN + 2)), url="jobs")
    for _ in range(NOISY_MIN):
        desk.receive()
    place = one(desk, "g", name="jobs")
    assert (place.count, place.in_flight, place.blocked_by, place.held) == (NOISY_MIN + 2, NOISY_MIN, None, NOISY)
    assert states(place) == ["visible", "visible"]
    desk.wait(100)
    place = one(desk, "g", messages=5, name="jobs")
    assert (place.in_flight, place.held, len(place.messages)) == (0, "", 5)


def test_a_group_that_has_in_flight_what_the_queue_allows_is_full() -> None:
    desk = Desk()
    desk.create(ElasticqFairness="round_robin", ElasticqMaxInFlightPerGroup="1")
    send(desk, "g", "1", "2", url="jobs")
    assert one(desk, "g", name="jobs").held == ""
    desk.receive()
    place = one(desk, "g", name="jobs")
    assert (place.held, place.in_flight, place.count) == (FULL, 1, 2)


def test_telling_changes_nothing() -> None:
    desk = fifo()
    send(desk, "g", "1", "2")
    before = seen(desk)
    assert seen(desk) == before
    received = desk.do(c.ReceiveMessage(queue_url="jobs.fifo", max_number_of_messages=2))
    assert [each.body for each in received.messages] == ["1", "2"]  # type: ignore[attr-defined]
