"""Targets of what members say to each other: frames, the handshake, messages, and a cluster that hears an intruder."""

from typing import Any

import msgspec

from elasticq.node import forwarding
from elasticq.peers import frames, messages
from elasticq.peers.errors import PeerError
from elasticq.peers.handshake import Handshake, make_hello
from elasticq.replication import messages as replication
from elasticq.replication.messages import FrameError
from tests.node.intruder import Invaded, frames_for
from tests.peers.community import make_peer
from tests.system.fuzz.choices import Builder, Choices
from tests.system.fuzz.target import Target, check_told

_KINDS = {**frames.LINK_KINDS, **frames.HANDSHAKE_KINDS, **frames.TRANSFER_KINDS}
_CONTROL = (
    messages.Hello,
    messages.Greeting,
    messages.Refused,
    messages.Ask,
    messages.Reply,
    messages.Pull,
    messages.Head,
    messages.End,
)


def judge_frames(data: bytes) -> None:
    """The first byte says into how long pieces a stream is cut; one with its highest bit set has its frames built."""
    first = data[0] if data else 0
    size, stream = first % 61 + 1, data[1:]
    written: list[tuple[int, bytes]] = []
    if first & 0x80:
        choices = Choices(stream)
        written = [(choices.choice(sorted(_KINDS)), choices.blob()) for _ in range(choices.below(5))]
        written = [(kind, body[: _KINDS[kind]]) for kind, body in written]
        writer, pieces = frames.FrameWriter(), list[bytes]()
        for kind, body in written:
            writer.add(pieces, kind, body)
        stream = b"".join(pieces) + choices.rest()
    whole = _read([stream])
    assert _read([stream[at : at + size] for at in range(0, len(stream), size)]) == whole, "cuts change frames"
    assert whole[0][: len(written)] == written, "what was written is not read"


def _read(parts: list[bytes]) -> tuple[list[tuple[int, bytes]], str]:
    reader = frames.FrameReader()
    reader.allow(_KINDS)
    found: list[tuple[int, bytes]] = []
    fed = 0
    try:
        for part in parts:
            reader.feed(part)
            fed += len(part)
            while (frame := reader.next_frame()) is not None:
                found.append(frame)
            assert reader.kept_bytes <= fed
    except PeerError as error:
        return found, error.reason
    return found, ""


def judge_messages(data: bytes) -> None:
    """Messages of every kind, built or as they come: what is read is written and read again."""
    choices = Choices(data)
    if choices.flag():
        body = choices.rest()
        for kind in _CONTROL:
            _check_control(body, kind)
        _check_replication(body)
        _check_forwarding(body)
        return
    family = choices.below(3)
    if family == 0:
        control = choices.choice(_CONTROL)
        _check_control(msgspec.msgpack.encode(_Messages(choices).struct(control)), control)
    elif family == 1:
        kind = choices.choice(replication.AnyMessage.__args__)
        packed = msgspec.msgpack.encode(_Messages(choices).struct(kind))
        _check_replication(bytes((replication.PROTOCOL_VERSION,)) + packed)
    else:
        _check_forwarding(bytes((forwarding.FRAME_KIND,)) + msgspec.msgpack.encode(_forwarded(choices)))


class _Messages(Builder):
    """Ids and numbers that could be, but for some."""

    def text(self, name: str) -> str:
        return self.choices.choice(["a", "b-2", "127.0.0.1:9326", ""]) if self.choices.below(8) else self.choices.text()

    def number(self, name: str) -> int:
        return self.choices.below(100) if self.choices.below(4) else self.choices.number()


def _forwarded(choices: Choices) -> list[Any]:
    """With a command or result that its name says, where it has one."""
    kind = choices.choice(forwarding.AnyForwardingMessage.__args__)
    packed = _Messages(choices).struct(kind)
    decoders = {forwarding.Forward: forwarding._COMMANDS, forwarding.Answer: forwarding._RESULTS}.get(kind)
    if decoders:
        names = [field.name for field in msgspec.structs.fields(kind)]
        name = choices.choice(sorted(decoders))
        packed[1 + names.index("kind")] = name
        body = _Messages(choices).struct(decoders[name].type)
        packed[1 + names.index("command" if kind is forwarding.Forward else "body")] = body
        if kind is forwarding.Forward:
            packed[1 + names.index("invocation")] = choices.choice([b"", b"i" * 16, b"abc"])
    return packed


