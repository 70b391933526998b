"""AWS JSON 1.0: bytes in, commands out; results in, bytes out, read back by botocore's own parser."""

import json as reference_json
from typing import Any

import botocore.parsers
import botocore.session
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.model import errors
from elasticq.model.commands import (
    Command,
    CreateQueue,
    DeleteMessage,
    GetQueueAttributes,
    MessageAttributeValue,
    ReceiveMessage,
    SendMessage,
    SendMessageBatch,
    SendMessageBatchEntry,
)
from elasticq.model.errors import (
    InvalidParameterValue,
    RequestTooLarge,
    SerializationError,
    SqsError,
    TooManyEntriesInBatchRequest,
)
from elasticq.model.limits import JSON_DEPTH_MAX, LIST_ITEMS_MAX, SMALL_REQUEST_BYTES_MAX, STRINGS_MAX
from elasticq.model.results import (
    EmptyResult,
    ListQueuesResult,
    ReceivedMessage,
    ReceiveMessageResult,
    Result,
    SendMessageResult,
)
from elasticq.wire import careful, json
from elasticq.wire.operations import OPERATIONS, SQS
from tests.wire.answers import ANSWERS, ID
from tests.wire.reference import any_command, attribute_values, members_of, pairs, texts

SERVICE = botocore.session.get_session().get_service_model("sqs")
PARSER = botocore.parsers.create_parser("json")


def parsed(action: str, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """What boto3 would hand to its caller."""
    response = {"status_code": status, "headers": headers or {}, "body": body}
    answer: dict[str, Any] = PARSER.parse(response, SERVICE.operation_model(action).output_shape)
    return answer


def concrete_errors() -> list[type[SqsError]]:
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SqsError)]
    return [kind for kind in found if kind not in (SqsError, errors.SenderError, errors.ReceiverError)]


# --- requests ---


