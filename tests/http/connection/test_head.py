"""The reader of heads: what it keeps, and which heads are hot."""

import random
import sys
from collections.abc import Callable

import pytest

from elasticq.http.connection.facts import Head
from elasticq.http.connection.head import (
    _READERS,
    _VARYING,
    KNOWN_HEADS_MAX,
    LEARN_EVERY,
    TEMPLATE_BYTES_MAX,
    TEMPLATES_MAX,
    TEMPLATES_OF_A_LENGTH_MAX,
    BadHead,
    HeadReader,
    _spans,
)
from tests.http.heads import facts_of
from tests.http.test_framing import LINES


def test_known_lines_are_bounded_and_secrets_are_not_kept() -> None:
    reader = HeadReader()
    lines = reader._fact.__self__  # type: ignore[attr-defined]
    for number in range(3_000):
        reader.read(b"\r\n".join([*LINES, b"User-Agent: %d" % number, b"Authorization: %d" % number]))
    assert 0 < len(lines) <= 1_024
    assert not [line for line in lines if b"Authorization" in line]


def test_a_line_is_judged_alike_when_new_and_when_known() -> None:
    reader = HeadReader()
    head = b"\r\n".join(LINES)
    assert facts_of(reader.read(head)) == facts_of(reader.read(head)) == facts_of(HeadReader().read(head))
    for _ in range(2):
        with pytest.raises(BadHead):
            reader.read(head + b"\r\nContent-Length: 24")


@pytest.mark.parametrize(
    ("line", "hot"),
    [
        (b"Connection: keep-alive", True),
        (b"Connection: close", True),
        (b"Expect: 100-continue", False),
        (b"Connection: Upgrade, HTTP2-Settings", False),
        (b"Upgrade: h2c", False),
        (b"Content-Encoding: gzip", False),
        (b"Content-Encoding: identity", True),
        (b"X-Anything: \xe4 at all", True),
    ],
)
def test_only_plain_requests_are_hot(line: bytes, hot: bool) -> None:
    head = HeadReader().read(b"\r\n".join([*LINES, line]))
    assert head.hot is hot
    assert head.close is (b"close" in line)


# --- heads that a template fits -------------------------------------------------------

BOTO3 = [
    b"POST / HTTP/1.1", b"Host: 127.0.0.1:9324", b"Accept-Encoding: identity", b"x-amzn-query-mode: true",
    b"User-Agent: Boto3/1.44.5 cfg/retry-mode#standard",
    b"amz-sdk-invocation-id: 11111111-2222-4333-8444-555555555555", b"amz-sdk-request: attempt=1",
    b"Content-Type: application/x-amz-json-1.0", b"X-Amz-Target: AmazonSQS.SendMessage",
    b"X-Amz-Date: 20260101T000000Z",
    b"Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/sqs/aws4_request,"
    b" SignedHeaders=content-type;host;x-amz-date, Signature=" + b"0" * 64,
    b"Content-Length: 100",
]  # fmt: skip
JAVA = [
    b"POST /000000000000/orders HTTP/1.1", b"Host: localhost:9324",
    b"amz-sdk-invocation-id: 11111111-2222-4333-8444-555555555555", b"amz-sdk-request: attempt=1; max=4",
    b"Authorization: AWS4-HMAC-SHA256 Credential=123456789012/20260101/eu-west-1/sqs/aws4_request, Signature="
    + b"0" * 64,
    b"Content-Type: application/x-www-form-urlencoded; charset=UTF-8", b"User-Agent: aws-sdk-java/2.29",
    b"x-amz-content-sha256: " + b"0" * 64, b"X-Amz-Date: 20260101T000000Z", b"X-Amz-Security-Token: " + b"t" * 200,
    b"X-Amzn-Trace-Id: Root=1-67891233-abcdef012345678912345678", b"Content-Length: 12", b"Connection: Keep-Alive",
]  # fmt: skip
JAVASCRIPT = [
    b"POST / HTTP/1.1", b"amz-sdk-invocation-id:  22222222-2222-4333-8444-555555555555 ",
    b"content-type: application/x-amz-json-1.0", b"x-amz-target: AmazonSQS.ReceiveMessage", b"content-length:\t 7\t",
    b"host: localhost:9324", b"AUTHORIZATION: AWS4-HMAC-SHA256 Credential=123456789012/x", b"connection: close",
    b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", b"traceparent: x",
]  # fmt: skip
SDKS = {"boto3": BOTO3, "java": JAVA, "javascript": JAVASCRIPT}


def judged(read: Callable[[bytes], Head], head: bytes) -> object:
    """What the head says, or why it is refused."""
    try:
        return facts_of(read(head))
    except BadHead as error:
        return str(error)


def learned(*heads: bytes) -> HeadReader:
    """A reader that has a template of each of ``heads``."""
    reader = HeadReader()
    for head in heads:
        for number in range(LEARN_EVERY):
            reader.read(head.replace(b"-8444-", b"-%04d-" % number))
    return reader


def templates_of(reader: HeadReader) -> int:
    return sum(len(of_length) for of_length in reader._templates.values())


def fits(reader: HeadReader, head: bytes) -> bool:
    return any(template.read(head) is not None for template in reader._templates.get(len(head), ()))


def values_of(head: bytes) -> list[tuple[int, int]]:
    """Where a template cuts a value out of ``head``."""
    return _spans(HeadReader().read(head))[1]


