"""FIFO queues as clients see them: duplicates, order of groups, expired handles, repeated receives.

Most come from recordings of AWS (docs/aws.md).
"""

from hashlib import sha256

import pytest

from elasticq.engine.actions.receive import returned
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model.errors import (
    InvalidAttributeName,
    InvalidAttributeValue,
    InvalidParameterValue,
    MissingParameter,
    QueueNameExists,
    SqsError,
)
from elasticq.model.results import BatchResult, ReceivedMessage, ReceiveMessageResult, SendMessageBatchResult
from tests.engine.desk import Desk

URL = "jobs.fifo"


class FifoDesk(Desk):
    """A desk with one FIFO queue and shorthands for it."""

    def __init__(self, **attributes: str) -> None:
        super().__init__()
        self.create(URL, FifoQueue="true", **attributes)
        self.sent = 0

    def put(self, group: str = "g", body: str = "", dedup: str | None = None, guid: bytes = b"") -> tuple[str, str]:
        """(MessageId, SequenceNumber)."""
        self.sent += 1
        if dedup is None and self.queue(URL).attributes.get("ContentBasedDeduplication") != "true":
            dedup = f"id-{self.sent}"
        command = c.SendMessage(URL, body or f"{group}{self.sent}", None, None, None, dedup, group)
        result = self.do(command, invocation=guid)
        return result.message_id, result.sequence_number

    def take(
        self, limit: int = 1, *, visibility_s: int | None = None, attempt: str | None = None
    ) -> list[ReceivedMessage]:
        return self.asked(limit, visibility_s=visibility_s, attempt=attempt).messages

    def asked(
        self, limit: int = 1, *, visibility_s: int | None = None, attempt: str | None = None, guid: bytes = b""
    ) -> ReceiveMessageResult:
        command = c.ReceiveMessage(URL, None, ["All"], None, limit, visibility_s, None, attempt)
        result = self.do(command, invocation=guid)
        assert isinstance(result, ReceiveMessageResult)
        return result

    def groups(self, limit: int = 10, *, visibility_s: int | None = None) -> list[str]:
        return [message.attributes["MessageGroupId"] for message in self.take(limit, visibility_s=visibility_s)]

    def drop(self, message: ReceivedMessage) -> None:
        self.do(c.DeleteMessage(URL, message.receipt_handle))

    def change(self, message: ReceivedMessage, seconds: int) -> None:
        self.do(c.ChangeMessageVisibility(URL, message.receipt_handle, seconds))


@pytest.fixture
def desk() -> FifoDesk:
    return FifoDesk()


def bodies(messages: list[ReceivedMessage]) -> list[str]:
    return [message.body for message in messages]


def refused(error: type[SqsError], action: object, *arguments: object) -> str:
    with pytest.raises(error) as caught:
        action(*arguments)
    return caught.value.message


def send(**fields: object) -> c.SendMessage:
    return c.SendMessage(**{"queue_url": URL, "message_body": "x", **fields})


# --- attributes ---------------------------------------------------------------------------


def shown(desk: Desk, url: str = URL) -> dict[str, str]:
    return desk.do(c.GetQueueAttributes(url, ["All"])).attributes


def test_attributes_of_a_fifo_queue_are_shown_with_their_defaults(desk: FifoDesk) -> None:
    fifo = {name: value for name, value in shown(desk).items() if "Fifo" in name or "Dedup" in name}
    assert fifo == {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "queue",
        "FifoThroughputLimit": "perQueue",
    }


def test_attributes_that_were_set_read_back() -> None:
    given = {
        "ContentBasedDeduplication": "True",
        "DeduplicationScope": "messageGroup",
        "FifoThroughputLimit": "perMessageGroupId",
    }
    desk = FifoDesk(**given)
    everything = shown(desk)
    assert [everything[name] for name in given] == ["true", "messageGroup", "perMessageGroupId"]
    assert not [name for name in everything if name.startswith("elasticq")]
    desk.create(URL, FifoQueue="true", **given)
    with pytest.raises(QueueNameExists, match="attribute DeduplicationScope"):
        desk.create(URL, FifoQueue="true", DeduplicationScope="queue")