@pytest.mark.parametrize(
    ("action", "body", "command"),
    [
        ("CreateQueue", b"", CreateQueue()),
        ("CreateQueue", b" {} ", CreateQueue()),
        ("CreateQueue", b'{"QueueName":"q","tags":{"a":""}}', CreateQueue("q", tags={"a": ""})),
        ("CreateQueue", b'{"QueueName":null,"Attributes":null,"tags":null}', CreateQueue()),
        ("CreateQueue", b'{"Attributes":{"DelaySeconds":null,"Policy":""}}', CreateQueue(attributes={"Policy": ""})),
        ("GetQueueAttributes", b'{"AttributeNames":null}', GetQueueAttributes()),
        ("SendMessage", b'{"MessageBody":"\\ud83d\\ude00\\r"}', SendMessage(message_body="\U0001f600\r")),
        ("SendMessage", '{"MessageBody":"\u00e4"}'.encode(), SendMessage(message_body="\u00e4")),
        ("SendMessage", b'{"Unknown":[{"a":[1]}],"DelaySeconds":0}', SendMessage(delay_seconds=0)),
        ("SendMessage", b'{"DelaySeconds":1,"DelaySeconds":-2}', SendMessage(delay_seconds=-2)),
        (
            "SendMessage",
            b'{"MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"AP8=","StringListValues":null}}}',
            SendMessage(message_attributes={"a": MessageAttributeValue("Binary", binary_value=b"\x00\xff")}),
        ),
        (
            "SendMessage",
            b'{"MessageAttributes":{"a":{"DataType":null,"StringValue":"x"},"b":null}}',
            SendMessage(message_attributes={"a": MessageAttributeValue(string_value="x")}),
        ),
        (
            "SendMessageBatch",
            b'{"Entries":[{"Id":"a","MessageBody":"x","MessageAttributes":null}],"QueueUrl":"u"}',
            SendMessageBatch("u", [SendMessageBatchEntry("a", "x")]),
        ),
        (
            "ReceiveMessage",
            b'{"AttributeNames":["All"],"MessageSystemAttributeNames":["SenderId"],"MaxNumberOfMessages":10}',
            ReceiveMessage(None, ["All"], ["SenderId"], max_number_of_messages=10),
        ),
        ("DeleteMessage", b'{"QueueUrl":"u","ReceiptHandle":"h"}', DeleteMessage("u", "h")),
    ],
)
def test_request_becomes_a_command(action: str, body: bytes, command: Command) -> None:
    assert json.decode(OPERATIONS[action], body) == command


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"DelaySeconds":"5"}', "STRING_VALUE can not be converted to an Integer ($.DelaySeconds)"),
        (b'{"MessageBody":5}', "NUMBER_VALUE can not be converted to a String ($.MessageBody)"),
        (b'{"MessageBody":true}', "TRUE_VALUE can not be converted to a String ($.MessageBody)"),
        (b'{"MessageBody":{}}', "Unexpected value type in payload: expected str, got object ($.MessageBody)"),
        (
            b'{"MessageAttributes":[]}',
            "Unexpected value type in payload: expected object, got array ($.MessageAttributes)",
        ),
        (b'{"DelaySeconds":1.5}', "Unexpected value type in payload: expected int, got float ($.DelaySeconds)"),
        (b"[]", "Unexpected value type in payload: expected object, got array"),
        (b"null", "Unexpected value type in payload: expected object, got null"),
        (b'{"DelaySeconds":1e999}', None),
        (b'{"DelaySeconds":' + b"9" * 9000 + b"}", None),
        (b'{"MessageAttributes":{"a":{"BinaryValue":"!"}}}', None),
        (b'{"MessageBody":null,"MessageAttributes":{"a":{"BinaryValue":"!"}}}', None),
        (b'{"MessageBody":5,"MessageGroupId":null}', "NUMBER_VALUE can not be converted to a String ($.MessageBody)"),
        (b'{"MessageBody":5,"x":nullnull}', None),
        (b" ", None),
        (b"{", None),
        (b'{"MessageBody":"x"}}', None),
        (b'{"MessageBody":"x",}', None),
        (b'{"MessageBody":"\n"}', None),
        (b'{"MessageBody":"\\ud800"}', None),
        (b'{"MessageBody":"\xff"}', None),
        (b'{"Unknown":"\xff"}', None),
        (b'{"MessageAttributes":{"\xed\xa0\x80":{}}}', None),
        (b"Action=SendMessage", None),
        (b'{"x":' + b"[" * 100_000, "The request body is nested too deeply."),
        (b'{"MessageBody":null,"x":' + b"[" * 100_000, "The request body is nested too deeply."),
        (
            b'{"MessageBody":' + b'{"a":' * 10_000,
            "Unexpected value type in payload: expected str, got object ($.MessageBody)",
        ),
    ],
)
def test_bad_request_is_a_serialization_error(body: bytes, message: str | None) -> None:
    with pytest.raises(SerializationError) as raised:
        json.decode(OPERATIONS["SendMessage"], body)
    assert raised.value.message
    assert message in (None, raised.value.message)


