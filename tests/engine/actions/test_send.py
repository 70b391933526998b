"""SendMessage and SendMessageBatch: what is stored, and AWS's words for what is refused."""

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.contents import attributes_bytes
from elasticq.model import commands as c
from elasticq.model import errors
from elasticq.model.commands import MessageAttributeValue as Value
from tests.engine.desk import Desk

MEBIBYTE = 1_048_576


def desk(**attributes: str) -> Desk:
    made = Desk()
    made.create(**attributes)
    return made


def entry(name: str | None = "a", body: str | None = "body", **rest: object) -> c.SendMessageBatchEntry:
    return c.SendMessageBatchEntry(id=name, message_body=body, **rest)


def refusal(made: Desk, command: c.Command) -> errors.SqsError:
    """The error of a command that must change nothing."""
    written = len(made.log)
    with pytest.raises(errors.SqsError) as caught:
        made.do(command)
    assert len(made.log) == written
    return caught.value


def attribute_refusal(name: str, value: Value) -> errors.SqsError:
    return refusal(desk(), c.SendMessage(queue_url="jobs", message_body="x", message_attributes={name: value}))


def test_send_is_one_mutation_and_can_be_received_at_once() -> None:
    made = desk()
    message_id = made.send("hello")
    assert isinstance(made.steps[-1][0], m.MessageStored)
    assert len(made.steps[-1]) == 1
    message = made.receive_one()
    assert (message.message_id, message.body) == (message_id, "hello")


def test_message_ids_look_like_uuids_and_differ() -> None:
    made = desk()
    ids = [made.send() for _ in range(50)]
    assert len(set(ids)) == 50
    assert all([len(part) for part in text.split("-")] == [8, 4, 4, 4, 12] for text in ids)


def test_a_messages_own_delay_beats_the_queues_zero_too() -> None:
    made = desk(DelaySeconds="5")
    made.send("queue's")
    made.send("own", delay_s=2)
    made.send("at once", delay_s=0)
    assert made.counts() == (1, 0, 2)
    assert [x.body for x in made.receive(10)] == ["at once"]
    made.wait(2)
    assert [x.body for x in made.receive(10)] == ["own"]
    made.wait(3)
    assert [x.body for x in made.receive(10)] == ["queue's"]


def test_sequence_carries_the_term() -> None:
    made = desk()
    made.send()
    made.context.term = 7
    made.send()
    first, second = (x for x in made.log if isinstance(x, m.MessageStored))
    assert (first.sequence >> 40, second.sequence >> 40) == (1, 7)


# --- the body --------------------------------------------------------------------


@pytest.mark.parametrize("body", [None, ""])
def test_empty_body_is_a_missing_parameter(body: str | None) -> None:
    error = refusal(desk(), c.SendMessage(queue_url="jobs", message_body=body))
    assert (error.code, error.json_type, error.status) == ("MissingParameter", "MissingRequiredParameterException", 400)
    assert error.message == "The request must contain the parameter MessageBody."


@pytest.mark.parametrize("bad", ["\x00", "\x08", "\x0b", "\x1f", "\ufffe", "\uffff", "\ud800", "fine\x01fine"])
def test_forbidden_characters_are_invalid_message_contents(bad: str) -> None:
    assert refusal(desk(), c.SendMessage(queue_url="jobs", message_body=bad)).code == "InvalidMessageContents"


@pytest.mark.parametrize(
    "good", ["\t", "\n", "\r", " ", "\x7f", "\x80", "\ud7ff", "\ue000", "\ufffd", "\U0010ffff", "\"'<&"]
)
def test_all_other_characters_survive(good: str) -> None:
    made = desk()
    made.send(good)
    assert made.receive_one().body == good