def test_standard_queue_shows_no_attribute_of_fifo_queues() -> None:
    desk = Desk()
    desk.create()
    assert not [name for name in shown(desk, "jobs") if "Fifo" in name or "Dedup" in name]


@pytest.mark.parametrize("value", ["true", "TRUE"])
def test_type_of_a_fifo_queue_may_be_said_again(desk: FifoDesk, value: str) -> None:
    desk.do(c.SetQueueAttributes(URL, {"FifoQueue": value}))
    assert shown(desk)["FifoQueue"] == "true"


def test_type_of_a_queue_cannot_be_changed(desk: FifoDesk) -> None:
    command = c.SetQueueAttributes(URL, {"FifoQueue": "false"})
    words = "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."
    assert refused(InvalidAttributeValue, desk.do, command) == words


@pytest.mark.parametrize("name", ["FifoQueue", "ContentBasedDeduplication"])
@pytest.mark.parametrize("value", ["true", "false"])
def test_standard_queue_knows_no_fifo_attribute(name: str, value: str) -> None:
    desk = Desk()
    desk.create()
    command = c.SetQueueAttributes("jobs", {name: value})
    assert refused(InvalidAttributeName, desk.do, command) == f"Unknown Attribute {name}."
    if value == "false":
        create = c.CreateQueue("other", {name: value})
        assert refused(InvalidAttributeName, desk.do, create) == f"Unknown Attribute {name}."


@pytest.mark.parametrize("name", ["DeduplicationScope", "FifoThroughputLimit"])
def test_standard_queue_has_no_scope_nor_throughput(name: str) -> None:
    words = f"You can specify the {name} only when FifoQueue is set to true."
    assert refused(InvalidAttributeName, Desk().do, c.CreateQueue("jobs", {name: "queue"})) == words


def test_throughput_for_each_group_needs_the_scope_of_groups(desk: FifoDesk) -> None:
    with pytest.raises(InvalidAttributeValue):
        desk.do(c.SetQueueAttributes(URL, {"FifoThroughputLimit": "perMessageGroupId"}))
    both = {"FifoThroughputLimit": "perMessageGroupId", "DeduplicationScope": "messageGroup"}
    desk.do(c.SetQueueAttributes(URL, both))
    with pytest.raises(InvalidAttributeValue):
        desk.do(c.SetQueueAttributes(URL, {"DeduplicationScope": "queue"}))


@pytest.mark.parametrize("name", ["ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"])
def test_other_values_are_refused(desk: FifoDesk, name: str) -> None:
    command = c.SetQueueAttributes(URL, {name: "maybe"})
    assert refused(InvalidAttributeValue, desk.do, command) == f"Invalid value for the parameter {name}."


def test_name_and_type_of_a_queue_must_agree() -> None:
    desk = Desk()
    with pytest.raises(InvalidParameterValue, match=r"Can only include alphanumeric characters"):
        desk.do(c.CreateQueue("jobs.fifo"))
    with pytest.raises(InvalidParameterValue, match=r"must end with .fifo suffix"):
        desk.do(c.CreateQueue("jobs", {"FifoQueue": "true"}))


# --- what a send must have ----------------------------------------------------------------


def test_send_needs_a_group(desk: FifoDesk) -> None:
    words = "The request must contain the parameter MessageGroupId."
    assert refused(MissingParameter, desk.do, send(message_deduplication_id="a")) == words
    entry = c.SendMessageBatchEntry("a", "x", message_deduplication_id="a")
    assert refused(InvalidParameterValue, desk.do, c.SendMessageBatch(URL, [entry])) == words


def test_send_needs_a_deduplication_id(desk: FifoDesk) -> None:
    words = (
        "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
    )
    assert refused(InvalidParameterValue, desk.do, send(message_group_id="g")) == words
    entries = [
        c.SendMessageBatchEntry("a", "x", message_group_id="g", message_deduplication_id="a"),
        c.SendMessageBatchEntry("b", "x", message_group_id="g"),
    ]
    assert refused(InvalidParameterValue, desk.do, c.SendMessageBatch(URL, entries)) == words


