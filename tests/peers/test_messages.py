"""Control messages between members: what was encoded is read again, and anything else is a BadMessage."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from elasticq.peers.errors import BadMessage
from elasticq.peers.messages import Ask, End, Greeting, Head, Hello, Known, Pull, Refused, Reply, decode, encode
from tests.peers.community import make_peer

PEER = make_peer("a")
MESSAGES = [
    Hello(1, 1, "link", True, b"n" * 16, 5, 6, PEER),
    Greeting(PEER, (Known("b-1", "10.0.0.1:9326"),)),
    Refused("held", "another process has this name"),
    Pull("s", 0, 7),
    Head("s", 7, 4_096, 0),
    End(b"d" * 32),
    Ask(1, "cluster", b"{}"),
    Reply(1, 200, b"{}"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_is_read_as_it_was_written_and_as_no_greeting(message: Any) -> None:
    body = encode(message)
    assert decode(body, type(message)) == message
    other = Hello if isinstance(message, Greeting) else Greeting
    with pytest.raises(BadMessage, match=other.__name__):
        decode(body, other)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\x91" * 10_000,
        msgspec.msgpack.encode(["s", -1, 7]),
        msgspec.msgpack.encode(["s", 0, 1 << 62]),
        msgspec.msgpack.encode(["s" * 1_025, 0, 7]),
        msgspec.msgpack.encode(["s", 0]),
        b"\x93\xa1\xff\x00\x07",  # a text that is no UTF-8
    ],
)
def test_what_is_out_of_range_is_no_message(body: bytes) -> None:
    with pytest.raises(BadMessage, match=r"^Pull: "):
        decode(body, Pull)


def test_a_peer_of_another_version_is_read_by_the_fields_that_both_have() -> None:
    """An older one tells no region and no port, and passes over those of a newer one."""
    peer = make_peer("n1", region="eu-west-1", has_one_region=True, http_port=9324)
    fields = msgspec.to_builtins(peer)
    older = decode(encode((fields[:-4], ())), Greeting).peer
    newer = decode(encode(([*fields, "more"], ())), Greeting).peer
    assert older == replace(peer, region="", has_one_region=False, http_port=0)
    assert newer == peer


@pytest.mark.parametrize("status", [-1, 0, 99, 101, 199, 600, 1 << 40])
def test_an_answer_whose_status_is_no_answers_is_no_message(status: int) -> None:
    """The admin port passes it on as its own: 101, for one, would end the HTTP of whoever asked."""
    with pytest.raises(BadMessage, match=r"^Reply: "):
        decode(msgspec.msgpack.encode([1, status, b"{}"]), Reply)
