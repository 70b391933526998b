"""ReceiveMessage: who gets what when, what is shown with it, retries and returned receives."""

import pytest

from elasticq.engine.actions.receive import returned
from elasticq.engine.stored import mutations as m
from elasticq.model import commands as c
from elasticq.model import errors, limits
from elasticq.model.commands import MessageAttributeValue as Value
from elasticq.model.results import ReceiveMessageResult
from tests.engine.desk import START_MS, Desk

CALL = b"r" * 16


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.create()
    return made


def ask(desk: Desk, invocation: bytes = b"", **options: object) -> ReceiveMessageResult:
    result = desk.do(c.ReceiveMessage(queue_url="jobs", **options), invocation=invocation)
    assert isinstance(result, ReceiveMessageResult)
    return result


def give_back(desk: Desk, result: ReceiveMessageResult) -> None:
    desk.write(returned(desk.state, result, desk.context.now_ms))


def test_receive_hides_message_until_timeout(desk: Desk) -> None:
    desk.send()
    first = desk.receive_one(visibility_s=10)
    desk.wait(9.999)
    assert desk.receive() == []
    desk.wait(0.001)
    second = desk.receive_one()
    assert second.message_id == first.message_id
    assert second.receipt_handle != first.receipt_handle


def test_the_queues_visibility_timeout_is_the_default(desk: Desk) -> None:
    desk.send()
    desk.receive_one()
    desk.wait(29.999)
    assert desk.receive() == []
    desk.wait(0.001)
    assert desk.receive() != []


def test_visibility_timeout_of_zero_leaves_the_message_there(desk: Desk) -> None:
    desk.send()
    handles = {desk.receive_one(visibility_s=0).receipt_handle for _ in range(3)}
    assert len(handles) == 3
    assert desk.counts() == (1, 0, 0)


def test_one_message_is_the_default_and_ten_the_most(desk: Desk) -> None:
    for _ in range(12):
        desk.send()
    assert len(desk.receive()) == 1
    assert len(desk.receive(10)) == 10
    assert len(desk.receive(10)) == 1


def test_no_message_is_in_two_hands(desk: Desk) -> None:
    for number in range(40):
        desk.send(str(number))
    taken = [message.body for _ in range(10) for message in desk.receive(7)]
    assert sorted(taken, key=int) == [str(number) for number in range(40)]


def test_empty_receive_makes_no_mutation(desk: Desk) -> None:
    written = len(desk.log)
    assert desk.receive(10, invocation=CALL) == []
    assert len(desk.log) == written


def test_receive_is_one_mutation_however_many_messages(desk: Desk) -> None:
    for _ in range(10):
        desk.send()
    desk.receive(10)
    assert len(desk.steps[-1]) == 1


def test_counts_are_exact_through_a_messages_life(desk: Desk) -> None:
    desk.send()
    desk.send(delay_s=5)
    assert desk.counts() == (1, 0, 1)
    desk.receive_one(visibility_s=10)
    assert desk.counts() == (0, 1, 1)
    desk.wait(5)
    assert desk.counts() == (1, 1, 0)
    desk.wait(5)
    assert desk.counts() == (2, 0, 0)


def test_expired_messages_are_neither_received_nor_counted(desk: Desk) -> None:
    desk.do(c.SetQueueAttributes(queue_url="jobs", attributes={"MessageRetentionPeriod": "60"}))
    for _ in range(3):
        desk.send()
    desk.send(delay_s=100)
    desk.receive_one(visibility_s=1_000)
    desk.wait(59.999)
    assert desk.counts() == (2, 1, 1)
    desk.send("young")
    desk.wait(0.001)
    assert desk.counts() == (1, 0, 0)
    assert [x.body for x in desk.receive(10)] == ["young"]


def test_retention_change_acts_on_existing_messages(desk: Desk) -> None:
    desk.send()
    desk.wait(61)
    desk.do(c.SetQueueAttributes(queue_url="jobs", attributes={"MessageRetentionPeriod": "60"}))
    assert desk.receive() == []