def test_body_may_fill_the_queues_maximum_and_not_a_byte_more() -> None:
    made = desk(MaximumMessageSize="1024")
    made.send("x" * 1_024)
    made.send("é" * 512)
    for body in ("x" * 1_025, "é" * 512 + "x"):
        error = refusal(made, c.SendMessage(queue_url="jobs", message_body=body))
        assert error.code == "InvalidParameterValue"
        assert error.message == "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."


def test_user_attributes_count_into_the_size_and_system_attributes_do_not() -> None:
    made = desk(MaximumMessageSize="1024")
    attributes = {"name": Value("String.é", string_value="värde"), "bin": Value("Binary", binary_value=b"12345")}
    size = attributes_bytes(attributes)
    assert size == 4 + 9 + 6 + 3 + 6 + 5
    trace = {"AWSTraceHeader": Value("String", string_value="Root=1")}
    made.do(
        c.SendMessage(
            queue_url="jobs",
            message_body="x" * (1_024 - size),
            message_attributes=attributes,
            message_system_attributes=trace,
        )
    )
    too_long = c.SendMessage(queue_url="jobs", message_body="x" * (1_025 - size), message_attributes=attributes)
    assert "must be shorter than 1024 bytes" in refusal(made, too_long).message


# --- parameters -------------------------------------------------------------------


@pytest.mark.parametrize("delay_s", [-1, 901])
def test_delay_out_of_range_is_refused(delay_s: int) -> None:
    error = refusal(desk(), c.SendMessage(queue_url="jobs", message_body="x", delay_seconds=delay_s))
    assert error.code == "InvalidParameterValue"
    assert error.message.startswith(f"Value {delay_s} for parameter DelaySeconds is invalid. Reason: ")


@pytest.mark.parametrize("group_id", ["", "a b", "é", "x" * 129, "line\n"])
def test_bad_group_id_is_refused_on_standard_queues_too(group_id: str) -> None:
    error = refusal(desk(), c.SendMessage(queue_url="jobs", message_body="x", message_group_id=group_id))
    assert error.code == "InvalidParameterValue"
    assert error.message == (
        f"Value {group_id} for parameter MessageGroupId is invalid. "
        "Reason: MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length."
    )


def test_group_id_is_returned_and_neither_blocks_nor_orders() -> None:
    made = desk()
    every_mark = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~aZ9"
    for body in ("one", "two"):
        made.do(c.SendMessage(queue_url="jobs", message_body=body, message_group_id=every_mark))
    assert made.receive_one().attributes["MessageGroupId"] == every_mark
    assert made.receive_one().body == "two"


def test_deduplication_id_on_a_standard_queue_is_refused() -> None:
    error = refusal(desk(), c.SendMessage(queue_url="jobs", message_body="x", message_deduplication_id="d"))
    assert error.code == "InvalidParameterValue"
    assert error.message == (
        "Value d for parameter MessageDeduplicationId is invalid. "
        "Reason: The request includes a parameter that is not valid for this queue type."
    )


def test_unknown_queue_and_missing_url_are_told() -> None:
    error = refusal(desk(), c.SendMessage(queue_url="nope", message_body="x"))
    assert (error.code, error.json_type) == ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
    assert error.message == "The specified queue does not exist."
    assert refusal(desk(), c.SendMessage(message_body="x")).code == "MissingParameter"


def test_only_the_last_two_parts_of_a_queue_url_count() -> None:
    made = desk()
    for url in (
        "https://sqs.eu-west-1.amazonaws.com/000000000000/jobs",
        "http://x/y/queue/r/000000000000/jobs/",
        "jobs",
    ):
        made.send(url=url)
    assert made.counts() == (3, 0, 0)
    assert (
        refusal(made, c.SendMessage(queue_url="http://h/111111111111/jobs", message_body="x")).json_type
        == "QueueDoesNotExist"
    )


# --- attributes (docs/aws.md) ------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x" * 257,
        "AWS.x",
        "aws.x",
        "Amazon.x",
        "AMAZON.",
        ".x",
        "x.",
        "a..b",
        "a b",
        "a!",
        'a"',
        "§",
        "(",
        "?",
        "a\n",
    ],
)
def test_bad_attribute_names_are_refused(name: str) -> None:
    assert attribute_refusal(name, Value("String", string_value="v")).code == "InvalidParameterValue"