@pytest.mark.parametrize("opener", [b"[", b'{"a":', b'[{"a":'])
@pytest.mark.parametrize("members", [b"", b'"MessageAttributes":null,', b'"Entries":null,'])
def test_unknown_member_may_nest_up_to_the_limit(opener: bytes, members: bytes) -> None:
    def nested(levels: int) -> bytes:
        count = levels // sum(map(opener.count, (b"[", b"{")))
        closer = opener.replace(b'"a":', b"")[::-1].translate(bytes.maketrans(b"[{", b"]}"))
        return b"{" + members + b'"x":' + opener * count + b"1" + closer * count + b"}"

    for action in ("SendMessage", "SendMessageBatch"):
        assert json.decode(OPERATIONS[action], nested(JSON_DEPTH_MAX // 2)) == OPERATIONS[action].command()
        for levels in (JSON_DEPTH_MAX, 10 * JSON_DEPTH_MAX):
            with pytest.raises(SerializationError, match="nested too deeply"):
                json.decode(OPERATIONS[action], nested(levels))


def large(start: bytes, unit: bytes, end: bytes, count: int) -> bytes:
    """More than is decoded without a look at its parts."""
    body = start + b",".join([unit % at if b"%" in unit else unit for at in range(count)]) + end
    return body + b" " * (SMALL_REQUEST_BYTES_MAX + 1 - len(body))


def test_of_a_large_list_no_more_is_built_than_is_refused() -> None:
    """Counted by what is built, not by the clock: 8 MiB of entries once held the loop for a quarter of a second."""
    for unit, count in ((b"{}", 200_000), (b'{"Id":"a"}', 25_000), (b"null,{}", 100_000)):
        body = large(b'{"Entries":[', unit, b"]}", count)
        command = careful.decode(SendMessageBatch, body)
        assert isinstance(command, SendMessageBatch)
        assert len(command.entries) == LIST_ITEMS_MAX + 1
        with pytest.raises(TooManyEntriesInBatchRequest):
            json.decode(OPERATIONS["SendMessageBatch"], body)
    for count in (LIST_ITEMS_MAX, LIST_ITEMS_MAX + 1):
        body = large(b'{"AttributeNames":[', b'"a"', b"]}", count)
        assert careful.decode(ReceiveMessage, body).attribute_names is not None
        with pytest.raises(RequestTooLarge):
            json.decode(OPERATIONS["ReceiveMessage"], body)


@pytest.mark.parametrize("text", [b"", b'\\"' * 3_000, b"\\\\" * 3_000])
def test_the_strings_of_a_large_request_are_bounded(text: bytes) -> None:
    """A map's members have one each at least; a quotation mark in a string is none."""
    start = b'{"MessageBody":"' + text + b'","MessageAttributes":{'
    at_most = large(start, b'"%x":{}', b"}}", STRINGS_MAX - 4)
    with pytest.raises(InvalidParameterValue, match="Number of message attributes"):
        json.decode(OPERATIONS["SendMessage"], at_most)
    with pytest.raises(SerializationError, match="more than 60000 strings"):
        json.decode(OPERATIONS["SendMessage"], large(start, b'"%x":{}', b"}}", STRINGS_MAX + 1))


def test_a_text_of_many_quotation_marks_is_one_string() -> None:
    body = msgspec.json.encode({"MessageBody": '"' * 500_000})
    assert json.decode(OPERATIONS["SendMessage"], body) == SendMessage(message_body='"' * 500_000)


@given(any_command)
def test_a_large_command_is_read_back(command: Command) -> None:
    operation = OPERATIONS[type(command).__name__]
    plain = reference_json.dumps(members_of(command)).encode() + b" " * SMALL_REQUEST_BYTES_MAX
    if operation.body_bytes_max > len(plain):
        assert json.decode(operation, plain) == command
    else:
        with pytest.raises(RequestTooLarge):
            json.decode(operation, plain)


@given(any_command)
def test_command_is_read_back(command: Command) -> None:
    operation = OPERATIONS[type(command).__name__]
    assert json.decode(operation, reference_json.dumps(members_of(command)).encode()) == command
    absent = dict.fromkeys(field.encode_name for field in msgspec.structs.fields(type(command)))
    with_nulls = msgspec.json.encode({**absent, **members_of(command)})
    assert json.decode(operation, with_nulls) == command


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
members = [
    field.encode_name for operation in OPERATIONS.values() for field in msgspec.structs.fields(operation.command)
]
member_names = st.sampled_from(sorted(set(members)))


@given(
    st.sampled_from(sorted(OPERATIONS)),
    st.binary() | st.dictionaries(member_names, json_values).map(lambda value: reference_json.dumps(value).encode()),
)
def test_any_bytes_are_a_command_or_an_error_of_its_caller(action: str, body: bytes) -> None:
    try:
        command = json.decode(OPERATIONS[action], body)
    except (SerializationError, InvalidParameterValue) as error:  # the latter: an integer beyond 32 bits
        json.encode_error(SQS, error)
    else:
        assert isinstance(command, OPERATIONS[action].command)


@given(any_command, st.data())
def test_damaged_request_is_a_command_or_an_error_of_its_caller(command: Command, data: st.DataObject) -> None:
    body = bytearray(reference_json.dumps(members_of(command)).encode())
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        json.decode(OPERATIONS[type(command).__name__], bytes(body))
    except (SerializationError, InvalidParameterValue) as error:  # the latter: an integer beyond 32 bits
        json.encode_error(SQS, error)


# --- answers ---


@pytest.mark.parametrize(("command", "result", "seen"), ANSWERS, ids=lambda value: type(value).__name__)
def test_answer_is_read_by_botocore(command: Command, result: Result, seen: dict[str, object]) -> None:
    action = type(command).__name__
    answer = parsed(action, json.encode(OPERATIONS[action], command, result))
    answer.pop("ResponseMetadata")
    assert answer == seen


@pytest.mark.parametrize(
    ("action", "command", "result", "body"),
    [
        ("DeleteMessage", DeleteMessage(), EmptyResult(), b""),
        ("ListQueues", CreateQueue(), ListQueuesResult(), b"{}"),
        ("ReceiveMessage", ReceiveMessage(), ReceiveMessageResult(), b"{}"),
        (
            "SendMessage",
            SendMessage(message_body="This is a test message"),
            SendMessageResult(ID),
            f'{{"MessageId":"{ID}","MD5OfMessageBody":"fafb00f5732ab283681e124bf8747ed1"}}'.encode(),
        ),
    ],
)
def test_answer_has_these_bytes(action: str, command: Command, result: Result, body: bytes) -> None:
    assert json.encode(OPERATIONS[action], command, result) == body


@given(st.lists(st.tuples(texts, pairs, st.dictionaries(texts, attribute_values, max_size=3)), min_size=1, max_size=3))
def test_received_messages_of_any_text_are_read_back(
    messages: list[tuple[str, dict[str, str], dict[str, MessageAttributeValue]]],
) -> None:
    received = [ReceivedMessage(ID, "AQ-_=", *message) for message in messages]
    body = json.encode(OPERATIONS["ReceiveMessage"], ReceiveMessage(), ReceiveMessageResult(received))
    for read, (text, attributes, user_attributes) in zip(reference_json.loads(body)["Messages"], messages, strict=True):
        assert (read["MessageId"], read["ReceiptHandle"], read["Body"]) == (ID, "AQ-_=", text)
        assert read.get("Attributes", {}) == attributes
        assert msgspec.convert(read.get("MessageAttributes", {}), dict[str, MessageAttributeValue]) == user_attributes
        assert ("MD5OfMessageAttributes" in read) is bool(user_attributes)


@pytest.mark.parametrize("kind", concrete_errors())
def test_error_is_read_by_botocore(kind: type[SqsError]) -> None:
    error = kind('no "\u00e4"\x00')
    body, query_error = json.encode_error(SQS, error)
    answer = parsed("SendMessage", body, error.status, {"x-amzn-query-error": query_error})
    fault = "Sender" if error.status < 500 else "Receiver"
    assert answer["Error"]["Code"] == error.code
    assert answer["Error"]["Type"] == fault
    assert answer["Error"]["QueryErrorCode"] == error.json_type
    assert answer["Error"]["Message"] == 'no "\u00e4"\x00'


def test_error_has_these_bytes() -> None:
    assert json.encode_error(SQS, errors.QueueDoesNotExist()) == (
        b'{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}',
        "AWS.SimpleQueueService.NonExistentQueue;Sender",
    )


def test_error_that_repeats_a_lone_surrogate_is_written() -> None:
    assert b'"a?b"' in json.encode_error(SQS, errors.InvalidAction("a\ud800b"))[0]