# --- system attributes and filters ------------------------------------------------


def test_system_attributes_tell_sender_times_and_count(desk: Desk) -> None:
    desk.send()
    desk.wait(1)
    assert desk.receive_one(visibility_s=1).attributes == {
        "SenderId": "anonymous",
        "SentTimestamp": str(START_MS),
        "ApproximateReceiveCount": "1",
        "ApproximateFirstReceiveTimestamp": str(START_MS + 1_000),
    }
    desk.wait(5)
    again = desk.receive_one().attributes
    assert again["ApproximateReceiveCount"] == "2"
    assert again["ApproximateFirstReceiveTimestamp"] == str(START_MS + 1_000)


def test_old_and_new_member_of_attribute_names_are_united(desk: Desk) -> None:
    desk.send()
    (message,) = ask(desk, attribute_names=["SenderId"], message_system_attribute_names=["SentTimestamp"]).messages
    assert message.attributes == {"SenderId": "anonymous", "SentTimestamp": str(START_MS)}


def test_nothing_is_shown_that_was_not_asked_for(desk: Desk) -> None:
    desk.do(
        c.SendMessage(queue_url="jobs", message_body="x", message_attributes={"a": Value("String", string_value="v")})
    )
    (message,) = ask(desk).messages
    assert (message.attributes, message.message_attributes) == (None, None)


def test_unknown_system_attribute_is_refused_and_takes_nothing(desk: Desk) -> None:
    desk.send()
    with pytest.raises(errors.InvalidAttributeName, match=r"Unknown Attribute Nope\."):
        ask(desk, attribute_names=["Nope"])
    assert desk.counts() == (1, 0, 0)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["All"], {"foo.a", "foo.b", "food", "bar"}),
        ([".*"], {"foo.a", "foo.b", "food", "bar"}),
        (["bar"], {"bar"}),
        (["foo.*"], {"foo.a", "foo.b", "food"}),
        (["foo*"], {"foo.a", "foo.b", "food"}),
        (["foo.a", "bar", "nope"], {"foo.a", "bar"}),
        (["nope"], None),
        ([], None),
    ],
)
def test_message_attribute_filter(desk: Desk, names: list[str], expected: set[str] | None) -> None:
    attributes = {name: Value("String", string_value="v") for name in ("foo.a", "foo.b", "food", "bar")}
    desk.do(c.SendMessage(queue_url="jobs", message_body="x", message_attributes=attributes))
    (message,) = ask(desk, message_attribute_names=names).messages
    assert (None if message.message_attributes is None else set(message.message_attributes)) == expected


# --- bad input ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"wait_time_seconds": 21},
            "Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.",
        ),
        (
            {"wait_time_seconds": -1},
            "Value -1 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.",
        ),
        (
            {"max_number_of_messages": 0},
            "Value 0 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.",
        ),
        (
            {"max_number_of_messages": 11},
            "Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.",
        ),
        ({"visibility_timeout": -1}, None),
        ({"visibility_timeout": 43_201}, None),
    ],
)
def test_numbers_out_of_range_are_refused_in_awss_words(desk: Desk, options: dict[str, int], text: str | None) -> None:
    desk.send()
    with pytest.raises(errors.InvalidParameterValue) as caught:
        ask(desk, **options)
    if text is not None:
        assert caught.value.message == text
    assert desk.counts() == (1, 0, 0)


def test_receive_request_attempt_id_is_ignored_on_standard_queues(desk: Desk) -> None:
    desk.send()
    assert len(ask(desk, receive_request_attempt_id="x").messages) == 1


