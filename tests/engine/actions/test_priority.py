"""ElasticqPriority, the queue's default, and ElasticqChangePriority: what is taken, what is refused, what is found."""

from typing import Any

import pytest

from elasticq.engine.actions import priority
from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.residency import evict
from elasticq.model import commands as c
from elasticq.model import errors
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.extensions import ElasticqChangePriority
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn
from elasticq.model.results import PrioritiesChangedResult, SendMessageBatchResult, SendMessageResult
from tests.engine.desk import Desk

ORDER = {"ElasticqOrder": "priority"}


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.create(**ORDER)
    return made


def attribute(value: str, data_type: str = "Number") -> dict[str, MessageAttributeValue]:
    return {"ElasticqPriority": MessageAttributeValue(data_type, value)}


def send(desk: Desk, body: str, number: int | None = None, url: str = "jobs", **options: Any) -> str:
    attributes = None if number is None else attribute(str(number))
    result = desk.do(c.SendMessage(url, body, message_attributes=attributes, **options))
    assert isinstance(result, SendMessageResult)
    return result.message_id


def bodies(desk: Desk, url: str = "jobs", visibility_s: int = 0) -> list[str]:
    return [message.body for message in desk.receive(10, url=url, visibility_s=visibility_s)]


def change(desk: Desk, ids: list[str], number: int, token: str | None = None) -> PrioritiesChangedResult:
    result = desk.do(ElasticqChangePriority("jobs", ids, number, token))
    assert isinstance(result, PrioritiesChangedResult)
    return result


def test_lowest_number_goes_first_and_ties_go_by_arrival(desk: Desk) -> None:
    for body, number in (("a", 5), ("b", -1), ("c", None), ("d", 2**63 - 1), ("e", -(2**63)), ("f", 0), ("g", -1)):
        send(desk, body, number)
    assert bodies(desk) == ["e", "b", "g", "c", "f", "a", "d"]


def test_priority_stays_a_message_attribute(desk: Desk) -> None:
    send(desk, "a", 7)
    assert desk.receive_one().message_attributes == attribute("7")


@pytest.mark.parametrize(
    "wrong",
    [
        attribute("1.5"),
        attribute("1e3"),
        attribute("1.0"),
        attribute(str(2**63)),
        attribute(str(-(2**63) - 1)),
        attribute("5", "String"),
        attribute("5", "Number.short"),
    ],
)
def test_what_is_no_integer_of_64_bits_is_refused(desk: Desk, wrong: dict[str, MessageAttributeValue]) -> None:
    with pytest.raises(errors.InvalidParameterValue, match="ElasticqPriority"):
        desk.do(c.SendMessage("jobs", "x", message_attributes=wrong))
    entries = [
        c.SendMessageBatchEntry("good", "x", message_attributes=attribute("+3")),
        c.SendMessageBatchEntry("bad", "y", message_attributes=wrong),
    ]
    result = desk.do(c.SendMessageBatch("jobs", entries))
    assert isinstance(result, SendMessageBatchResult)
    assert [entry.id for entry in result.successful] == ["good"]
    assert [(entry.id, entry.code) for entry in result.failed] == [("bad", "InvalidParameterValue")]
    assert desk.counts() == (1, 0, 0)


def test_standard_queue_takes_any_attribute_of_that_name(desk: Desk) -> None:
    desk.create("plain")
    desk.do(c.SendMessage("plain", "x", message_attributes=attribute("low", "String")))
    assert desk.counts("plain") == (1, 0, 0)


def test_default_counts_for_what_comes_after_it_was_set(desk: Desk) -> None:
    send(desk, "a")
    desk.do(c.SetQueueAttributes("jobs", {"ElasticqDefaultPriority": "-2"}))
    send(desk, "b")
    send(desk, "c", -1)
    desk.do(c.SetQueueAttributes("jobs", {"ElasticqDefaultPriority": "9"}))
    send(desk, "d")
    assert bodies(desk) == ["b", "c", "a", "d"]


