"""Schemas of the control messages; an unknown or ill-typed one is a BadMessage."""

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from elasticq.model.ranges import Count, Index, PeerText
from elasticq.node.membership.peer import Peer
from elasticq.peers.errors import BadMessage

PROTOCOL_MIN = 1
PROTOCOL_MAX = 1
SCHEMA = "34da72650b91e671"
"""A digest of what members of PROTOCOL_MAX say to each other; tests/peers/test_schema.py makes and compares it.

Two builds of one protocol with different digests misunderstand each other, so they refuse the link. Once the protocol
is released, a change of the digest needs a higher PROTOCOL_MAX.
"""
KNOWN_MAX = 64  # addresses in one greeting

Purpose = Literal["link", "transfer"]
Status = Annotated[int, Meta(ge=200, le=599)]
DUPLICATE = "duplicate"  # there is a link of this pair already
HELD = "held"  # another live process has this name or member id
STRANGER = "stranger"  # another cluster, protocol or secret
CROWDED = "crowded"  # there are as many proxies as may be linked here
UNSERVED = "unserved"  # no snapshot to be had here now


class Hello(Struct, array_like=True, frozen=True):
    """The first frame of each side.

    standing_ms: how long the process has had a link to anybody without a break; uptime_ms: how long it has run.
    They decide which of two processes keeps a name. schema: the SCHEMA of protocol_max.
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
    """Where a member was last met."""

    id: PeerText
    address: PeerText


class Greeting(Struct, array_like=True, frozen=True):
    """The first frame after the handshake, sent again when what it says has changed."""

    peer: Peer
    known: tuple[Known, ...]


class Refused(Struct, array_like=True, frozen=True):
    """The last frame of a connection, which says why it is closed."""

    code: str
    reason: str


class Ask(Struct, array_like=True, frozen=True):
    """A question for the operator of the sender; the answer repeats ``number``."""

    number: Index
    kind: PeerText
    body: bytes


class Reply(Struct, array_like=True, frozen=True):
    """The answer to a question; ``status`` is as in HTTP, where it goes."""

    number: Index
    status: Status
    body: bytes


class Pull(Struct, array_like=True, frozen=True):
    """Asks for a snapshot at ``index`` or above; from ``offset`` on if the source still has the one named ``id``."""

    id: PeerText
    offset: Index
    index: Index


class Head(Struct, array_like=True, frozen=True):
    """Says that chunks of this snapshot follow, the first one at ``offset``."""

    id: PeerText
    index: Index
    size_bytes: Index
    offset: Index


class End(Struct, array_like=True, frozen=True):
    """Says that all chunks were sent. digest: BLAKE2b (32 bytes) of the whole file."""

    digest: bytes


Message = TypeVar("Message")
encode = msgspec.msgpack.Encoder().encode
_decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {
    kind: msgspec.msgpack.Decoder(kind) for kind in (Hello, Greeting, Refused, Ask, Reply, Pull, Head, End)
}


def decode(body: bytes, kind: type[Message]) -> Message:
    """Return the message in a frame's body. Raises BadMessage."""
    try:
        message: Message = _decoders[kind].decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(f"{kind.__name__}: {error}") from error
    return message