@pytest.mark.parametrize("lines", SDKS.values(), ids=SDKS)
def test_a_head_with_any_byte_changed_is_judged_as_its_lines_are(lines: list[bytes]) -> None:
    """Every byte of a value takes every value, and every other byte those that mean something in a head."""
    head = b"\r\n".join(lines)
    reader, served = learned(head), 0
    inside = {at for begin, end in values_of(head) for at in range(begin, end)}
    for at in range(len(head)):
        for byte in range(256) if at in inside else b"\0\t\n\r :;,/0aA~\x7f\x80\xff":
            changed = head[:at] + bytes((byte,)) + head[at + 1 :]
            assert judged(reader.read, changed) == judged(HeadReader()._parse, changed), changed
            served += fits(reader, changed)
    assert templates_of(reader) >= 1
    assert served > len(inside) * 10  # digits, at least: most were read by a template


@pytest.mark.parametrize("lines", SDKS.values(), ids=SDKS)
def test_a_head_with_bytes_moved_is_judged_as_its_lines_are(lines: list[bytes]) -> None:
    """The length stays: what is taken away in one place comes back in another, or an end of line is put over it."""
    head = b"\r\n".join(lines)
    reader, chance, served = learned(head), random.Random(1), 0
    for _ in range(20_000):
        at, to, size = chance.randrange(len(head)), chance.randrange(len(head)), chance.choice([1, 1, 2, 4, 30])
        piece = chance.choice(
            [b"\r\n", b"\r\n ", b"\n", b": ", b"\r\nHost: a", b"\r\nContent-Length: 1", b" ", b"9", b"Z"]
        )
        match chance.randrange(4):
            case 0:
                changed = head[:at] + piece + head[at + len(piece) :]
            case 1:
                moved, rest = head[at : at + size], head[:at] + head[at + size :]
                changed = rest[:to] + moved + rest[to:]
            case 2:
                shuffled = chance.sample(lines, len(lines))
                changed = b"\r\n".join(shuffled)
            case _:
                begin, end = chance.choice(values_of(head))
                value = bytes(chance.choices(b"0123456789abcdef-=; ", k=end - begin))
                changed = head[:begin] + value + head[end:]
        assert judged(reader.read, changed) == judged(HeadReader()._parse, changed), changed
        served += fits(reader, changed)
    assert served > 1_000


def test_an_sdk_s_heads_are_read_by_a_template_once_some_were_seen() -> None:
    head = b"\r\n".join(BOTO3)
    reader = learned(head)
    date, signature = b"20990909T101112Z", b"f" * 64
    other = head.replace(b"20260101T000000Z", date).replace(b"0" * 64, signature).replace(b": 100", b": 739")
    read = reader.read(other)
    assert (read.body_bytes, read.authorization[-64:]) == (739, signature)
    assert facts_of(read) == facts_of(HeadReader().read(other))
    assert read.lines == other.split(b"\r\n")
    assert not [line for line in reader._fact.__self__ if date in line]  # type: ignore[attr-defined]


def test_clients_whose_heads_have_one_length_do_not_meet() -> None:
    """Another action, another host and another client's name: each keeps its own facts."""
    head = b"\r\n".join(BOTO3)
    heads = [head, head.replace(b"SendMessage", b"ListQueuesX"), head.replace(b":9324", b":9325")]
    heads.append(head.replace(b"standard", b"adaptive"))
    reader = learned(*heads)
    for each in heads * 2:
        assert fits(reader, each)
        assert facts_of(reader.read(each)) == facts_of(HeadReader().read(each))


def test_signed_heads_without_an_invocation_id_are_learned_as_well() -> None:
    lines = [line for line in BOTO3 if b"invocation" not in line]
    head = b"\r\n".join(lines)
    reader = HeadReader()
    for number in range(KNOWN_HEADS_MAX + 1):
        reader.read(head.replace(b"0" * 64, b"%064d" % number))
    assert fits(reader, head)
    assert facts_of(reader.read(head)) == facts_of(HeadReader().read(head))


def test_a_head_that_is_not_hot_or_long_makes_no_template() -> None:
    head = b"\r\n".join(BOTO3)
    reader = learned(head + b"\r\nExpect: 100-continue", head + b"\r\nX-Long: " + b"a" * TEMPLATE_BYTES_MAX)
    assert templates_of(reader) == 0


def test_templates_are_bounded_and_hold_no_secret() -> None:
    head = b"\r\n".join([*BOTO3, b"X-Amz-Security-Token: secret-token"])
    reader = HeadReader()
    seen = set()
    for number in range(LEARN_EVERY * (TEMPLATES_MAX + 100)):
        varied = head.replace(b"Boto3/1.44.5", b"a" * (number % 500) + b"%09d" % number)
        reader.read(varied)
        seen.add(templates_of(reader))
    assert max(seen) == TEMPLATES_MAX
    for _ in range(LEARN_EVERY * (TEMPLATES_OF_A_LENGTH_MAX + 3)):
        reader.read(head.replace(b"Boto3", bytes(random.Random(_).choices(b"abc", k=5))))
    assert len(reader._templates[len(head)]) == TEMPLATES_OF_A_LENGTH_MAX
    assert reader._template_count == templates_of(reader)
    for _ in range(LEARN_EVERY):
        reader.read(varied)
    assert sys.getrefcount(varied) == 2, "no head is kept that a template was made of"
    common = b"".join(part for template in reader._templates[len(head)] for part in template._template._common)
    assert b"User-Agent" in common
    assert b"secret-token" not in common
    assert b"Credential" not in common


def test_a_value_that_a_template_does_not_look_at_says_nothing() -> None:
    looked_at = {b"content-length", b"amz-sdk-invocation-id", b"authorization", b"x-amzn-trace-id"}
    assert looked_at == _VARYING & _READERS.keys()