@pytest.mark.parametrize("bad", ["", " ", "a b", "ä", "x" * 129])
def test_ids_of_other_characters_are_refused(desk: FifoDesk, bad: str) -> None:
    words = "can only include alphanumeric and punctuation characters. 1 to 128 in length."
    command = send(message_group_id=bad, message_deduplication_id="a")
    assert refused(InvalidParameterValue, desk.do, command) == (
        f"Value {bad} for parameter MessageGroupId is invalid. Reason: MessageGroupId {words}"
    )
    command = send(message_group_id="g", message_deduplication_id=bad)
    assert refused(InvalidParameterValue, desk.do, command) == (
        f"Value {bad} for parameter MessageDeduplicationId is invalid. Reason: MessageDeduplicationId {words}"
    )
    with pytest.raises(InvalidParameterValue):
        desk.take(attempt=bad)


def test_message_has_no_delay_of_its_own(desk: FifoDesk) -> None:
    command = send(message_group_id="g", message_deduplication_id="a", delay_seconds=5)
    assert refused(InvalidParameterValue, desk.do, command) == (
        "Value 5 for parameter DelaySeconds is invalid. "
        "Reason: The request include parameter that is not valid for this queue type."
    )
    command.delay_seconds = 0
    desk.do(command)
    assert len(desk.take()) == 1


def test_message_shows_group_id_and_number(desk: FifoDesk) -> None:
    message_id, number = desk.put("g", "hello", "once")
    (message,) = desk.take()
    assert message.message_id == message_id
    assert (len(number), number.isdigit()) == (20, True)
    attributes = message.attributes
    assert attributes["MessageGroupId"] == "g"
    assert attributes["MessageDeduplicationId"] == "once"
    assert attributes["SequenceNumber"] == number


def test_numbers_grow(desk: FifoDesk) -> None:
    numbers = [desk.put(f"g{at % 2}")[1] for at in range(5)]
    desk.context.term += 1
    numbers += [desk.put()[1] for _ in range(2)]
    assert numbers == sorted(set(numbers))


# --- duplicates ------------------------------------------------------------------------------


def test_duplicate_is_accepted_and_answers_what_the_first_did(desk: FifoDesk) -> None:
    first = desk.put(dedup="a", body="one")
    assert desk.put(dedup="a", body="two") == first
    assert bodies(desk.take(10)) == ["one"]


def test_id_is_taken_for_five_minutes_from_the_first_send(desk: FifoDesk) -> None:
    first = desk.put(dedup="a")
    desk.wait(200)
    assert desk.put(dedup="a") == first
    desk.wait(99.999)
    assert desk.put(dedup="a") == first
    desk.wait(0.001)
    second = desk.put(dedup="a")
    assert second != first
    desk.wait(1)
    assert desk.put(dedup="a") == second


def test_id_stays_taken_when_its_message_is_deleted(desk: FifoDesk) -> None:
    first = desk.put(dedup="a")
    desk.drop(desk.take()[0])
    assert desk.put(dedup="a") == first
    assert desk.counts(URL) == (0, 0, 0)


def test_purge_forgets_ids(desk: FifoDesk) -> None:
    first = desk.put(dedup="a")
    undo: Undo = []
    desk.do(c.PurgeQueue(URL), undo=undo)
    roll_back(undo)
    assert desk.put(dedup="a") == first, "not if it is taken back"
    desk.do(c.PurgeQueue(URL))
    assert desk.put(dedup="a") != first
    assert desk.counts(URL) == (1, 0, 0)


def test_other_queue_of_the_same_name_knows_no_ids(desk: FifoDesk) -> None:
    first = desk.put(dedup="a")
    desk.do(c.DeleteQueue(URL))
    desk.create(URL, FifoQueue="true")
    assert desk.put(dedup="a") != first


def test_content_can_be_the_id() -> None:
    desk = FifoDesk(ContentBasedDeduplication="true")
    first = desk.put(body="same")
    assert desk.put(body="same") == first
    assert desk.put(body="other") != first
    (message, _) = desk.take(2)
    digest = sha256(b"same").hexdigest()
    assert message.attributes["MessageDeduplicationId"] == digest
    assert desk.put(body="third", dedup=digest) == first, "an explicit id that equals the generated one"
    assert desk.put(body="same", dedup="mine") != first, "an explicit id beats the content"


