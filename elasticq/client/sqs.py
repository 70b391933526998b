"""The light client of SQS: boto3's methods, keywords and answers, over AWS JSON 1.0.

It differs from boto3: it checks no members before it sends them, it has no proxies, paginators and waiters, and its
errors are ``SqsError``.

The methods for messages are written here, because they check the answers. All others are made from the table of
actions (``model/actions.py``).
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import md5
from typing import TYPE_CHECKING, Any, Final

from elasticq.client.calls import Members, add_methods
from elasticq.client.connection import Answer
from elasticq.client.errors import DigestMismatch, SqsError, Unreachable
from elasticq.client.groups import GroupMethods
from elasticq.model.actions import ACTIONS, TARGET_PREFIX

_JSON_TYPE: Final = "application/x-amz-json-1.0"
_PEEK_PATH: Final = "/_elasticq/peek"


def _binary(value: object) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} cannot be sent")


_encode: Final = json.JSONEncoder(separators=(",", ":"), default=_binary).encode


class Sqs(GroupMethods):
    """A client of SQS. Threads may share it, as each thread has its own connection."""

    service = "sqs"
    content_type = _JSON_TYPE

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Members]:
            """Return a method that is made from the table of actions."""

    # --- messages: all other actions get their methods below the class ----------------

    def send_message(self, **members: Any) -> Members:
        return self._call("SendMessage", members, _check_sent)

    def send_message_batch(self, **members: Any) -> Members:
        return self._call("SendMessageBatch", members, _check_sent_batch)

    def receive_message(self, **members: Any) -> Members:
        """Receive messages, with boto3's keywords, or with ElasticqPageSize (1 to 1,000) for MaxNumberOfMessages.

        ElasticqPartition: receive only messages of this partition of a partitioned FIFO queue.
        """
        return self._call("ReceiveMessage", members, _check_received, members.get("WaitTimeSeconds") or 0)

    def peek(self, **members: Any) -> Members:
        """Read messages without receiving them. Only elasticq has this action.

        Keywords: QueueUrl, FromSequence, Limit (1 to 1,000), MessageGroupId, SentFromMs, SentUntilMs, States. The
        answer has Messages, NextSequence (None after the newest message) and LastSequence (the newest one used).
        """
        return self._call("Peek", members, _decode_attributes)

    def change_priority(self, **members: Any) -> Members:
        """Change the priority of messages in a priority queue. Only elasticq has this action.

        Keywords: QueueUrl, MessageIds (1 to 1,000), Priority. The answer has Changed and NotFound, lists of MessageIds.
        The client repeats the call until the server has searched the whole queue.
        """
        return self._by_id("ElasticqChangePriority", members)

    def reschedule(self, **members: Any) -> Members:
        """Change the delivery time of scheduled messages. Only elasticq has this action.

        Keywords: QueueUrl, MessageIds (1 to 1,000), DeliverAt (ms since the epoch). The answer has
        Changed and NotFound, lists of MessageIds.
        """
        return self._by_id("ElasticqReschedule", members)

    def cancel_scheduled(self, **members: Any) -> Members:
        """Delete scheduled messages that were not received yet. Only elasticq has this action.

        Keywords: QueueUrl, MessageIds (1 to 1,000). The answer has Changed and NotFound, lists of MessageIds.
        """
        return self._by_id("ElasticqCancelScheduled", members)

    def _by_id(self, action: str, members: Members) -> Members:
        """Call an action on messages, given by their ids, until the server has searched the whole queue."""
        found: list[str] = []
        answer = self._call(action, members)
        while answer.get("NextToken"):
            found += answer["Changed"]
            left = {"MessageIds": answer["NotFound"], "NextToken": answer["NextToken"]}
            answer = self._call(action, {**members, **left})
        return {**answer, "Changed": [*found, *answer["Changed"]]}

    # --- how a call is written and read -------------------------------------------------

    def _written(self, action: str, members: Members) -> bytes:
        return _encode(members).encode()

    def _head(self, action: str) -> tuple[str, str]:
        if action == "Peek":
            return _PEEK_PATH, f"POST {_PEEK_PATH} HTTP/1.1\r\n"
        target = f"X-Amz-Target: {self._target(action)}\r\nx-amzn-query-mode: true\r\n"
        return self._path, f"POST {self._path} HTTP/1.1\r\n{target}"

    def _target(self, action: str) -> str:
        return "" if action == "Peek" else f"{TARGET_PREFIX}.{action}"

    def _read(self, action: str, answer: Answer) -> Members:
        body = answer.body
        if answer.status != 200:
            raise _error(action, answer)
        if not body:
            return {}
        try:
            result = json.loads(body)
        except ValueError:
            result = None
        if not isinstance(result, dict):
            raise Unreachable(f"{action}: the answer is no JSON object: something else answers there")
        return result


add_methods(Sqs, [row.name for row in ACTIONS])


# --- answers ------------------------------------------------------------------------------


def _error(action: str, answer: Answer) -> SqsError:
    try:
        written = json.loads(answer.body)
    except ValueError:
        written = None
    if not isinstance(written, dict):
        written = {}
    kind = str(written.get("__type", "")).rpartition("#")[2] or str(answer.status)
    message = str(written.get("message") or written.get("Message") or "")
    code, _, fault = answer.header(b"x-amzn-query-error").decode("latin-1").partition(";")
    sender_fault = fault == "Sender" if fault else 400 <= answer.status < 500
    return SqsError(action, code or kind, kind, message, answer.status, sender_fault)


def _digest(body: str) -> str:
    return md5(body.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _compare(said: object, body: str) -> None:
    if said is not None and said != _digest(body):
        raise DigestMismatch(f"a body's MD5 is {_digest(body)}, and the server says {said}")


def _check_sent(members: Members, result: Members) -> None:
    _compare(result.get("MD5OfMessageBody"), members.get("MessageBody", ""))


def _check_sent_batch(members: Members, result: Members) -> None:
    bodies = {entry["Id"]: entry.get("MessageBody", "") for entry in members.get("Entries", ())}
    for sent in result.get("Successful", ()):
        _compare(sent.get("MD5OfMessageBody"), bodies.get(sent["Id"], ""))


def _check_received(members: Members, result: Members) -> None:
    messages = result.get("Messages")
    if not messages:
        return
    for message in messages:
        said = message.get("MD5OfBody")
        if said is not None and said != md5(message["Body"].encode(), usedforsecurity=False).hexdigest():
            _compare(said, message["Body"])
        if "MessageAttributes" in message:
            _decode_binary(message["MessageAttributes"])


def _decode_attributes(members: Members, result: Members) -> None:
    for message in result.get("Messages", ()):
        _decode_binary(message.get("MessageAttributes", {}))


def _decode_binary(attributes: dict[str, Members]) -> None:
    """Replace base64 by bytes in place, as boto3 returns bytes."""
    for attribute in attributes.values():
        if "BinaryValue" in attribute:
            attribute["BinaryValue"] = b64decode(attribute["BinaryValue"])
