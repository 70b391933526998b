"""Entries of SendMessageBatch, made from rows. Sizes are counted as on AWS, and ids are deterministic."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

Row = dict[str, Any]

BATCH_ENTRIES_MAX = 10  # AWS quota of SendMessageBatch
BATCH_BYTES_MAX = 1_048_576  # AWS quota of all messages of a batch together
OCCURRENCES_MAX = 1_000_000  # different messages whose repetitions a task counts
BODY_COLUMNS = ("body", "value")
NUMBERS: Final = {"priority": "ElasticqPriority", "deliver_at": "ElasticqDeliverAt"}
"""Columns that become message attributes of type Number. Only elasticq obeys these attributes."""
SINK_COLUMNS = frozenset(
    [*BODY_COLUMNS, "messageGroupId", "deduplicationId", "delaySeconds", "attributes", "queue", *NUMBERS]
)
# Columns that the source adds and no send can set. The sink ignores them, so it can write a frame as it was read.
SOURCE_COLUMNS = frozenset(
    ["messageId", "sequenceNumber", "sentTimestamp", "firstReceiveTimestamp", "receiveCount", "senderId",
     "receiptHandle", "batch", "partition"]
)  # fmt: skip


class BadRow(ValueError):
    """The error of a row that cannot become a message."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send. entry: its members of SendMessageBatch, without Id."""

    row: Row
    entry: dict[str, Any]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Identity:
    """The part of message ids that is unique to a task and stays the same when the task runs again."""

    query_id: str
    batch_id: str
    partition: int


class Ids:
    """The deduplication ids of a task.

    An id is a hash of the task, the message and the number of equal messages before it in the task. It does not depend
    on the row's place, because a retried task may get its rows in another order. It depends on the partition, because
    the queue would otherwise drop the second of two equal messages from different partitions.
    """

    __slots__ = ("_prefix", "_seen")

    def __init__(self, identity: Identity) -> None:
        self._prefix = f"{identity.query_id}\0{identity.batch_id}\0{identity.partition}\0".encode()
        self._seen: Counter[bytes] = Counter()

    def of(self, entry: Mapping[str, Any]) -> str:
        group, attributes = entry.get("MessageGroupId", ""), entry.get("MessageAttributes")
        content = f"{group}\0{sorted(attributes.items()) if attributes else ''}\0{entry['MessageBody']}".encode()
        digest = hashlib.sha256(content).digest()
        occurrence = self._seen[digest]
        if occurrence == 0 and len(self._seen) >= OCCURRENCES_MAX:
            # Without its count, a repetition would get the id of the first one, and the queue would drop it.
            raise BadRow(f"a task can distinguish {OCCURRENCES_MAX} messages: use more partitions or deduplicationId")
        self._seen[digest] = occurrence + 1
        return hashlib.sha256(b"%b%b\0%d" % (self._prefix, digest, occurrence)).hexdigest()


def outgoing(row: Row, body_column: str, default_group: str | None) -> Outgoing:
    """Return the message of a row. Raise BadRow if the row cannot become a message.

    default_group: the message group if the row names none.
    """
    body = text_of(row[body_column], body_column)
    if not body:
        raise BadRow("a message needs a body of at least one character")
    entry: dict[str, Any] = {"MessageBody": body}
    size_bytes = len(body) if body.isascii() else len(body.encode())
    group = row.get("messageGroupId")
    if group is None:
        group = default_group
    if group is not None:
        entry["MessageGroupId"] = str(group)
    if (deduplication := row.get("deduplicationId")) is not None:
        entry["MessageDeduplicationId"] = str(deduplication)
    if (delay := row.get("delaySeconds")) is not None:
        entry["DelaySeconds"] = int(delay)
    if attributes := row.get("attributes"):
        entry["MessageAttributes"], more_bytes = message_attributes(dict(attributes))
        size_bytes += more_bytes
    for column, name in NUMBERS.items():
        if (number := row.get(column)) is not None:
            value = {"type": "Number", "string": str(_whole(number))}
            made, more_bytes = message_attributes({name: value})
            entry["MessageAttributes"] = entry.get("MessageAttributes", {}) | made
            size_bytes += more_bytes
    return Outgoing(row, entry, size_bytes)


def _whole(number: int | datetime) -> int:
    """Return a number unchanged, and a time as milliseconds since the epoch. A time without a zone is UTC."""
    if not isinstance(number, datetime):
        return int(number)
    at = number if number.tzinfo is not None else number.replace(tzinfo=UTC)
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def text_of(value: object, what: str) -> str:
    match value:
        case str():
            return value
        case bytes() | bytearray():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise BadRow(f"{what} is not UTF-8: a message's body is text") from None
        case None:
            raise BadRow(f"{what} is null")
        case _:
            return str(value)


def message_attributes(attributes: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the attributes in boto3's shape, and the bytes of their names, types and values. Raise BadRow."""
    made: dict[str, dict[str, Any]] = {}
    size_bytes = 0
    for name, value in attributes.items():
        made[name], value_bytes = message_attribute(name, value)
        size_bytes += len(name.encode()) + value_bytes
    return made, size_bytes


def message_attribute(name: str, value: Any) -> tuple[dict[str, Any], int]:
    if isinstance(value, str):
        value = {"type": "String", "string": value}
    if not isinstance(value, Mapping):
        raise BadRow(f"attribute {name} is null")
    kind = value.get("type") or ("Binary" if value.get("binary") is not None else "String")
    field, content = ("BinaryValue", "binary") if kind.startswith("Binary") else ("StringValue", "string")
    inner = value.get(content)
    if inner is None:
        raise BadRow(f"attribute {name} of type {kind} has no {content}")
    size_bytes = len(inner) if field == "BinaryValue" else len(inner.encode())
    return {"DataType": kind, field: inner}, len(kind.encode()) + size_bytes


class Batch:
    """The messages collected for one call, at most 1 MiB.

    A larger message gets a call of its own. The server decides whether it accepts the message.
    """

    __slots__ = ("_entries_max", "_messages", "_size_bytes")

    def __init__(self, entries_max: int = BATCH_ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._messages: list[Outgoing] = []
        self._size_bytes = 0

    def add(self, message: Outgoing) -> list[Outgoing]:
        """Add a message. If it no longer fits, return the messages before it, to be sent; else return []."""
        full: list[Outgoing] = []
        if len(self._messages) == self._entries_max or self._size_bytes + message.size_bytes > BATCH_BYTES_MAX:
            full = self.take()
        self._messages.append(message)
        self._size_bytes += message.size_bytes
        return full

    def take(self) -> list[Outgoing]:
        taken, self._messages, self._size_bytes = self._messages, [], 0
        return taken
