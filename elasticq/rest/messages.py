"""The REST API's handlers for messages: send, receive, acknowledge and show."""

import asyncio
import re
from base64 import b64encode
from binascii import a2b_base64
from typing import Final

import msgspec

from elasticq.engine.metadata import KEPT
from elasticq.engine.ordering.priority import PRIORITY, given_priority
from elasticq.engine.ordering.schedule import DELIVER_AT
from elasticq.model import commands as c
from elasticq.model import results as r
from elasticq.model.commands import MessageAttributes, MessageAttributeValue
from elasticq.model.errors import InvalidParameterValue, ResourceNotFound, SqsError
from elasticq.model.extensions import (
    DeleteBySequence,
    ElasticqChangePriority,
    HideBySequence,
    Peek,
    PrioritiseBySequence,
)
from elasticq.model.limits import DELAY_S_MAX
from elasticq.rest import shapes as s
from elasticq.rest.api import Request

_RESERVED: Final = (PRIORITY, DELIVER_AT)
_HANDLE_SEQUENCE: Final = slice(9, 17)  # its bytes in a receipt handle: engine/stored/identity.py
_decode_metadata: Final = msgspec.json.Decoder(dict[str, str]).decode
_TIMEOUT: Final = "VisibilityTimeout"
_LATEST_S: Final = 1 << 40  # a larger priority is not a time in seconds
_AT_ONCE: Final = 100  # messages of a call that one turn of the loop sends: about 10 ms


# --- send ---------------------------------------------------------------------------


def _time_in(request: Request, priority: int) -> int | None:
    """Return the time of delivery in ms if this is doq's way to give one: a priority that is a future Unix time."""
    is_time = request.is_doq and request.now_ms < priority * 1_000 < _LATEST_S * 1_000
    return priority * 1_000 if is_time else None