@pytest.mark.pure
def test_short_poll_at_the_in_flight_limit_answers_over_limit(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "IN_FLIGHT_MAX", 3)
    for _ in range(6):
        desk.send()
    assert len(desk.receive(2)) == 2
    assert len(desk.receive(10)) == 1
    with pytest.raises(errors.OverLimit) as caught:
        desk.receive()
    assert caught.value.status == 403
    assert caught.value.message == (
        "Too many messages have been received without being deleted. "
        "Please delete your received messages or let them timeout before receiving more."
    )
    assert ask(desk, wait_time_seconds=1).messages == []
    desk.wait(30)
    assert len(desk.receive(10)) == 3


# --- retries --------------------------------------------------------------------------


def test_a_retried_receive_gets_the_same_handles(desk: Desk) -> None:
    for _ in range(3):
        desk.send()
    first = desk.receive(2, invocation=CALL)
    written = len(desk.log)
    assert desk.receive(2, invocation=CALL) == first
    assert len(desk.log) == written
    assert desk.counts() == (1, 2, 0)


def test_a_retried_receive_returns_only_newest_handles_in_flight(desk: Desk) -> None:
    for number in range(4):
        desk.send(str(number))
    messages = {x.body: x for x in desk.receive(4, visibility_s=20, invocation=CALL)}
    desk.do(c.DeleteMessage(queue_url="jobs", receipt_handle=messages["0"].receipt_handle))
    handle = messages["1"].receipt_handle
    desk.do(c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=handle, visibility_timeout=0))
    assert desk.receive_one().body == "1"
    handle = messages["2"].receipt_handle
    desk.do(c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=handle, visibility_timeout=0))
    assert [x.body for x in desk.receive(4, visibility_s=20, invocation=CALL)] == ["3"]
    desk.wait(20)
    assert desk.receive(4, visibility_s=20, invocation=CALL) == []


def test_a_retried_receive_starts_the_visibility_timeout_again(desk: Desk) -> None:
    """The client has its messages only now: an answer that comes late must not leave it less time to work."""
    desk.send()
    first = desk.receive(1, visibility_s=20, invocation=CALL)
    desk.wait(15)
    assert desk.receive(1, visibility_s=20, invocation=CALL) == first
    desk.wait(19.999)
    assert desk.counts() == (0, 1, 0)
    assert desk.receive(1, invocation=b"o" * 16) == []
    desk.wait(0.001)
    assert len(desk.receive(1, invocation=b"o" * 16)) == 1


def test_a_retried_receive_leaves_a_longer_visibility(desk: Desk) -> None:
    desk.send()
    (message,) = desk.receive(1, visibility_s=20, invocation=CALL)
    change = c.ChangeMessageVisibility("jobs", receipt_handle=message.receipt_handle, visibility_timeout=100)
    desk.do(change)
    desk.wait(10)
    written = len(desk.log)
    assert desk.receive(1, visibility_s=20, invocation=CALL) == [message]
    assert len(desk.log) == written
    desk.wait(89.999)
    assert desk.counts() == (0, 1, 0)
    desk.wait(0.001)
    assert desk.counts() == (1, 0, 0)


def test_a_retried_receive_hides_no_message_for_more_than_twelve_hours(desk: Desk) -> None:
    desk.send()
    first = desk.receive(1, visibility_s=43_200, invocation=CALL)
    desk.wait(10)
    assert desk.receive(1, visibility_s=43_200, invocation=CALL) == first
    desk.wait(43_190)
    assert desk.counts() == (1, 0, 0)


def test_a_retried_receive_of_a_deleted_or_purged_queue_is_empty(desk: Desk) -> None:
    desk.send()
    desk.receive(1, invocation=CALL)
    desk.do(c.PurgeQueue(queue_url="jobs"))
    assert desk.receive(1, invocation=CALL) == []
    desk.do(c.DeleteQueue(queue_url="jobs"))
    assert desk.receive(1, invocation=CALL) == []


# --- returned receives ------------------------------------------------------------------


def test_returned_receive_takes_the_count_back_and_forgets_the_guid(desk: Desk) -> None:
    desk.send()
    first = ask(desk, CALL, message_system_attribute_names=["All"])
    give_back(desk, first)
    assert desk.counts() == (1, 0, 0)
    (again,) = desk.receive(1, invocation=CALL)
    assert again.receipt_handle != first.messages[0].receipt_handle
    assert again.attributes["ApproximateReceiveCount"] == "1"


