"""AWS Query answers, read back by an XML parser as a client would."""

from base64 import b64decode
from typing import Any
from xml.parsers.expat import ParserCreate

import pytest
import xmltodict
from hypothesis import given
from hypothesis import strategies as st

from elasticq.model import errors
from elasticq.model.commands import Command, DeleteMessage, GetQueueAttributes, ReceiveMessage, SendMessage
from elasticq.model.errors import SqsError
from elasticq.model.results import (
    EmptyResult,
    QueueAttributesResult,
    ReceivedMessage,
    ReceiveMessageResult,
    Result,
    SendMessageResult,
)
from elasticq.wire import query
from elasticq.wire.operations import OPERATIONS, SQS
from tests.wire.answers import ANSWERS, ID, USER

NAMESPACE = "http://queue.amazonaws.com/doc/2012-11-05/"
LISTS = {
    "Message", "Attribute", "MessageAttribute", "QueueUrl", "BatchResultErrorEntry", "SendMessageBatchResultEntry",
    "DeleteMessageBatchResultEntry", "ChangeMessageVisibilityBatchResultEntry", "Tag",
    "ListMessageMoveTasksResultEntry",
}  # fmt: skip


def parsed(body: bytes) -> dict[str, Any]:
    tree: dict[str, Any] = xmltodict.parse(body, force_list=_is_list, strip_whitespace=False)
    return tree


def _is_list(path: list[tuple[str, object]], name: str, value: object) -> bool:
    """An error's Message is a text, a result's Message an element of a list."""
    return name in LISTS and (name != "Message" or path[-1][0].endswith("Result"))


def result_of(action: str, body: bytes) -> dict[str, Any]:
    """What stands in the answer, in the names and types of JSON 1.0."""
    answer = parsed(body)[f"{action}Response"]
    assert answer.pop("@xmlns") == NAMESPACE
    assert answer.pop("ResponseMetadata") == {"RequestId": "request-1"}
    found = answer.pop(f"{action}Result", None) or {}
    assert answer == {}
    return _as_json(action, found)