def test_content_as_id_can_be_switched_on_a_live_queue(desk: FifoDesk) -> None:
    desk.do(c.SetQueueAttributes(URL, {"ContentBasedDeduplication": "true"}))
    first = desk.do(send(message_group_id="g"))
    assert desk.do(send(message_group_id="g")) == first
    desk.do(c.SetQueueAttributes(URL, {"ContentBasedDeduplication": "false"}))
    with pytest.raises(InvalidParameterValue):
        desk.do(send(message_group_id="g"))


@pytest.mark.parametrize("scope", ["queue", "messageGroup"])
def test_scope_of_the_creation_says_what_a_duplicate_is(scope: str) -> None:
    desk = FifoDesk(DeduplicationScope=scope)
    for _ in range(2):
        desk.put("g1", dedup="a")
        desk.put("g2", dedup="a")
        other = "queue" if scope == "messageGroup" else "messageGroup"
        desk.do(c.SetQueueAttributes(URL, {"DeduplicationScope": other}))
        assert shown(desk)["DeduplicationScope"] == other
    assert desk.counts(URL) == (1 if scope == "queue" else 2, 0, 0)


def batch(*entries: tuple[str, str, str]) -> c.SendMessageBatch:
    """(id, group, deduplication id)."""
    return c.SendMessageBatch(
        URL,
        [
            c.SendMessageBatchEntry(name, f"b{at}", message_group_id=group, message_deduplication_id=dedup)
            for at, (name, group, dedup) in enumerate(entries)
        ],
    )


def test_batch_may_hold_duplicates(desk: FifoDesk) -> None:
    first = desk.put(dedup="a")
    result = desk.do(batch(("1", "g", "b"), ("2", "g", "a"), ("3", "h", "b"), ("4", "g", "c")))
    assert isinstance(result, SendMessageBatchResult)
    sent = [(entry.message_id, entry.sequence_number) for entry in result.successful]
    assert sent[1] == first
    assert sent[0] == sent[2]
    assert len({*sent}) == 3
    assert desk.counts(URL) == (3, 0, 0)


def test_retry_of_a_call_answers_the_same(desk: FifoDesk) -> None:
    guid = b"1" * 16
    assert desk.put(dedup="a", guid=guid) == desk.put(dedup="a", guid=guid)
    command = batch(("1", "g", "a"), ("2", "g", "b"), ("3", "g", " "))
    first = desk.do(command, invocation=b"2" * 16)
    assert [failure.id for failure in first.failed] == ["3"]
    steps = len(desk.log)
    assert desk.do(command, invocation=b"2" * 16) == first
    assert len(desk.log) == steps


# --- groups -----------------------------------------------------------------------------------


def test_receive_blocks_the_rest_of_its_group(desk: FifoDesk) -> None:
    for group in ("g1", "g1", "g1", "g2"):
        desk.put(group)
    assert bodies(desk.take(2)) == ["g11", "g12"]
    assert desk.counts(URL) == (2, 2, 0), "the blocked one is not in flight"
    assert bodies(desk.take(10)) == ["g24"]
    assert desk.take(10) == []


def test_one_group_is_taken_before_the_next(desk: FifoDesk) -> None:
    for group in ("g1", "g2", "g1", "g3", "g2"):
        desk.put(group)
    assert bodies(desk.take(10)) == ["g11", "g13", "g22", "g25", "g34"]


def test_groups_that_were_received_from_wait_behind_the_others(desk: FifoDesk) -> None:
    for group in ("g1", "g1", "g2", "g2", "g3", "g3"):
        desk.put(group)
        desk.wait(0.001)
    assert desk.groups(3, visibility_s=0) == ["g1", "g1", "g2"]
    desk.wait(0.001)
    assert desk.groups(6) == ["g3", "g3", "g1", "g1", "g2", "g2"]


