"""What clients did and saw: one event per operation, as JSON lines.

An operation is one SDK call with all its attempts (one GUID). ``invoke_us`` is
when its first attempt left, ``complete_us`` when its answer came (None: never);
both are true time in microseconds of one clock that all clients share.
``outcome``: ``ok``, ``fail`` (it certainly had no effect) or ``unknown`` (it may
have had its effect, or may have it later).

Bodies are unique per message: they are how a checker recognises a message.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from msgspec import Struct, field

Outcome = Literal["ok", "fail", "unknown"]


class Operation(Struct, tag_field="kind", kw_only=True):
    """What all operations tell."""

    client: str
    queue: str
    invoke_us: int
    complete_us: int | None = None
    outcome: Outcome = "unknown"
    guid: str = ""


class SentMessage(Struct):
    """``message_ids``: every id that any answer gave to it (more than one is a finding)."""

    body: str
    message_ids: list[str] = field(default_factory=list)


class Send(Operation, tag="send"):
    """SendMessage (one message) or SendMessageBatch."""

    messages: list[SentMessage]


class HandedOut(Struct):
    """One message in the answer of a receive."""

    message_id: str
    receipt_handle: str
    body: str


class Receive(Operation, tag="receive"):
    """``visibility_ms``: the timeout that applied to this receive."""

    visibility_ms: int
    messages: list[HandedOut] = field(default_factory=list)


class Delete(Operation, tag="delete"):
    """``message_id``: of the hand-out that the handle came with."""

    message_id: str
    receipt_handle: str


class ChangeVisibility(Operation, tag="change_visibility"):
    message_id: str
    receipt_handle: str
    visibility_ms: int


Event = Send | Receive | Delete | ChangeVisibility

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def dump_lines(events: Iterable[Event]) -> bytes:
    """JSON lines, one event each."""
    return b"".join(_encoder.encode(event) + b"\n" for event in events)


def load_lines(lines: Iterable[bytes]) -> Iterator[Event]:
    """Raises msgspec.DecodeError for a line that is no event; empty lines are skipped."""
    return (_decoder.decode(line) for line in lines if line.strip())
