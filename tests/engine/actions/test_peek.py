"""Peek: what is shown of a queue, page by page, and that nothing moves."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.actions import peek
from elasticq.engine.views.digest import state_digest
from elasticq.model import commands as c
from elasticq.model import errors
from elasticq.model.extensions import Peek
from elasticq.model.results import PeekResult
from tests.engine.desk import START_MS, Desk


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.create()
    return made


def look(desk: Desk, url: str = "jobs", **options: Any) -> PeekResult:
    before, steps = state_digest(desk.state, desk.context.now_ms), len(desk.log)
    result = desk.do(Peek(queue_url=url, **options))
    assert isinstance(result, PeekResult)
    assert (state_digest(desk.state, desk.context.now_ms), len(desk.log)) == (before, steps)
    return result


def bodies(result: PeekResult) -> list[str]:
    return [message.body for message in result.messages]


def test_peek_shows_messages_in_all_states_and_changes_none(desk: Desk) -> None:
    for body in ("a", "b"):
        desk.send(body)
    desk.send("c", delay_s=10)
    desk.receive_one(visibility_s=5)
    shown = look(desk).messages
    assert [(message.body, message.state) for message in shown] == [
        ("a", "inflight"),
        ("b", "visible"),
        ("c", "delayed"),
    ]
    assert shown[0].attributes["ApproximateReceiveCount"] == "1"
    assert shown[1].attributes["ApproximateReceiveCount"] == "0"
    assert shown[1].attributes["SentTimestamp"] == str(START_MS)
    desk.wait(5)
    assert [message.state for message in look(desk).messages] == ["visible", "visible", "delayed"]
    assert desk.receive_one().body == "a", "what came back goes first"


def test_message_id_is_that_of_the_send(desk: Desk) -> None:
    message_id = desk.send()
    assert [message.message_id for message in look(desk).messages] == [message_id]


def test_pages_follow_one_another_over_deleted_messages(desk: Desk) -> None:
    for at in range(10):
        desk.send(str(at))
    for message in desk.receive(5)[1:4]:
        desk.do(c.DeleteMessage(queue_url="jobs", receipt_handle=message.receipt_handle))
    first = look(desk, limit=3)
    assert bodies(first) == ["0", "4", "5"]
    second = look(desk, limit=100, from_sequence=first.next_sequence)
    assert (bodies(second), second.next_sequence) == (["6", "7", "8", "9"], None)


def test_walk_is_bounded_and_goes_on(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peek, "WALK_MAX", 4)
    for at in range(10):
        desk.send(str(at))
    found: list[str] = []
    at: int | None = 0
    calls = 0
    while at is not None:
        result = look(desk, from_sequence=at, sent_from_ms=START_MS + 1)
        found += bodies(result)
        at, calls = result.next_sequence, calls + 1
    assert (found, calls) == ([], 3)


def test_page_ends_with_its_bytes(desk: Desk) -> None:
    for _ in range(6):
        desk.send("b" * 1_048_576)
    assert len(look(desk, limit=1_000).messages) == 4


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"message_group_id": "g"}, ["a", "c"]),
        ({"message_group_id": "none"}, []),
        ({"states": ["inflight"]}, ["a"]),
        ({"states": ["visible", "delayed"]}, ["b", "c", "d"]),
        ({"sent_from_ms": START_MS + 1_000}, ["b", "c", "d"]),
        ({"sent_until_ms": START_MS + 2_000}, ["a", "b"]),
        ({"sent_from_ms": START_MS + 1_000, "sent_until_ms": START_MS + 3_000, "message_group_id": "g"}, ["c"]),
    ],
)
def test_filters_choose(desk: Desk, options: dict[str, Any], expected: list[str]) -> None:
    for body, group in (("a", "g"), ("b", "h"), ("c", "g"), ("d", None)):
        desk.do(c.SendMessage(queue_url="jobs", message_body=body, message_group_id=group))
        desk.wait(1)
    desk.receive_one()
    assert bodies(look(desk, **options)) == expected


def test_expired_and_purged_messages_are_not_shown(desk: Desk) -> None:
    desk.send("old")
    desk.wait(345_600)
    desk.send("new")
    assert bodies(look(desk)) == ["new"]
    [newest] = [message.sequence for message in look(desk).messages]
    desk.do(c.PurgeQueue(queue_url="jobs"))
    assert look(desk) == PeekResult(last_sequence=newest)


def test_fifo_messages_have_number_group_and_id(desk: Desk) -> None:
    url = desk.create("line.fifo", FifoQueue="true")
    for body in ("a", "b"):
        desk.do(
            c.SendMessage(queue_url=url, message_body=body, message_group_id="g", message_deduplication_id=body * 2)
        )
    desk.do(c.ReceiveMessage(queue_url=url))
    first, second = look(desk, url).messages
    assert (first.state, second.state) == ("inflight", "visible")
    assert second.attributes["MessageDeduplicationId"] == "bb"
    assert second.attributes["SequenceNumber"].endswith(str(second.sequence))


@pytest.mark.parametrize(
    "options", [{"limit": 0}, {"limit": 1_001}, {"states": ["gone"]}, {"states": ["visible", "Inflight"]}]
)
def test_wrong_members_are_refused(desk: Desk, options: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidParameterValue):
        look(desk, **options)


def test_missing_queue_is_told(desk: Desk) -> None:
    with pytest.raises(errors.QueueDoesNotExist):
        desk.do(Peek(queue_url="nowhere"))
    with pytest.raises(errors.MissingParameter):
        desk.do(Peek())


@given(st.lists(st.sampled_from(["send", "delayed", "receive", "delete", "wait"]), max_size=40), st.integers(1, 4))
def test_pages_together_are_the_queue(steps: list[str], limit: int) -> None:
    desk = Desk()
    desk.create()
    handles: list[str] = []
    for step in steps:
        match step:
            case "send":
                desk.send("x")
            case "delayed":
                desk.send("x", delay_s=3)
            case "receive":
                handles += [message.receipt_handle for message in desk.receive(2, visibility_s=4)]
            case "delete" if handles:
                desk.do(c.DeleteMessage(queue_url="jobs", receipt_handle=handles.pop()))
            case _:
                desk.wait(2)
    found = []
    at: int | None = 0
    while at is not None:
        page = look(desk, from_sequence=at, limit=limit)
        found += page.messages
        at = page.next_sequence
    states = [message.state for message in found]
    assert (states.count("visible"), states.count("inflight"), states.count("delayed")) == desk.counts()
    assert [message.sequence for message in found] == sorted({message.sequence for message in found})