def _check_control(body: bytes, kind: type[Any]) -> None:
    try:
        read = messages.decode(body, kind)
    except PeerError:
        return
    written = messages.encode(read)
    assert messages.encode(messages.decode(written, kind)) == written


def _check_replication(frame: bytes) -> None:
    try:
        read = replication.decode(frame)
    except FrameError:
        return
    written = replication.encode(read)
    assert replication.encode(replication.decode(written)) == written


def _check_forwarding(frame: bytes) -> None:
    try:
        read = forwarding.decode(frame)
        if isinstance(read, forwarding.Forward):
            forwarding.call_of(read)
        if isinstance(read, forwarding.Answer):
            forwarding.outcome_of(read)
    except FrameError:
        return
    written = forwarding.encode(read)
    assert forwarding.encode(forwarding.decode(written)) == written


_SECRET = b"open sesame"


def judge_handshake(data: bytes) -> None:
    """A stranger who does not know the secret proves nothing, whatever frames it sends, to either side."""
    choices = Choices(data)
    is_dialler = choices.flag()
    hello = make_hello(make_peer("alpha"), "link", is_keyed=True, nonce=b"a" * 32)
    side = Handshake(hello, _SECRET, is_dialler=is_dialler)
    side.start()
    stranger = make_hello(make_peer("beta"), "link", is_keyed=True, nonce=b"b" * 32)
    replies: list[tuple[int, bytes]] = []
    try:
        for _ in range(choices.below(4) + 1):
            source = choices.below(4)
            if source == 0:
                body = messages.encode(stranger)
            elif source == 1:
                body = msgspec.msgpack.encode(Builder(choices).struct(messages.Hello))
            elif source == 2 and replies:
                body = choices.choice(replies)[1]  # what it said itself
            else:
                body = choices.blob()
            replies += side.step(choices.choice([frames.HELLO, frames.PROOF, frames.PROOF, frames.DATA]), body)
    except PeerError as error:
        check_told(error)
    assert not side.is_proven, "a stranger was believed"


def judge_members(data: bytes) -> None:
    """A member that breaks the rules says what it likes to one of three: nothing fails, and the others go on."""
    choices = Choices(data)
    cluster = Invaded(volatile=False)
    master = cluster.elect()
    to = choices.choice(cluster.names)
    for _ in range(12):
        if choices.is_over:
            break
        cluster.say_as_intruder(to, frames_for(cluster, to, choices).draw())  # type: ignore[arg-type]
        if choices.below(4) == 0:
            cluster.advance(choices.choice([10, 200, 3_000]))
    assert master in cluster.members
    cluster.advance(200)


def _stream() -> bytes:
    pieces: list[bytes] = []
    writer = frames.FrameWriter()
    writer.add(pieces, frames.PING, b"12345678")
    writer.add(pieces, frames.DATA, b"x" * 20)
    return b"".join(pieces)


TARGETS = {
    "frames": Target(
        judge_frames, [b"\x05" + _stream(), b"\x85" + bytes(range(60)), b"\x3c" + _stream()[:-1]], (), 2_000
    ),
    "messages": Target(
        judge_messages, [bytes((0, each)) + bytes(range(each, each + 90)) for each in range(60)], (), 1_000
    ),
    "handshake": Target(
        judge_handshake,
        [b"\0\1\0\0\3\0\0\1", b"\1\1\0\0\3\0\0\1", *(bytes(range(each, each + 50)) for each in range(16))],
        (),
        600,
    ),
    "members": Target(judge_members, [bytes(range(each, each + 120)) for each in range(0, 130, 3)], (), 600),
}
