"""The AWS JSON 1.0 protocol: it reads requests and writes answers.

The body of a request is a JSON object with the members of the command. An answer
is an object, too, or empty if the action has no result. A null counts as absent,
as on AWS, and unknown members are skipped. Answers leave out keys of empty lists
and maps (seen on AWS). Generic code writes a result by its fields. For the hot
path, hand-written functions do it.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from elasticq.model.commands import Command, SendMessage, SendMessageBatch, SendMessageBatchEntry
from elasticq.model.errors import SerializationError, SqsError
from elasticq.model.limits import SMALL_REQUEST_BYTES_MAX, STRINGS_MAX
from elasticq.model.results import (
    BatchError,
    BatchResult,
    EmptyResult,
    PeekedMessage,
    PeekResult,
    ReceivedMessage,
    ReceiveMessageResult,
    Result,
    SendMessageBatchResult,
    SendMessageResult,
    SentEntry,
)
from elasticq.wire import careful
from elasticq.wire.bounds import beyond_bounds
from elasticq.wire.digests import attributes_md5, body_md5, sent_md5
from elasticq.wire.operations import Operation, Service

_encode_json: Final = msgspec.json.Encoder().encode


def decode(operation: Operation, body: bytes) -> Command:
    """Return the command in ``body``. Only JSON, types and the bounds of members are checked.

    Raise SerializationError for a body that is not JSON or UTF-8, is nested deeper than JSON_DEPTH_MAX, has too many
    parts, or has a member of a wrong type. Raise the errors of ``bounds.py`` for a member that exceeds its bound. Raise
    RequestTooLarge for more bytes than the action can need.
    """
    if not body:
        return operation.command()
    is_long = len(body) > SMALL_REQUEST_BYTES_MAX  # no operation has a smaller bound
    if is_long and len(body) > operation.body_bytes_max:
        raise operation.too_large()
    try:
        if not body.isascii():
            body.decode()  # the decoder does not check the members that it skips
        if is_long:
            return _decode_large(operation, body)
        return operation.decoder.decode(body)
    except msgspec.ValidationError:
        return _decode_without_nulls(operation, body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(error) from error


# --- requests off the hot path ---


def _decode_large(operation: Operation, body: bytes) -> Command:
    """Return the command in a long body. Refuse too many parts first, because decoding them would take too long.

    Only messages and batches are that long.
    """
    check_strings(body)
    if operation.entry_name is not None:
        return _bounded(operation, careful.decode(operation.command, body))
    return operation.decoder.decode(body)


def check_strings(body: bytes) -> None:
    """Raise SerializationError for too many strings, and so for too many members of maps.

    A quotation mark after a backslash is not counted: it can end a string, but not begin one. The first count is of
    all quotation marks, because that is fast and usually enough.
    """
    quotes = body.count(b'"')
    if quotes > 2 * STRINGS_MAX and quotes - body.count(b'\\"') > 2 * STRINGS_MAX:
        raise SerializationError(f"The request has more than {STRINGS_MAX} strings.")


def _decode_without_nulls(operation: Operation, body: bytes) -> Command:
    """Decode a body again that may have nulls instead of lists or maps.

    No variable here keeps an error. Its traceback would keep this frame, and so the body, until garbage collection.
    """
    try:
        return _bounded(operation, careful.decode(operation.command, body))
    except msgspec.ValidationError as error:
        raise _serialization_error(error) from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _unreadable(error) from error


def _bounded(operation: Operation, command: Command) -> Command:
    """Return ``command`` after a check of its bounds. The careful decoder has already checked its types."""
    members = msgspec.to_builtins(command, builtin_types=(bytes,))
    try:
        return msgspec.convert(members, operation.command)
    except msgspec.ValidationError as error:
        raise beyond_bounds(error, members) or _serialization_error(error) from error


def _unreadable(error: Exception) -> SerializationError:
    if isinstance(error, RecursionError):
        return SerializationError("The request body is nested too deeply.")
    return SerializationError("The request body is not valid JSON.")


_EXPECTED: Final = re.compile(r"Expected `(\w++)[^`]*+`, got `(\w++)`(?: - at `(.*)`)?")
_AWS_EXPECTED: Final = {"str": "a String", "int": "an Integer"}
_AWS_GOT: Final = {"str": "STRING_VALUE", "int": "NUMBER_VALUE", "bool": "TRUE_VALUE"}


def _serialization_error(error: msgspec.ValidationError) -> SerializationError:
    """Return an error with the place and, if they are known, AWS's words.

    These are, for example, "STRING_VALUE can not be converted to an Integer".
    """
    match = _EXPECTED.match(str(error))
    if match is None:
        return SerializationError(str(error))
    expected, got, place = match.groups()
    where = f" ({place})" if place else ""
    if expected in _AWS_EXPECTED and got in _AWS_GOT:
        return SerializationError(f"{_AWS_GOT[got]} can not be converted to {_AWS_EXPECTED[expected]}{where}")
    return SerializationError(f"Unexpected value type in payload: expected {expected}, got {got}{where}")


# --- answers ---


def encode(operation: Operation, command: Command, result: Result) -> bytes:
    """Return the body of the answer; empty if the action has no result."""
    try:
        write = _WRITERS[type(result)]
    except KeyError:
        return _encode_json(_members(operation, result))
    return write(command, result)


def encode_error(service: Service, error: SqsError) -> tuple[bytes, str]:
    """Return the body, and the value of the header x-amzn-query-error: code and fault in the Query protocol."""
    message = error.message.encode("utf-8", "replace").decode()  # a lone surrogate cannot be written
    body = _encode_json({"__type": service.error_prefix + error.json_type, "message": message})
    return body, f"{error.code};{'Sender' if error.sender_fault else 'Receiver'}"


def _write_empty(command: Command, result: EmptyResult) -> bytes:
    return b""


def _write_sent(command: SendMessage, result: SendMessageResult) -> bytes:
    # Written by hand: every part is hexadecimal, decimal or a UUID, so it needs no escapes.
    digests = _sent_digests(command)
    sequence = result.sequence_number
    if sequence is not None:
        digests = f'{digests},"SequenceNumber":"{sequence}"'
    return f'{{"MessageId":"{result.message_id}",{digests}}}'.encode()


def _sent_digests(sent: SendMessage | SendMessageBatchEntry) -> str:
    digests = f'"MD5OfMessageBody":"{sent_md5(sent.message_body or "")}"'
    if sent.message_attributes:
        digests += f',"MD5OfMessageAttributes":"{attributes_md5(sent.message_attributes)}"'
    if sent.message_system_attributes:
        digests += f',"MD5OfMessageSystemAttributes":"{attributes_md5(sent.message_system_attributes)}"'
    return digests


def _write_sent_batch(command: SendMessageBatch, result: SendMessageBatchResult) -> bytes:
    entries = command.entries
    successful = ",".join([_sent_entry(sent, entries[sent.position]) for sent in result.successful])
    if not result.failed:
        return f'{{"Successful":[{successful}]}}'.encode()
    failed = _encode_json([_failed_entry(entry) for entry in result.failed]).decode()
    return f'{{"Successful":[{successful}],"Failed":{failed}}}'.encode()


def _sent_entry(sent: SentEntry, entry: SendMessageBatchEntry) -> str:
    # Written by hand like _write_sent: an accepted Id has only letters, digits, hyphens and underscores.
    digests = _sent_digests(entry)
    if sent.sequence_number is not None:
        digests = f'{digests},"SequenceNumber":"{sent.sequence_number}"'
    return f'{{"Id":"{sent.id}","MessageId":"{sent.message_id}",{digests}}}'


def _write_batch(command: Command, result: BatchResult) -> bytes:
    return _batch([{"Id": entry_id} for entry_id in result.successful], result.failed)


def _batch(successful: list[dict[str, str]], failed: list[BatchError]) -> bytes:
    """Return the JSON of a batch. An empty ``Failed`` is left out, but not ``Successful``: SDKs iterate over it."""
    if not failed:
        return _encode_json({"Successful": successful})
    return _encode_json({"Successful": successful, "Failed": [_failed_entry(entry) for entry in failed]})


def _failed_entry(entry: BatchError) -> dict[str, Any]:
    return {"Id": entry.id, "SenderFault": entry.sender_fault, "Code": entry.code, "Message": entry.message}


def _write_messages(command: Command, result: ReceiveMessageResult) -> bytes:
    if not result.messages:
        return b"{}"
    return f'{{"Messages":[{",".join([_message(message) for message in result.messages])}]}}'.encode()


def _message(message: ReceivedMessage) -> str:
    # Written by hand like _write_sent: only texts of clients need escapes, and a dict would cost twice as much.
    body, more = message.body, ""
    if message.attributes:
        more = f',"Attributes":{_encode_json(message.attributes).decode()}'
    if message.message_attributes:
        more += (
            f',"MD5OfMessageAttributes":"{attributes_md5(message.message_attributes)}"'
            f',"MessageAttributes":{_encode_json(message.message_attributes).decode()}'
        )
    return (
        f'{{"MessageId":"{message.message_id}","ReceiptHandle":"{message.receipt_handle}",'
        f'"MD5OfBody":"{body_md5(body)}","Body":{_encode_json(body).decode()}{more}}}'
    )


def _write_peeked(command: Command, result: PeekResult) -> bytes:
    messages = [_peeked(message) for message in result.messages]
    page = {"Messages": messages, "NextSequence": result.next_sequence, "LastSequence": result.last_sequence}
    return _encode_json(page)


def _peeked(message: PeekedMessage) -> dict[str, Any]:
    attributes = message.attributes
    written: dict[str, Any] = {
        "MessageId": message.message_id,
        "Sequence": message.sequence,
        "State": message.state,
        "SentTimestamp": int(attributes["SentTimestamp"]),
        "ReceiveCount": int(attributes["ApproximateReceiveCount"]),
        "FirstReceiveTimestamp": int(attributes["ApproximateFirstReceiveTimestamp"]),
        "SenderId": attributes["SenderId"],
        "MD5OfBody": body_md5(message.body),
        "Body": message.body,
        "Attributes": attributes,
    }
    for name, attribute in (("GroupId", "MessageGroupId"), ("DeduplicationId", "MessageDeduplicationId")):
        if attribute in attributes:
            written[name] = attributes[attribute]
    if message.priority is not None:
        written["Priority"] = message.priority
    if message.deliver_at_ms is not None:
        written["DeliverAt"] = message.deliver_at_ms
    if message.partition is not None:
        written["Partition"] = message.partition
    if message.message_attributes:
        written["MessageAttributes"] = message.message_attributes
    return written


def _members(operation: Operation, result: Result) -> dict[str, Any]:
    """Return the members of the answer, for a result without a hand-written function."""
    members = {}
    for member in operation.result:
        value = getattr(result, member.field)
        if value or member.is_required:
            members[member.name] = value
    return members


_WRITERS: Final[dict[type[Result], Callable[[Any, Any], bytes]]] = {
    EmptyResult: _write_empty,
    SendMessageResult: _write_sent,
    SendMessageBatchResult: _write_sent_batch,
    BatchResult: _write_batch,
    ReceiveMessageResult: _write_messages,
    PeekResult: _write_peeked,
}