def test_long_backlog_of_a_group_does_not_starve_the_others(desk: FifoDesk) -> None:
    for group in ("g1", "g1", "g1", "g1", "g2", "g3"):
        desk.put(group)
    order = []
    for _ in range(6):
        desk.wait(0.001)
        (message,) = desk.take()
        order.append(message.attributes["MessageGroupId"])
        desk.drop(message)
    assert order == ["g1", "g2", "g3", "g1", "g1", "g1"]


def test_older_message_made_visible_goes_alone(desk: FifoDesk) -> None:
    for _ in range(3):
        desk.put()
    first, second = desk.take(2)
    desk.change(second, 0)
    assert desk.take(10) == [], "the oldest is in flight"
    desk.change(first, 0)
    assert bodies(desk.take(10)) == ["g1", "g2", "g3"]


def test_only_the_older_one_comes_back_while_the_younger_is_in_flight(desk: FifoDesk) -> None:
    for _ in range(3):
        desk.put()
    first, second = desk.take(2, visibility_s=10)
    desk.change(second, 60)
    desk.wait(10)
    assert bodies(desk.take(10)) == [first.body]


def test_deleting_a_younger_one_frees_nothing(desk: FifoDesk) -> None:
    for _ in range(3):
        desk.put()
    first, second = desk.take(2)
    desk.drop(second)
    assert desk.take(10) == []
    desk.drop(first)
    assert bodies(desk.take(10)) == ["g3"]


def test_delay_of_the_queue_is_for_messages_that_are_in_it_too(desk: FifoDesk) -> None:
    desk.put()
    desk.do(c.SetQueueAttributes(URL, {"DelaySeconds": "10"}))
    desk.wait(4)
    desk.put()
    assert desk.counts(URL) == (0, 0, 2)
    desk.wait(6)
    assert desk.counts(URL) == (1, 0, 1)
    assert bodies(desk.take(10)) == ["g1"]
    desk.do(c.SetQueueAttributes(URL, {"DelaySeconds": "0"}))
    assert desk.counts(URL) == (1, 1, 0)
    desk.put("h")
    assert bodies(desk.take(10)) == ["h3"], "g is blocked, not delayed"


def test_message_that_was_received_is_not_delayed_again(desk: FifoDesk) -> None:
    desk.put()
    (message,) = desk.take()
    desk.do(c.SetQueueAttributes(URL, {"DelaySeconds": "900"}))
    desk.change(message, 0)
    assert desk.counts(URL) == (1, 0, 0)
    assert bodies(desk.take()) == ["g1"]


# --- handles whose visibility has ended ------------------------------------------------------


def expired(message: ReceivedMessage) -> str:
    handle = message.receipt_handle
    return f"Value {handle} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."


def test_delete_after_the_visibility_ended_is_refused(desk: FifoDesk) -> None:
    desk.put()
    (message,) = desk.take(visibility_s=5)
    desk.wait(5)
    assert refused(InvalidParameterValue, desk.drop, message) == expired(message)
    assert refused(InvalidParameterValue, desk.change, message, 5) == expired(message)
    (again,) = desk.take()
    assert refused(InvalidParameterValue, desk.drop, message) == expired(message)
    desk.drop(again)
    desk.drop(again)
    assert desk.counts(URL) == (0, 0, 0)


def test_batch_tells_of_an_expired_handle_in_other_words(desk: FifoDesk) -> None:
    desk.put()
    (message,) = desk.take(visibility_s=0)
    result = desk.do(c.DeleteMessageBatch(URL, [c.DeleteMessageBatchEntry("a", message.receipt_handle)]))
    assert isinstance(result, BatchResult)
    (failure,) = result.failed
    assert (failure.code, failure.message) == ("ReceiptHandleIsInvalid", "The receipt handle has expired")
    assert failure.sender_fault
    entry = c.ChangeMessageVisibilityBatchEntry("a", message.receipt_handle, 5)
    (failure,) = desk.do(c.ChangeMessageVisibilityBatch(URL, [entry])).failed
    assert (failure.code, failure.message) == ("InvalidParameterValue", expired(message))


def test_delete_inside_a_prolonged_visibility_succeeds(desk: FifoDesk) -> None:
    desk.put()
    (message,) = desk.take(visibility_s=5)
    desk.change(message, 60)
    desk.wait(30)
    desk.drop(message)
    assert desk.counts(URL) == (0, 0, 0)