@pytest.mark.parametrize("has_grace", [False, True])
def test_receive_given_back_twice_takes_its_count_back_once(desk: Desk, has_grace: bool) -> None:
    """Two members may report the same undelivered answer; in the grace after a takeover the message stays hidden."""
    desk.send()
    desk.receive_one(visibility_s=1)
    desk.wait(1)
    result = ask(desk)
    if has_grace:
        desk.write([m.TookOver(2, "b", desk.context.now_ms - 1_000, desk.context.now_ms + 2_000)])
    give_back(desk, result)
    give_back(desk, result)
    desk.wait(2)
    (message,) = ask(desk, message_system_attribute_names=["ApproximateReceiveCount"]).messages
    assert message.attributes == {"ApproximateReceiveCount": "2"}


def test_returned_receive_keeps_the_hand_out_number(desk: Desk) -> None:
    desk.send()
    first = ask(desk)
    delivery_number = desk.state.identity.read_handle(first.messages[0].receipt_handle).delivery_number
    give_back(desk, first)
    (row,) = desk.queue().rows.values()
    assert (row.delivery_number, row.receive_count, row.first_received_ms) == (delivery_number, 0, 0)
    assert desk.state.identity.read_handle(desk.receive_one().receipt_handle).delivery_number == delivery_number + 1


def test_second_receive_returned_keeps_the_first_receives_time(desk: Desk) -> None:
    desk.send()
    desk.receive_one(visibility_s=1)
    desk.wait(2)
    give_back(desk, ask(desk))
    (row,) = desk.queue().rows.values()
    assert (row.receive_count, row.first_received_ms) == (1, START_MS)


def test_returning_an_old_hand_out_changes_nothing(desk: Desk) -> None:
    desk.send()
    old = ask(desk, visibility_timeout=1)
    desk.wait(2)
    desk.receive_one()
    assert returned(desk.state, old, desk.context.now_ms) == []
    assert desk.counts() == (0, 1, 0)


def test_returning_what_is_gone_changes_nothing(desk: Desk) -> None:
    desk.send()
    held = ask(desk)
    desk.do(c.DeleteQueue(queue_url="jobs"))
    assert returned(desk.state, held, desk.context.now_ms) == []


# --- pages ----------------------------------------------------------------------------


def fill(desk: Desk, count: int, body: str = "x") -> None:
    for at in range(count):
        desk.send(f"{body}{at}")


def test_page_size_beats_the_number_of_messages(desk: Desk) -> None:
    fill(desk, 1_005)
    got = ask(desk, max_number_of_messages=1, elasticq_page_size=1_000).messages
    assert [message.body for message in got] == [f"x{at}" for at in range(1_000)]
    assert desk.counts() == (5, 1_000, 0)


@pytest.mark.parametrize("size", [0, 1_001, -1])
def test_page_size_has_bounds(desk: Desk, size: int) -> None:
    with pytest.raises(errors.InvalidParameterValue, match="ElasticqPageSize"):
        ask(desk, elasticq_page_size=size)


def test_page_ends_at_four_mebibytes(desk: Desk) -> None:
    fill(desk, 6, "b" * (1_048_576 - 1))
    sizes = [len(ask(desk, elasticq_page_size=1_000).messages) for _ in range(3)]
    assert sizes == [4, 2, 0]