@pytest.mark.parametrize("value", ["1.5", "x", "", "-", "--1", str(2**63), str(-(2**63) - 1)])
def test_default_is_an_integer_of_64_bits(desk: Desk, value: str) -> None:
    with pytest.raises(errors.InvalidAttributeValue, match="ElasticqDefaultPriority"):
        desk.do(c.SetQueueAttributes("jobs", {"ElasticqDefaultPriority": value}))


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0])
def test_default_may_be_any_such_integer(desk: Desk, value: int) -> None:
    desk.do(c.SetQueueAttributes("jobs", {"ElasticqDefaultPriority": str(value)}))
    shown = desk.do(c.GetQueueAttributes("jobs", ["All"])).attributes
    assert (shown["ElasticqDefaultPriority"], shown["ElasticqOrder"]) == (str(value), "priority")


def test_order_is_said_at_the_creation_and_never_changes(desk: Desk) -> None:
    desk.create("plain")
    desk.do(c.SetQueueAttributes("jobs", dict(ORDER)))
    with pytest.raises(errors.InvalidAttributeValue, match="Modifying queue type is not supported"):
        desk.do(c.SetQueueAttributes("jobs", {"ElasticqOrder": "standard"}))
    with pytest.raises(errors.InvalidAttributeName, match="ElasticqOrder"):
        desk.do(c.SetQueueAttributes("plain", dict(ORDER)))
    with pytest.raises(errors.InvalidAttributeName, match="ElasticqDefaultPriority"):
        desk.do(c.SetQueueAttributes("plain", {"ElasticqDefaultPriority": "1"}))
    with pytest.raises(errors.QueueNameExists):
        desk.create("plain", **ORDER)
    with pytest.raises(errors.QueueNameExists):
        desk.create("jobs", ElasticqDefaultPriority="1", **ORDER)
    assert desk.create("jobs", **ORDER) == desk.create("jobs")


def test_no_fifo_queue_and_no_other_order(desk: Desk) -> None:
    with pytest.raises(errors.InvalidParameterValue, match="alphanumeric"):
        desk.create("jobs.fifo", **ORDER)
    with pytest.raises(errors.InvalidAttributeName, match="ElasticqOrder"):
        desk.create("jobs.fifo", FifoQueue="true", **ORDER)
    for order in ("random", "standard", ""):
        with pytest.raises(errors.InvalidAttributeName, match="ElasticqOrder"):
            desk.create("other", ElasticqOrder=order)


def test_what_returns_keeps_its_priority(desk: Desk) -> None:
    send(desk, "late", 5)
    send(desk, "soon", 1)
    (soon,) = desk.receive(1, visibility_s=2)
    assert bodies(desk) == ["late"]
    desk.wait(3)
    assert bodies(desk) == ["soon", "late"]
    (again,) = desk.receive(1, visibility_s=30)
    desk.do(c.ChangeMessageVisibility("jobs", again.receipt_handle, 0))
    assert (soon.body, bodies(desk)) == ("soon", ["soon", "late"])


def test_delayed_message_takes_its_place_by_arrival(desk: Desk) -> None:
    send(desk, "first", 1, delay_seconds=5)
    send(desk, "second", 1)
    assert bodies(desk) == ["second"]
    desk.wait(6)
    assert bodies(desk) == ["first", "second"]


# --- change ---------------------------------------------------------------------------


def test_change_moves_waiting_messages_delayed_ones_and_those_in_flight(desk: Desk) -> None:
    ids = [send(desk, body, number) for body, number in (("a", 1), ("b", 2), ("c", 3))]
    delayed = send(desk, "d", 9, delay_seconds=5)
    (held,) = desk.receive(1, visibility_s=3)
    assert held.body == "a"
    result = change(desk, [ids[0], delayed, "unknown", ids[2]], 0)
    assert (result.changed, result.not_found, result.next_token) == ([ids[0], delayed, ids[2]], ["unknown"], None)
    assert bodies(desk) == ["c", "b"]
    assert desk.counts() == (2, 1, 1)
    desk.wait(6)
    assert bodies(desk) == ["a", "c", "d", "b"]
    desk.do(c.DeleteMessage("jobs", held.receipt_handle))
    assert change(desk, [ids[0]], 5).not_found == [ids[0]]


