"""The contents of write-ahead log files: received messages or ids, compressed JSON with a CRC."""

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Any, Final

from elasticq.spark.schema import Message

MAGIC: Final = b"elasticq-wal 1 "


class DamagedLog(RuntimeError):
    """The error of a damaged file of the write-ahead log."""


@dataclass
class Received:
    """The messages that a task received. redelivered: messages that were read before. The commit only deletes them."""

    messages: list[Message] = field(default_factory=list)
    redelivered: list[tuple[str, str]] = field(default_factory=list)  # message id, receipt handle

    def handles(self) -> list[tuple[str, str]]:
        """Return message id and receipt handle of all messages that the commit deletes."""
        return [(each["MessageId"], each["ReceiptHandle"]) for each in self.messages] + self.redelivered


def encode(received: Received) -> bytes:
    return _framed({"messages": received.messages, "redelivered": received.redelivered})


def decode(name: str, content: bytes) -> Received:
    """Return the messages in a file's content. Raise DamagedLog. name: the file, for the error text."""
    value = _unframed(name, content)
    for message in value["messages"]:
        for attribute in message.get("MessageAttributes", {}).values():
            if "BinaryValue" in attribute:
                attribute["BinaryValue"] = b64decode(attribute["BinaryValue"])
    return Received(value["messages"], [(id_, handle) for id_, handle in value["redelivered"]])


def encode_ids(committed_s: float, ids: list[str]) -> bytes:
    return _framed({"committed_s": committed_s, "ids": ids})


def decode_ids(name: str, content: bytes) -> tuple[float, list[str]]:
    """Return the time of a commit, in seconds since the epoch, and its message ids. Raise DamagedLog."""
    value = _unframed(name, content)
    return value["committed_s"], value["ids"]


def _framed(value: Any) -> bytes:
    body = zlib.compress(json.dumps(value, separators=(",", ":"), default=_binary).encode(), 1)
    return MAGIC + b"%08x\n" % zlib.crc32(body) + body


def _unframed(name: str, content: bytes) -> Any:
    head, _, body = content.partition(b"\n")
    if head != MAGIC + b"%08x" % zlib.crc32(body):
        raise DamagedLog(f"write-ahead log file {name} is damaged; its messages are still in the queue")
    return json.loads(zlib.decompress(body))


def _binary(value: object) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} cannot be part of a message")
