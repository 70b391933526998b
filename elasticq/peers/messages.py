"""The schemas of the control messages between members. A body that does not match its schema is a BadMessage."""

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from elasticq.model.ranges import Count, Index, PeerText
from elasticq.node.membership.peer import Peer
from elasticq.peers.errors import BadMessage

PROTOCOL_MIN = 1
PROTOCOL_MAX = 1
SCHEMA = "f6751b92b4fddb8c"
"""A digest of all message schemas of PROTOCOL_MAX. tests/peers/test_schema.py computes and compares it.

Two builds of one protocol with different digests would misunderstand each other, so they refuse the link. Once the
protocol is released, a change of the digest needs a higher PROTOCOL_MAX.
"""
KNOWN_MAX = 64  # addresses in one greeting

Purpose = Literal["link", "transfer"]
Status = Annotated[int, Meta(ge=200, le=599)]
DUPLICATE = "duplicate"  # these two processes have a link already
HELD = "held"  # another live process has this name or member id
STRANGER = "stranger"  # another cluster, protocol or secret
CROWDED = "crowded"  # the maximum number of proxies is linked already
UNSERVED = "unserved"  # the source cannot send a snapshot at the moment


class Hello(Struct, array_like=True, frozen=True):
    """The first frame of each side.

    standing_ms: for how long the process has always had at least one link. uptime_ms: for how long it has run.
    Both decide which of two processes keeps a name. schema: the SCHEMA of protocol_max.
    """

    protocol_min: int
    protocol_max: int
    purpose: Purpose
    is_keyed: bool
    nonce: bytes
    standing_ms: Count
    uptime_ms: Count
    peer: Peer
    schema: PeerText = ""


class Known(Struct, array_like=True, frozen=True):
    """The address at which the sender last met a member."""

    id: PeerText
    address: PeerText


class Greeting(Struct, array_like=True, frozen=True):
    """The first frame after the handshake. The sender repeats it after each change of ``peer``."""

    peer: Peer
    known: tuple[Known, ...]


class Refused(Struct, array_like=True, frozen=True):
    """The last frame of a connection, with the reason why the sender closes it."""

    code: str
    reason: str


class Ask(Struct, array_like=True, frozen=True):
    """A question that the sender asks for its operator. The reply repeats ``number``."""

    number: Index
    kind: PeerText
    body: bytes


class Reply(Struct, array_like=True, frozen=True):
    """The reply to a question. ``status`` is an HTTP status, which the operators' port returns."""

    number: Index
    status: Status
    body: bytes


class Pull(Struct, array_like=True, frozen=True):
    """The request for a snapshot at ``index`` or above.

    If the source still has the snapshot named ``id``, it sends that one from ``offset`` (in bytes) on.
    """

    id: PeerText
    offset: Index
    index: Index


class Head(Struct, array_like=True, frozen=True):
    """The announcement of a snapshot's chunks, which follow. The first one begins at ``offset``."""

    id: PeerText
    index: Index
    size_bytes: Index
    offset: Index


class End(Struct, array_like=True, frozen=True):
    """The end of a snapshot, after all its chunks. digest: BLAKE2b (32 bytes) of the whole file."""

    digest: bytes


Message = TypeVar("Message")
encode = msgspec.msgpack.Encoder().encode
_decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {
    kind: msgspec.msgpack.Decoder(kind) for kind in (Hello, Greeting, Refused, Ask, Reply, Pull, Head, End)
}


def decode(body: bytes, kind: type[Message]) -> Message:
    """Return the message in a frame's body. Raise BadMessage if it does not match the schema of ``kind``."""
    try:
        message: Message = _decoders[kind].decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(f"{kind.__name__}: {error}") from error
    return message