def _send(request: Request, message: s.NewMessage) -> c.SendMessage:
    """Return the command that sends the message. Raise InvalidParameterValue for metadata with a reserved name."""
    for name in _RESERVED:
        if name in message.metadata:
            raise InvalidParameterValue(f"metadata must not contain {name}: use priority or deliver_at.")
    attributes: MessageAttributes = {
        name: MessageAttributeValue("String", value) for name, value in message.metadata.items()
    }
    priority, deliver_at = message.priority, message.deliver_at
    if priority is not None:
        attributes[PRIORITY] = MessageAttributeValue("Number", str(priority))
        time_ms = _time_in(request, priority)
        deliver_at = deliver_at if time_ms is None else time_ms
    delay_s = message.delay_s
    if deliver_at is not None:
        attributes[DELIVER_AT] = MessageAttributeValue("Number", str(deliver_at))
        if 0 < deliver_at - request.now_ms <= DELAY_S_MAX * 1_000:
            delay_s = -(-(deliver_at - request.now_ms) // 1_000)
    return c.SendMessage(
        request.queue,
        message.content,
        delay_s,
        attributes or None,
        message_deduplication_id=message.deduplication_id or None,
        message_group_id=message.group or None,
    )


async def _sent(request: Request, message: s.NewMessage) -> s.Sent:
    name = f"{request.queue}/{message.id}" if message.id else ""
    result = await request.do(_send(request, message), r.SendMessageResult, name)
    return s.Sent(
        "ENQUEUED",
        str(result.sequence),
        result.message_id,
        message.group,
        message.priority or 0,
        message.content,
        message.metadata,
    )


async def send(request: Request) -> s.Sent | s.SentMany:
    body: s.NewMessage | s.NewMessages = request.body
    if isinstance(body, s.NewMessage):
        return await _sent(request, body)
    outcomes: list[s.Sent | BaseException] = []
    for begin in range(0, len(body.messages), _AT_ONCE):  # others are served in between
        sends = [_sent(request, message) for message in body.messages[begin : begin + _AT_ONCE]]
        outcomes += await asyncio.gather(*sends, return_exceptions=True)
    result = s.SentMany([], [])
    for at, outcome in enumerate(outcomes):
        if isinstance(outcome, s.Sent):
            result.messages.append(outcome)
        elif isinstance(outcome, SqsError):
            result.failed.append(s.Failed(at, outcome.code, outcome.message))
        else:
            raise outcome
    return result


# --- receive ------------------------------------------------------------------------


def _metadata(attributes: MessageAttributes | None, system: dict[str, str]) -> dict[str, str]:
    """Return a message's metadata: its attributes as text, bytes in base64, and the metadata of its nacks."""
    found = {}
    for name, value in (attributes or {}).items():
        if name not in _RESERVED:
            found[name] = value.string_value or b64encode(value.binary_value or b"").decode()
    return found | _decode_metadata(system[KEPT]) if KEPT in system else found


def _sequence_in(receipt: str) -> int:
    """Return the sequence of a receipt handle's message. Raise ValueError if the handle is not base64."""
    return int.from_bytes(a2b_base64(receipt)[_HANDLE_SEQUENCE], "big")


def _received(message: r.ReceivedMessage) -> s.Message:
    system = message.attributes or {}
    return s.Message(
        "DEQUEUED",
        str(_sequence_in(message.receipt_handle)),
        message.message_id,
        system.get("MessageGroupId", ""),
        int(system[PRIORITY]) if PRIORITY in system else given_priority(message.message_attributes) or 0,
        message.body,
        _metadata(message.message_attributes, system),
        "inflight",
        int(system["ApproximateReceiveCount"]),
        int(system["SentTimestamp"]),
        message.receipt_handle,
    )


async def take(request: Request, limit: int, wait_s: int | None) -> list[s.Message]:
    """Receive up to ``limit`` messages, and delete them at once if the caller asks for that (``ack``)."""
    query = request.query
    command = c.ReceiveMessage(
        request.queue,
        ["All", KEPT, PRIORITY],
        message_attribute_names=["All"],
        max_number_of_messages=min(limit, 10),
        visibility_timeout=query.get("visibility_s"),
        wait_time_seconds=wait_s,
        receive_request_attempt_id=query.get("lease") or None,
        elasticq_page_size=limit if limit > 10 else None,
        elasticq_partition=query.get("partition"),
    )
    result = await request.do(command, r.ReceiveMessageResult)
    if query.get("ack") and result.messages:
        entries = [c.DeleteMessageBatchEntry(str(at), each.receipt_handle) for at, each in enumerate(result.messages)]
        batch = c.DeleteMessageBatch(request.queue, entries, len(entries) if len(entries) > 10 else None)
        deleted = await request.do(batch, r.BatchResult)
        kept = set(deleted.successful)
        result.messages = [each for at, each in enumerate(result.messages) if str(at) in kept]
    return [_received(message) for message in result.messages]


async def hidden_s(request: Request) -> int:
    """Return how long a stream's messages stay in flight, in seconds: its ``visibility_s``, else that of the queue.

    Raise InvalidParameterValue if the queue's is 0, because each message would come again at once, without end.
    """
    given: int | None = request.query.get("visibility_s")
    if given is not None:
        return given
    found = await request.do(c.GetQueueAttributes(request.queue, [_TIMEOUT]), r.QueueAttributesResult)
    seconds = int(found.attributes[_TIMEOUT])
    if not seconds:
        raise InvalidParameterValue("The queue's VisibilityTimeout is 0: a stream needs visibility_s.")
    return seconds


async def receive(request: Request) -> s.Message | s.Messages:
    query = request.query
    found = await take(request, query.get("max", 1), query.get("wait_s"))
    if not request.is_doq or "max" in query:
        return s.Messages(found)
    if not found:
        raise InvalidParameterValue(f"Queue is empty: {request.queue.rpartition('/')[2]}")  # doq's text
    return found[0]


def _shown(message: r.PeekedMessage) -> s.Message:
    system = message.attributes
    priority = given_priority(message.message_attributes) if message.priority is None else message.priority
    return s.Message(
        "GOT",
        str(message.sequence),
        message.message_id,
        system.get("MessageGroupId", ""),
        priority or 0,
        message.body,
        _metadata(message.message_attributes, system),
        message.state,  # type: ignore[arg-type]
        int(system["ApproximateReceiveCount"]),
        int(system["SentTimestamp"]),
    )


async def get(request: Request) -> s.Message:
    page = await request.do(Peek(request.queue, request.sequence, 1), r.PeekResult)
    for message in page.messages:
        if message.sequence == request.sequence:
            return _shown(message)
    raise ResourceNotFound("The message does not exist, or was deleted.")


async def export(request: Request) -> s.Messages:
    query = request.query
    first = query.get("from", "0")
    if re.fullmatch(r"[0-9]{1,19}", first) is None or int(first) >= 1 << 63:
        raise InvalidParameterValue("from is the id of a message, or the value of next in the last page.")
    command = Peek(request.queue, int(first), query.get("limit", 100))
    page = await request.do(command, r.PeekResult)
    next_id = "" if page.next_sequence is None else str(page.next_sequence)
    return s.Messages([_shown(message) for message in page.messages], next_id)


# --- acknowledge --------------------------------------------------------------------


async def delete(request: Request) -> None:
    await request.do(DeleteBySequence(request.queue, request.sequence), r.EmptyResult)


def _check_receipt(request: Request, receipt: str) -> None:
    """Raise InvalidParameterValue if the receipt belongs to another message than the path names."""
    try:
        sequence = _sequence_in(receipt)
    except ValueError:
        sequence = -1
    if sequence != request.sequence:
        raise InvalidParameterValue("The receipt belongs to another message.")


async def ack(request: Request) -> s.Done:
    body: s.Ack = request.body
    command: c.Command = DeleteBySequence(request.queue, request.sequence, must_be_in_flight=True)
    if body.receipt:
        _check_receipt(request, body.receipt)
        command = c.DeleteMessage(request.queue, body.receipt)
    await request.do(command, r.EmptyResult)
    return s.Done("ACKNOWLEDGED", request.path["id"])


async def _set_visibility(
    request: Request,
    receipt: str,
    seconds: int | None,
    metadata: dict[str, str] | None = None,
    deliver_at_ms: int | None = None,
) -> None:
    handle = receipt if seconds is not None else ""
    if handle:
        _check_receipt(request, handle)
    command: c.Command = HideBySequence(
        request.queue, request.sequence, seconds, handle or None, metadata or None, deliver_at_ms
    )
    if handle and not metadata and deliver_at_ms is None:
        command = c.ChangeMessageVisibility(request.queue, handle, seconds)
    await request.do(command, r.EmptyResult)


async def nack(request: Request) -> s.Nacked:
    body: s.Nack = request.body
    if body.priority is not None:
        await request.do(PrioritiseBySequence(request.queue, request.sequence, body.priority), r.EmptyResult)
    deliver_at_ms = None if body.priority is None else _time_in(request, body.priority)
    await _set_visibility(request, body.receipt, body.delay_s, body.metadata, deliver_at_ms)
    return s.Nacked("UNACKNOWLEDGED", request.path["id"], body.priority or 0, body.metadata)


async def touch(request: Request) -> s.Done:
    body: s.Touch = request.body
    await _set_visibility(request, body.receipt, body.visibility_s)
    return s.Done("TOUCHED", request.path["id"])


async def prioritise(request: Request) -> s.Prioritised:
    body: s.NewPriority = request.body
    await request.do(PrioritiseBySequence(request.queue, request.sequence, body.priority), r.EmptyResult)
    return s.Prioritised("UPDATED", request.path["id"], body.priority)


async def prioritise_many(request: Request) -> s.PrioritisedMany:
    body: s.NewPriorities = request.body
    changed: list[str] = []
    left, token = body.ids, None
    while True:
        command = ElasticqChangePriority(request.queue, left, body.priority, token)
        result = await request.do(command, r.PrioritiesChangedResult)
        changed += result.changed
        left, token = result.not_found, result.next_token
        if token is None:
            return s.PrioritisedMany("UPDATED", changed, left)


async def make_ids(request: Request) -> s.Ids:
    body: s.NewIds = request.body
    return s.Ids([str(int.from_bytes(request.entropy(8), "big") >> 1) for _ in range(body.number)])
