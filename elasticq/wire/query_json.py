"""The answers of the Query protocol as JSON, for clients whose Accept header asks for JSON.

AWS still has this format (seen for ListQueues, ReceiveMessage, GetQueueAttributes and errors). It has the members of
the XML answer, maps as lists of pairs, and null for absent members. Such clients are rare, so this module converts the
answer of JSON 1.0, which is not fast.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from elasticq.model.commands import Command
from elasticq.model.errors import SqsError
from elasticq.model.results import Result
from elasticq.wire import json
from elasticq.wire.operations import Kind, Operation
from elasticq.wire.xml import message_text

_SENT: Final = ("MD5OfMessageAttributes", "MD5OfMessageBody", "MD5OfMessageSystemAttributes", "MessageId")
_RECEIVED: Final = ("Attributes", "Body", "MD5OfBody", "MD5OfMessageAttributes", "MessageAttributes", "MessageId")


def encode(operation: Operation, command: Command, result: Result, request_id: str) -> bytes:
    """Return the body of the answer. An action without a result has no ``...Result`` member."""
    answer: dict[str, Any] = {"ResponseMetadata": {"RequestId": request_id}}
    body = json.encode(operation, command, result)
    if body:
        members = msgspec.json.decode(body)
        reshape = _RESHAPED.get(operation.name)
        answer[f"{operation.name}Result"] = _with_pairs(operation, members) if reshape is None else reshape(members)
    return msgspec.json.encode({f"{operation.name}Response": answer})


def encode_error(error: SqsError, request_id: str) -> bytes:
    fault = "Sender" if error.sender_fault else "Receiver"
    message = message_text(error).encode("utf-8", "replace").decode()  # a lone surrogate cannot be written
    return msgspec.json.encode(
        {"Error": {"Code": error.code, "Message": message, "Type": fault}, "RequestId": request_id}
    )


def _pairs(members: dict[str, Any] | None, key_name: str = "Name") -> list[dict[str, Any]] | None:
    return None if members is None else [{key_name: name, "Value": value} for name, value in members.items()]


def _with_pairs(operation: Operation, members: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a result without a hand-written function. Maps are lists of pairs, also if empty."""
    maps = [member for member in operation.result if member.kind is Kind.PAIRS]
    return members | {member.name: _pairs(members.get(member.name, {}), member.key_name) for member in maps}


def _queues(members: dict[str, Any]) -> dict[str, Any]:
    return {"NextToken": members.get("NextToken"), "queueUrls": members.get("QueueUrls", [])}


def _sent(members: dict[str, Any]) -> dict[str, Any]:
    return {name: members.get(name) for name in (*_SENT, "SequenceNumber")}


def _messages(members: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [_message(message) for message in members.get("Messages", ())] or None}


def _message(members: dict[str, Any]) -> dict[str, Any]:
    message = {name: members.get(name) for name in (*_RECEIVED, "ReceiptHandle")}
    for name in ("Attributes", "MessageAttributes"):
        message[name] = _pairs(message[name])
    return message


_RESHAPED: Final[dict[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "ListQueues": _queues,
    "SendMessage": _sent,
    "ReceiveMessage": _messages,
}