def test_change_to_what_it_is_writes_nothing_and_finds_it(desk: Desk) -> None:
    message_id = send(desk, "a", 4)
    before = len(desk.log)
    assert change(desk, [message_id, message_id], 4).changed == [message_id]
    assert len(desk.log) == before


def test_change_that_is_made_again_answers_the_same_and_does_nothing(desk: Desk) -> None:
    ids = [send(desk, body, 4) for body in "ab"]
    command = ElasticqChangePriority("jobs", [ids[1], "unknown", ids[0]], 1)
    first = desk.do(command, invocation=b"g" * 16)
    assert first == PrioritiesChangedResult([ids[1], ids[0]], ["unknown"])
    change(desk, ids[:1], 9)
    assert desk.do(command, invocation=b"g" * 16) == first
    assert bodies(desk) == ["b", "a"]


def test_long_queue_is_looked_through_in_parts(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [send(desk, str(number), 5) for number in range(25)]
    monkeypatch.setattr(priority, "WALK_MAX", 10)
    first = change(desk, [ids[3], ids[24]], 1)
    assert (first.changed, first.not_found) == ([ids[3]], [ids[24]])
    second = change(desk, first.not_found, 1, first.next_token)
    assert (second.changed, second.not_found) == ([], [ids[24]])
    third = change(desk, second.not_found, 1, second.next_token)
    assert (third.changed, third.not_found, third.next_token) == ([ids[24]], [], None)
    assert bodies(desk)[:3] == ["3", "24", "0"]


test_long_queue_is_looked_through_in_parts = pytest.mark.pure(test_long_queue_is_looked_through_in_parts)


def test_message_from_another_queue_is_found_though_its_content_is_on_disk(desk: Desk) -> None:
    arn = queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, "jobs")
    desk.create("source", RedrivePolicy=f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 1}}')
    message_id = send(desk, "dead", url="source")
    desk.receive(1, url="source", visibility_s=0)
    desk.receive(1, url="source")
    queue = desk.queue()
    (sequence,) = queue.contents
    content = queue.contents[sequence]
    evict(desk.state, queue.id, sequence)
    first = change(desk, [message_id], 3)
    assert (first.changed, first.not_found) == ([], [message_id])
    with pytest.raises(ContentsMissing):
        change(desk, [message_id], 3, first.next_token)
    queue.contents[sequence] = content
    last = change(desk, [message_id], 3, first.next_token)
    assert (last.changed, last.next_token) == ([message_id], None)
    assert queue.order.priority(sequence) == 3


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (ElasticqChangePriority("jobs", [], 1), errors.MissingParameter),
        (ElasticqChangePriority("jobs", ["x"]), errors.MissingParameter),
        (ElasticqChangePriority(None, ["x"], 1), errors.MissingParameter),
        (ElasticqChangePriority("none", ["x"], 1), errors.QueueDoesNotExist),
        (ElasticqChangePriority("jobs", ["x"] * 1_001, 1), errors.InvalidParameterValue),
        (ElasticqChangePriority("jobs", ["x"], 1, "3.1"), errors.InvalidParameterValue),
        (ElasticqChangePriority("jobs", ["x"], 1, "1.x"), errors.InvalidParameterValue),
        (ElasticqChangePriority("plain", ["x"], 1), errors.UnsupportedOperation),
    ],
)
def test_bad_change_is_refused(desk: Desk, command: ElasticqChangePriority, error: type[Exception]) -> None:
    desk.create("plain")
    with pytest.raises(error):
        desk.do(command)


def test_receive_shows_the_current_priority_only_by_its_name(desk: Desk) -> None:
    changed = send(desk, "a", 7)
    send(desk, "b")
    change(desk, [changed], -3)
    for names, expected in (["ElasticqPriority"], [("a", "-3"), ("b", "0")]), (["All"], [("a", None), ("b", None)]):
        found = desk.do(c.ReceiveMessage("jobs", names, max_number_of_messages=10, visibility_timeout=0))
        assert [
            (message.body, (message.attributes or {}).get("ElasticqPriority"))
            for message in found.messages  # type: ignore[attr-defined]
        ] == expected