@pytest.mark.parametrize("name", ["x" * 256, "a", "A-b_c.d", "attr.1", "attr.1øßä", "awsx", "AWS"])
def test_good_attribute_names_are_taken(name: str) -> None:
    made = desk()
    attributes = {name: Value("String", string_value="v")}
    made.do(c.SendMessage(queue_url="jobs", message_body="x", message_attributes=attributes))
    assert made.receive_one().message_attributes == attributes


@pytest.mark.parametrize("kind", ["string", "Str", "String.", "Text", ".x", "StringX", "String." + "x" * 250])
def test_bad_attribute_types_are_refused(kind: str) -> None:
    error = attribute_refusal("A", Value(kind, string_value="v"))
    assert error.code == "InvalidParameterValue"
    assert error.message == (
        "The type of message (user) attribute 'A' is invalid. "
        "You must use only the following supported type prefixes: Binary, Number, String."
    )


@pytest.mark.parametrize(
    "value",
    [
        Value("String"),
        Value("String", string_value=""),
        Value("String", binary_value=b"x"),
        Value("String.x", string_value="v", binary_value=b"x"),
    ],
)
def test_empty_string_attribute_is_refused(value: Value) -> None:
    error = attribute_refusal("A", value)
    assert error.code == "InvalidParameterValue"
    assert error.message == "Message (user) attribute 'A' must contain a non-empty value of type 'String'."


@pytest.mark.parametrize(
    "value", [Value("Binary"), Value("Binary", binary_value=b""), Value("Binary", string_value="x")]
)
def test_empty_binary_attribute_is_refused(value: Value) -> None:
    assert "non-empty value of type 'Binary'" in attribute_refusal("A", value).message


def test_attribute_without_a_type_is_refused() -> None:
    assert attribute_refusal("A", Value("", string_value="v")).code == "InvalidParameterValue"


def test_forbidden_characters_in_a_string_attribute_are_an_invalid_parameter() -> None:
    assert attribute_refusal("A", Value("String", string_value="\x00")).code == "InvalidParameterValue"


@pytest.mark.parametrize(
    "number", ["1", "-1", "+1.50", "0", "0.000", "1e126", "9.9E125", "1e-128", "9" * 38, ".5", "5.", "0" * 60 + "7"]
)
def test_numbers_are_kept_as_sent(number: str) -> None:
    made = desk()
    attributes = {"n": Value("Number.int", string_value=number)}
    made.do(c.SendMessage(queue_url="jobs", message_body="x", message_attributes=attributes))
    assert made.receive_one().message_attributes == attributes


@pytest.mark.parametrize(
    "number", ["x", "1x", "--1", "1e127", "1e-129", "1" * 39, "e5", ".", "NaN", "Infinity", "0x1", " 1", "1e99999"]
)
def test_what_is_no_number_is_refused(number: str) -> None:
    error = attribute_refusal("A", Value("Number", string_value=number))
    assert error.code == "InvalidParameterValue"
    assert error.message == "Can't cast the value of message (user) attribute 'A' to a number."


def test_eleven_attributes_are_too_many_and_ten_are_not() -> None:
    made = desk()
    attributes = {f"a{at}": Value("String", string_value="v") for at in range(11)}
    error = refusal(made, c.SendMessage(queue_url="jobs", message_body="x", message_attributes=attributes))
    assert error.code == "InvalidParameterValue"
    assert error.message == "Number of message attributes [11] exceeds the allowed maximum [10]."
    del attributes["a10"]
    made.do(c.SendMessage(queue_url="jobs", message_body="x", message_attributes=attributes))