def test_page_counts_bytes_and_not_characters(desk: Desk) -> None:
    fill(desk, 12, "\u00e9" * (1_048_576 // 2 - 1))
    assert len(ask(desk, elasticq_page_size=1_000).messages) == 4


def test_page_of_a_fifo_queue_keeps_the_order_of_groups(desk: Desk) -> None:
    url = desk.create("line.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    for at in range(1_200):
        desk.do(c.SendMessage(queue_url=url, message_body=str(at), message_group_id=str(at % 2)))
    result = desk.do(c.ReceiveMessage(queue_url=url, elasticq_page_size=1_000))
    assert isinstance(result, ReceiveMessageResult)
    numbers = [int(message.body) for message in result.messages]
    assert len(numbers) == 1_000
    for parity in (0, 1):
        of_group = [number for number in numbers if number % 2 == parity]
        assert of_group == list(range(parity, parity + 2 * len(of_group), 2))
    again = desk.do(c.ReceiveMessage(queue_url=url, elasticq_page_size=1_000))
    assert again == ReceiveMessageResult()


def test_retry_of_a_page_gets_it_again_and_is_remembered_in_few_bytes(desk: Desk) -> None:
    fill(desk, 1_000)
    first = ask(desk, CALL, elasticq_page_size=1_000)
    again = ask(desk, CALL, elasticq_page_size=1_000)
    assert [message.receipt_handle for message in again.messages] == [x.receipt_handle for x in first.messages]
    known = desk.state.invocations.get(CALL, desk.context.now_ms)
    assert known is not None
    assert len(known.detail) < 4_096


def test_page_that_reached_nobody_goes_back_whole(desk: Desk) -> None:
    fill(desk, 1_000)
    give_back(desk, ask(desk, elasticq_page_size=1_000))
    assert desk.counts() == (1_000, 0, 0)


def test_batches_are_as_large_as_their_page_size(desk: Desk) -> None:
    entries = [c.SendMessageBatchEntry(id=str(at), message_body="x") for at in range(11)]
    with pytest.raises(errors.TooManyEntriesInBatchRequest, match=r"are 10\. You have sent 11\."):
        desk.do(c.SendMessageBatch(queue_url="jobs", entries=entries))
    with pytest.raises(errors.InvalidParameterValue):
        desk.do(c.SendMessageBatch(queue_url="jobs", entries=entries, elasticq_page_size=1_001))
    entries = [c.SendMessageBatchEntry(id=str(at), message_body="x") for at in range(1_000)]
    assert len(desk.do(c.SendMessageBatch(queue_url="jobs", entries=entries, elasticq_page_size=1_000)).successful)
    got = ask(desk, elasticq_page_size=1_000).messages
    changes = [
        c.ChangeMessageVisibilityBatchEntry(id=str(at), receipt_handle=x.receipt_handle, visibility_timeout=60)
        for at, x in enumerate(got)
    ]
    desk.do(c.ChangeMessageVisibilityBatch(queue_url="jobs", entries=changes, elasticq_page_size=1_000))
    deletes = [c.DeleteMessageBatchEntry(id=str(at), receipt_handle=x.receipt_handle) for at, x in enumerate(got)]
    done = desk.do(c.DeleteMessageBatch(queue_url="jobs", entries=deletes, elasticq_page_size=1_000), invocation=CALL)
    assert (len(done.successful), done.failed) == (1_000, [])
    assert desk.counts() == (0, 0, 0)
    again = desk.do(c.DeleteMessageBatch(queue_url="jobs", entries=deletes, elasticq_page_size=1_000), invocation=CALL)
    assert again == done


def test_large_batch_still_ends_at_the_size_of_a_message(desk: Desk) -> None:
    entries = [c.SendMessageBatchEntry(id=str(at), message_body="x" * 1_100) for at in range(1_000)]
    with pytest.raises(errors.BatchRequestTooLong):
        desk.do(c.SendMessageBatch(queue_url="jobs", entries=entries, elasticq_page_size=1_000))


def test_receive_ends_where_a_frame_between_members_would_not_hold_more(desk: Desk) -> None:
    for _ in range(10):
        desk.do(c.SendMessage(queue_url="jobs", message_body="x" * limits.BODY_BYTES_MAX))
    answers = [len(ask(desk, max_number_of_messages=10).messages) for _ in range(3)]
    assert answers == [6, 4, 0]