def _as_json(action: str, found: dict[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    if action.endswith("Batch"):
        members["Successful"] = found.pop(f"{action}ResultEntry", [])
        failed = [
            {**entry, "SenderFault": entry["SenderFault"] == "true"} for entry in found.pop("BatchResultErrorEntry", [])
        ]
        members |= {"Failed": failed} if failed else {}
    if "Message" in found:
        members["Messages"] = [_message(message) for message in found.pop("Message")]
    if "Attribute" in found:
        members["Attributes"] = _pairs(found.pop("Attribute"))
    if "Tag" in found:
        members["Tags"] = {item["Key"]: item["Value"] for item in found.pop("Tag")}
    if action == "ListDeadLetterSourceQueues":
        members["queueUrls"] = found.pop("QueueUrl", [])
    if action.endswith("Task"):
        found = _task(found)
    if action == "ListMessageMoveTasks":
        members["Results"] = [_task(task) for task in found.pop("ListMessageMoveTasksResultEntry", [])]
    if "QueueUrl" in found:
        urls = found.pop("QueueUrl")
        members |= {"QueueUrls": urls} if action == "ListQueues" else {"QueueUrl": urls[0]}
    return members | found


def _task(task: dict[str, Any]) -> dict[str, Any]:
    return {name: int(value) if value.isdigit() else value for name, value in task.items()}


def _message(message: dict[str, Any]) -> dict[str, Any]:
    if "Attribute" in message:
        message["Attributes"] = _pairs(message.pop("Attribute"))
    if "MessageAttribute" in message:
        attributes = {item["Name"]: item["Value"] for item in message.pop("MessageAttribute")}
        for value in attributes.values():
            if "BinaryValue" in value:
                value["BinaryValue"] = b64decode(value["BinaryValue"])
        message["MessageAttributes"] = attributes
    return message


def _pairs(items: list[dict[str, str]]) -> dict[str, str]:
    return {item["Name"]: item["Value"] for item in items}


@pytest.mark.parametrize(("command", "result", "seen"), ANSWERS, ids=lambda value: type(value).__name__)
def test_answer_is_read_by_an_xml_parser(command: Command, result: Result, seen: dict[str, object]) -> None:
    action = type(command).__name__
    assert result_of(action, query.encode(OPERATIONS[action], command, result, "request-1")) == seen


@pytest.mark.parametrize(
    ("command", "result", "content"),
    [
        (DeleteMessage(), EmptyResult(), ""),
        (
            SendMessage(message_body="This is a test message"),
            SendMessageResult(ID, "7"),
            f"<SendMessageResult><MessageId>{ID}</MessageId>"
            "<MD5OfMessageBody>fafb00f5732ab283681e124bf8747ed1</MD5OfMessageBody>"
            "<SequenceNumber>7</SequenceNumber></SendMessageResult>",
        ),
        (ReceiveMessage(), ReceiveMessageResult(), "<ReceiveMessageResult/>"),
        (
            GetQueueAttributes(),
            QueueAttributesResult({"A": '<&>"\r\x00'}),
            "<GetQueueAttributesResult><Attribute><Name>A</Name><Value>&lt;&amp;&gt;&quot;&#13;\ufffd</Value>"
            "</Attribute></GetQueueAttributesResult>",
        ),
    ],
)
def test_answer_has_these_bytes(command: Command, result: Result, content: str) -> None:
    action = type(command).__name__
    metadata = "<ResponseMetadata><RequestId>r</RequestId></ResponseMetadata>"
    expected = f'<{action}Response xmlns="{NAMESPACE}">{content}{metadata}</{action}Response>'
    assert query.encode(OPERATIONS[action], command, result, "r") == expected.encode()


# The characters that SQS allows in a body.
bodies = st.text(
    st.sampled_from("\r\n\t <>&\"';]")
    | st.characters(min_codepoint=0x20, exclude_categories=["Cs"], exclude_characters="\ufffe\uffff")
)


@given(bodies)
def test_body_survives_the_way_through_xml(body: str) -> None:
    result = ReceiveMessageResult([ReceivedMessage(ID, "h", body, None, USER)])
    answer = result_of(
        "ReceiveMessage", query.encode(OPERATIONS["ReceiveMessage"], ReceiveMessage(), result, "request-1")
    )
    assert (answer["Messages"][0]["Body"] or "") == body


@given(bodies)
def test_value_of_an_attribute_survives_the_way_through_xml(value: str) -> None:
    result = ReceiveMessageResult([ReceivedMessage(ID, "h", "x", {"SenderId": value})])
    body = query.encode(OPERATIONS["ReceiveMessage"], ReceiveMessage(), result, "request-1")
    assert (result_of("ReceiveMessage", body)["Messages"][0]["Attributes"]["SenderId"] or "") == value


@pytest.mark.parametrize(
    ("error", "code", "message", "fault"),
    [
        (
            errors.QueueDoesNotExist(),
            "AWS.SimpleQueueService.NonExistentQueue",
            "The specified queue does not exist for this wsdl version.",
            "Sender",
        ),
        (errors.QueueDoesNotExist("Other words."), "AWS.SimpleQueueService.NonExistentQueue", "Other words.", "Sender"),
        (errors.MissingParameter("<&>"), "MissingParameter", "<&>", "Sender"),
        (errors.ServiceUnavailable("No master."), "ServiceUnavailable", "No master.", "Receiver"),
    ],
)
def test_error_has_code_message_and_fault(error: SqsError, code: str, message: str, fault: str) -> None:
    answer = parsed(query.encode_error(SQS, error, "request-1"))["ErrorResponse"]
    assert answer == {
        "@xmlns": NAMESPACE,
        "Error": {"Type": fault, "Code": code, "Message": message, "Detail": None},
        "RequestId": "request-1",
    }


@given(st.text(st.characters()))
def test_error_message_of_any_characters_is_well_formed(message: str) -> None:
    ParserCreate().Parse(query.encode_error(SQS, errors.InvalidAction(message), "r"), True)


@pytest.mark.parametrize("character", [chr(code) for code in (*range(0x20), 0x7F, 0x85, 0x2028, 0xFFFE, 0xFFFF)])
@pytest.mark.parametrize("around", ["", "ä"])
def test_a_body_of_any_character_is_well_formed(character: str, around: str) -> None:
    """limits = relaxed let such bodies in; what XML cannot carry becomes U+FFFD."""
    received = ReceivedMessage("id", "handle", f"a{character}b{around}")
    body = query.encode(OPERATIONS["ReceiveMessage"], ReceiveMessage(), ReceiveMessageResult([received]), "request-1")
    (message,) = result_of("ReceiveMessage", body)["Messages"]
    can_be_carried = character in "\t\n\r" or ("\x20" <= character < "\ufffe")
    assert message["Body"] == f"a{character if can_be_carried else chr(0xFFFD)}b{around}"