def test_trace_header_is_the_only_system_attribute() -> None:
    made = desk()
    trace = {"AWSTraceHeader": Value("String", string_value="Root=1-5759e988")}
    made.do(c.SendMessage(queue_url="jobs", message_body="x", message_system_attributes=trace))
    assert made.receive_one().attributes["AWSTraceHeader"] == "Root=1-5759e988"
    for bad in ({"Other": Value("String", string_value="x")}, {"AWSTraceHeader": Value("Number", string_value="1")}):
        assert (
            refusal(made, c.SendMessage(queue_url="jobs", message_body="x", message_system_attributes=bad)).code
            == "InvalidParameterValue"
        )


# --- batches ----------------------------------------------------------------------


def batch(*entries: c.SendMessageBatchEntry) -> c.SendMessageBatch:
    return c.SendMessageBatch(queue_url="jobs", entries=list(entries))


def test_batch_stores_what_passes_and_tells_the_rest() -> None:
    made = desk(MaximumMessageSize="1024")
    result = made.do(batch(entry("a"), entry("b", "x" * 1_025), entry("c", "\x00"), entry("d", ""), entry("e", "last")))
    assert [(x.id, x.position) for x in result.successful] == [("a", 0), ("e", 4)]
    assert [(x.id, x.code, x.sender_fault) for x in result.failed] == [
        ("b", "InvalidParameterValue", True),
        ("c", "InvalidMessageContents", True),
        ("d", "MissingParameter", True),
    ]
    assert result.failed[0].message == (
        "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."
    )
    received = {x.body: x.message_id for x in made.receive(10)}
    assert received == {"body": result.successful[0].message_id, "last": result.successful[1].message_id}


def test_batch_of_only_bad_entries_changes_nothing() -> None:
    made = desk()
    written = len(made.log)
    result = made.do(batch(entry("a", "\x00")))
    assert (result.successful, len(result.failed), len(made.log)) == ([], 1, written)


def test_empty_batch_is_refused() -> None:
    error = refusal(desk(), batch())
    assert (error.code, error.json_type) == ("AWS.SimpleQueueService.EmptyBatchRequest", "EmptyBatchRequest")
    assert error.message == "There should be at least one SendMessageBatchRequestEntry in the request."


def test_eleven_entries_are_refused() -> None:
    error = refusal(desk(), batch(*(entry(f"e{at}") for at in range(11))))
    assert error.code == "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"
    assert error.message == "Maximum number of entries per request are 10. You have sent 11."


@pytest.mark.parametrize("name", [None, "", "a b", "ä", "x" * 81, "a.b", "a\n"])
def test_bad_entry_id_is_refused(name: str | None) -> None:
    error = refusal(desk(), batch(entry("ok"), entry(name)))
    assert error.code == "AWS.SimpleQueueService.InvalidBatchEntryId"
    assert error.message == (
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
        "It can be at most 80 letters long."
    )


def test_first_repeated_entry_id_is_named() -> None:
    error = refusal(desk(), batch(entry("a"), entry("b"), entry("b"), entry("a")))
    assert error.code == "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"
    assert error.message == "Id b repeated."


def test_batch_sum_over_a_mebibyte_is_refused_whatever_the_queues_maximum() -> None:
    made = desk(MaximumMessageSize="1024")
    half = "x" * (MEBIBYTE // 2)
    error = refusal(made, batch(entry("a", half), entry("b", half + "y")))
    assert error.code == "AWS.SimpleQueueService.BatchRequestTooLong"
    assert error.message == f"Batch requests cannot be longer than 1048576 bytes. You have sent {MEBIBYTE + 1} bytes."
    assert len(made.do(batch(entry("a", half), entry("b", half))).failed) == 2
    assert len(desk().do(batch(entry("a", half), entry("b", half))).successful) == 2


def test_a_lone_entry_over_a_mebibyte_is_a_batch_too_long() -> None:
    assert refusal(desk(), batch(entry("a", "x" * (MEBIBYTE + 1)))).json_type == "BatchRequestTooLong"