# --- ReceiveRequestAttemptId ---------------------------------------------------------------


def test_same_attempt_gets_the_same_messages_and_handles(desk: FifoDesk) -> None:
    for group in ("g1", "g1", "g2"):
        desk.put(group)
    first = desk.take(2, attempt="a", visibility_s=30)
    desk.wait(20)
    assert desk.take(2, attempt="a", visibility_s=30) == first
    desk.wait(20)
    assert desk.counts(URL) == (1, 2, 0), "the visibility timeout began again"
    assert bodies(desk.take(10)) == ["g23"], "no id, nothing to repeat"
    for message in first:
        desk.drop(message)


NOT_RETRYABLE = (
    "Value a for parameter ReceiveRequestAttemptId is invalid. Reason: "
    "The receiveRequestAttemptId is not valid anymore since the receive call is not retryable."
)


def test_attempt_is_over_when_a_message_was_deleted(desk: FifoDesk) -> None:
    desk.put()
    desk.put()
    first, _ = desk.take(2, attempt="a")
    desk.drop(first)
    assert refused(InvalidParameterValue, lambda: desk.take(attempt="a")) == NOT_RETRYABLE
    desk.wait(300)
    assert len(desk.take(attempt="a")) == 1


@pytest.mark.parametrize("seconds", [0, 5, 30])
def test_attempt_is_over_when_a_visibility_was_changed(desk: FifoDesk, seconds: int) -> None:
    desk.put()
    (message,) = desk.take(attempt="a")
    desk.change(message, seconds)
    assert refused(InvalidParameterValue, lambda: desk.take(attempt="a")) == NOT_RETRYABLE


def test_attempt_receives_anew_when_its_time_out_has_ended(desk: FifoDesk) -> None:
    desk.put()
    (first,) = desk.take(attempt="a", visibility_s=5)
    desk.wait(5)
    (second,) = desk.take(attempt="a", visibility_s=5)
    assert first.receipt_handle != second.receipt_handle
    assert desk.take(attempt="a") == [second]


@pytest.mark.parametrize("guid", [b"", bytes(16)])
def test_attempt_is_over_for_all_when_another_consumer_has_one_of_its_messages(desk: FifoDesk, guid: bytes) -> None:
    """The grace of a takeover moves the deadline of the rest: handed out again, they would overtake that one."""
    for _ in range(3):
        desk.put("g")
    assert len(desk.asked(3, attempt="a", visibility_s=5, guid=guid).messages) == 3
    desk.wait(5)
    other = desk.take(1, visibility_s=60)
    assert bodies(other) == ["g1"]
    now_ms = desk.context.now_ms
    desk.write([m.TookOver(2, "a", now_ms - 500, now_ms + 1_000)])
    assert desk.counts(URL) == (0, 3, 0), "the grace has moved their deadline"
    assert desk.asked(3, attempt="a", visibility_s=5, guid=guid).messages == []
    assert desk.asked(3, attempt="a", visibility_s=5).messages == []
    desk.wait(2)
    desk.drop(other[0])
    assert bodies(desk.take(3)) == ["g2", "g3"]


@pytest.mark.parametrize("deleted", [0, 1])
def test_attempt_is_over_when_one_was_deleted_and_another_consumer_has_the_other(desk: FifoDesk, deleted: int) -> None:
    desk.put("g1")
    desk.put("g2")
    desk.drop(desk.take(2, attempt="a", visibility_s=5)[deleted])
    desk.wait(5)
    assert len(desk.take(2, visibility_s=60)) == 1
    assert refused(InvalidParameterValue, lambda: desk.take(attempt="a")) == NOT_RETRYABLE


def test_attempt_counts_for_five_minutes(desk: FifoDesk) -> None:
    desk.put()
    first = desk.take(attempt="a", visibility_s=400)
    desk.wait(299)
    assert desk.take(attempt="a", visibility_s=400) == first
    desk.wait(1)
    assert desk.take(attempt="a") == []


def test_attempt_whose_answer_reached_nobody_is_forgotten(desk: FifoDesk) -> None:
    desk.put()
    result = desk.asked(attempt="a")
    desk.write(returned(desk.state, result, desk.context.now_ms))
    (second,) = desk.take(attempt="a")
    assert second.receipt_handle != result.messages[0].receipt_handle


def test_answer_that_a_later_attempt_has_does_not_go_back(desk: FifoDesk) -> None:
    desk.put()
    first = desk.asked(attempt="a")
    desk.wait(1)
    desk.take(attempt="a")
    assert returned(desk.state, first, desk.context.now_ms) == []


@pytest.mark.parametrize("seconds", [0, 1])
def test_repetition_that_reached_nobody_leaves_what_the_first_answer_gave(desk: FifoDesk, seconds: int) -> None:
    desk.put()
    guid = b"2" * 16
    desk.asked(attempt="a")
    desk.wait(seconds)
    again = desk.asked(attempt="a", guid=guid)
    assert returned(desk.state, again, desk.context.now_ms) == []
    retried = desk.asked(attempt="a", guid=guid)
    assert returned(desk.state, retried, desk.context.now_ms) == []
    assert desk.counts(URL) == (0, 1, 0)


def test_retry_of_a_receive_that_was_repeated_does_not_go_back(desk: FifoDesk) -> None:
    desk.put()
    guid = b"1" * 16
    desk.asked(attempt="a", guid=guid)
    desk.wait(1)
    desk.take(attempt="a")
    retried = desk.asked(attempt="a", guid=guid)
    assert retried.messages
    assert returned(desk.state, retried, desk.context.now_ms) == []


def test_retry_of_the_sdk_restarts_the_visibility_and_leaves_the_attempt_good(desk: FifoDesk) -> None:
    desk.put()
    guid = b"1" * 16
    first = desk.asked(attempt="a", guid=guid)
    desk.wait(20)
    again = desk.asked(attempt="a", guid=guid)
    assert (again.messages, again.request_attempt) == (first.messages, first.request_attempt)
    desk.wait(29)
    assert desk.counts(URL) == (0, 1, 0), "30 s from the retry"
    assert desk.take(attempt="a") == first.messages


@pytest.mark.parametrize("is_deleted", [False, True])
def test_retry_of_the_sdk_restarts_nothing_once_the_attempt_is_used_up(desk: FifoDesk, is_deleted: bool) -> None:
    desk.put("g1")
    desk.put("g2")
    guid = b"1" * 16
    one, other = desk.asked(limit=2, attempt="a", guid=guid).messages
    if is_deleted:
        desk.drop(one)
    else:
        desk.do(c.ChangeMessageVisibility(URL, receipt_handle=one.receipt_handle, visibility_timeout=20))
    desk.wait(10)
    assert other in desk.asked(limit=2, attempt="a", guid=guid).messages
    desk.wait(20)
    assert desk.counts(URL)[1] == 0, "30 s from the first answer"
    assert refused(InvalidParameterValue, lambda: desk.take(2, attempt="a")) == NOT_RETRYABLE


def test_standard_queue_ignores_the_attempt() -> None:
    desk = Desk()
    desk.create()
    desk.send("one")
    desk.send("two")
    for body in ("one", "two"):
        command = c.ReceiveMessage("jobs", receive_request_attempt_id="not even a good one")
        assert bodies(desk.do(command).messages) == [body]


# --- taking back ---------------------------------------------------------------------------------


def test_what_is_taken_back_leaves_no_trace(desk: FifoDesk) -> None:
    for group in ("g1", "g1", "g2"):
        desk.put(group)
    before = state_digest(desk.state, desk.context.now_ms)
    undo: Undo = []
    command = c.ReceiveMessage(URL, max_number_of_messages=2, receive_request_attempt_id="a")
    first, second = desk.do(command, undo=undo).messages
    desk.do(c.DeleteMessage(URL, first.receipt_handle), undo=undo)
    desk.do(c.DeleteMessage(URL, second.receipt_handle), undo=undo)
    desk.do(send(message_group_id="g1", message_deduplication_id="new"), undo=undo)
    roll_back(undo)
    assert state_digest(desk.state, desk.context.now_ms) == before
    assert bodies(desk.take(10)) == ["g11", "g12", "g23"]
