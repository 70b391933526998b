"""Longest time for which each action's worst legal requests hold the event loop, so no other request is served.

The server runs in a thread of this process. Each request is sent whole. What counts is the longest turn of the loop
until the answer, in CPU time of the thread, which excludes other work of the machine. If it is not short, the least of
three runs counts. The goal is 20 ms on a quiet modern core. Only ``--limit`` makes the program check it.
"""

import argparse
import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from states import TURNS

from elasticq.model.limits import BODY_BYTES_MAX, REQUEST_BYTES_MAX
from elasticq.testing import ElasticQ
from elasticq.wire.operations import OPERATIONS, Kind, Operation

RUNS: Final = 3
SHORT_MS: Final = 10
URL: Final = "/000000000000/q"
JSON: Final = b"application/x-amz-json-1.0"
HEALTH: Final = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
FORM: Final = b"application/x-www-form-urlencoded"
LISTED: Final = {
    Kind.NAMES: (b"[", b'""', b"]"),
    Kind.NUMBERS: (b"[", b"1", b"]"),
    Kind.PAIRS: (b"{", b'"%x":""', b"}"),
    Kind.ATTRIBUTES: (b"{", b'"%x":{}', b"}"),
    Kind.ENTRIES: (b"[", b"{}", b"]"),
}


def filled(before: bytes, unit: bytes, after: bytes, size_bytes: int, between: bytes = b",") -> bytes:
    """Return ``unit`` repeated up to the size, between ``before`` and ``after``. ``%x`` in it becomes its number."""
    room = size_bytes - len(before) - len(after)
    if b"%x" not in unit:
        count = (room + len(between)) // (len(unit) + len(between))
        return before + (unit + between) * (count - 1) + unit + after
    count = room // (len(unit) + len(between) + 4)
    return before + between.join(unit % at for at in range(count)) + after


def json_bodies(operation: Operation, size_bytes: int) -> Iterator[tuple[str, bytes]]:
    shape = operation.shape
    start = b'{"QueueUrl":"%b",' % URL.encode() if "QueueUrl" in shape.texts else b"{"
    for name in shape.texts:
        if name != "QueueUrl":
            start += b'"%b":"x",' % name.encode() if name in ("QueueName", "MessageBody", "ReceiptHandle") else b""
    yield "unknown lists", filled(start + b'"x":[', b"[]", b"]}", size_bytes)
    yield "unknown strings of brackets", filled(start + b'"x":[', b'"["', b"]}", size_bytes)
    yield "brackets in a string", filled(start + b'"x":[' + b"[]," * 40 + b'"', b'\\"[', b'"]}', size_bytes, b"")
    yield "backslashes in a string", filled(start + b'"x":[' + b"[]," * 40 + b'"', b"\\\\", b'"]}', size_bytes, b"")
    yield "unknown members", filled(start, b'"x":1', b"}", size_bytes)
    yield "nesting", filled(start + b'"x":', b"[", b"", size_bytes, b"")
    yield "a number", filled(start + b'"x":', b"1", b"}", size_bytes, b"")
    yield "nulls", filled(start + b'"AttributeNames":null,"Entries":null,"x":[', b"null", b"]}", size_bytes)
    yield "nulls and lists", filled(start + b'"Attributes":{"x":null},"x":[null,', b"[]", b"]}", size_bytes)
    for name in shape.texts:
        yield f"{name} of escapes", filled(start + b'"%b":"' % name.encode(), b"\\u0041", b'"}', size_bytes, b"")
        yield f"{name} of two bytes", filled(start + b'"%b":"' % name.encode(), "é".encode(), b'"}', size_bytes, b"")
        yield f"{name} of slashes", filled(start + b'"%b":"' % name.encode(), b"/", b'"}', size_bytes, b"")
    for member in shape.lists.values():
        field = member.name
        opened, unit, closed = LISTED[member.kind]
        yield f"{field} of nothing", filled(start + b'"%b":' % field.encode() + opened, unit, closed + b"}", size_bytes)
        nulled = unit.replace(b"{}", b"null").replace(b'""', b"null")
        yield f"{field} of nulls", filled(start + b'"%b":' % field.encode() + opened, nulled, closed + b"}", size_bytes)
        text = unit.replace(b'""', b'"\\u0041\\u0041"')
        yield f"{field} of escapes", filled(start + b'"%b":' % field.encode() + opened, text, closed + b"}", size_bytes)
    for name in shape.integers:
        yield f"{name} of digits", filled(start + b'"%b":' % name.encode(), b"1", b"}", size_bytes, b"")


def form_bodies(operation: Operation, size_bytes: int) -> Iterator[tuple[str, bytes]]:
    start = b"Action=%b&QueueUrl=%b&" % (operation.name.encode(), URL.encode())
    names = [*operation.shape.texts, *(f"{prefix}.1" for prefix in operation.shape.lists)]
    for name in names:
        if name == "QueueUrl":
            continue
        for unit in (b"%41", b"%", b"+", b"=", b"%0a", b"%4", b"%41="):
            yield f"form, {name} of {unit.decode()}", filled(start + name.encode() + b"=", unit, b"", size_bytes, b"")
        break
    parameters = b"&".join(b"A%d=" % at + b"%4" * (size_bytes // 4_000) for at in range(1_900))
    yield "form, parameters of %4", start + parameters[: size_bytes - len(start)]
    names_only = b"&".join(b"%%41%d%%" % at + b"%4" * (size_bytes // 4_000) for at in range(1_900))
    yield "form, names of %4", start + names_only[: size_bytes - len(start)]
    for prefix in operation.shape.lists:
        numbered = b"&".join(b"%b.%d.x=" % (prefix.encode(), at) for at in range(1_900))
        yield f"form, {prefix} of 1,900", start + numbered


def full_bodies() -> Iterator[tuple[str, str, bytes]]:
    """Yield requests that succeed, with as much as a message or a batch may hold: (action, name, body)."""
    for name, text in (("text", "x"), ("quotes", '"'), ("two bytes", "é"), ("emoji", "\U0001f600"), ("tags", "<&>")):
        whole = text * (BODY_BYTES_MAX // len(text.encode()))
        send = {"QueueUrl": URL, "MessageBody": whole}
        yield "SendMessage", f"a whole message of {name}", json.dumps(send).encode()
        part = text * (BODY_BYTES_MAX // 10 // len(text.encode()))
        entries = [{"Id": str(at), "MessageBody": part} for at in range(10)]
        yield "SendMessageBatch", f"a whole batch of {name}", json.dumps({"QueueUrl": URL, "Entries": entries}).encode()
        yield "ReceiveMessage", f"both of {name}", json.dumps({"QueueUrl": URL, "MaxNumberOfMessages": 10}).encode()
    value = {"DataType": "Binary", "BinaryValue": "QUFB" * 25_000}
    attributes = {f"a{at}": value for at in range(10)}
    yield (
        "SendMessage",
        "binary attributes",
        json.dumps({"QueueUrl": URL, "MessageBody": "x", "MessageAttributes": attributes}).encode(),
    )


def request(kind: bytes, operation: str, body: bytes) -> bytes:
    target = b"X-Amz-Target: AmazonSQS.%b\r\n" % operation.encode() if kind == JSON else b""
    return b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: %b\r\n%bContent-Length: %d\r\n\r\n%b" % (
        kind, target, len(body), body,
    )  # fmt: skip


def asked(address: tuple[str, int], data: bytes) -> int:
    """Send a request; return the status of its answer, or 0 if there is none."""
    with socket.create_connection(address, timeout=60) as client:
        with contextlib.suppress(OSError):  # the server may refuse it before all is sent
            client.sendall(data)
        got = b""
        while b"\r\n\r\n" not in got:
            part = client.recv(1 << 20)
            if not part:
                return 0
            got += part
        return int(got.split(b" ", 2)[1])


def held_ms(address: tuple[str, int], data: bytes) -> tuple[float, int]:
    """Return the longest turn in ms, and the status: of one run if that is short, else the least of RUNS."""
    best_ms = float("inf")
    for _ in range(RUNS):
        TURNS.take_ms()
        status = asked(address, data)
        asked(address, HEALTH)  # so the turn that sent the first answer has ended
        best_ms = min(best_ms, TURNS.take_ms())
        if best_ms < SHORT_MS:
            break
    return best_ms, status


def cases(size_bytes: int) -> Iterator[tuple[str, str, bytes]]:
    for operation in OPERATIONS.values():
        for name, body in json_bodies(operation, size_bytes):
            yield operation.name, name, request(JSON, operation.name, body)
        for name, body in form_bodies(operation, size_bytes):
            yield operation.name, name, request(FORM, operation.name, body)
    for action, name, body in full_bodies():
        yield action, name, request(JSON, action, body)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("actions", nargs="*", help="actions to measure (all)")
    parser.add_argument("--all", action="store_true", help="print every request, not only the worst of each action")
    parser.add_argument("--relaxed", action="store_true", help="use limits = relaxed")
    parser.add_argument("--bytes", type=int, default=REQUEST_BYTES_MAX - 1_024, help="size of a request (%(default)s)")
    parser.add_argument(
        "--limit", type=float, default=float("inf"), metavar="MS", help="exit with 1 if a turn is longer"
    )


def main(options: argparse.Namespace) -> int:
    TURNS.watch()
    settings: dict[str, dict[str, Any]] = {"node": {"limits": "relaxed"}} if options.relaxed else {}
    worst: dict[str, tuple[float, str, int]] = {}
    with ElasticQ(settings=settings) as server:
        parts = urlsplit(server.endpoint_url)
        address = parts.hostname or "", parts.port or 0
        assert asked(address, request(JSON, "CreateQueue", b'{"QueueName":"q"}')) == 200
        for action, name, data in cases(options.bytes):
            if options.actions and action not in options.actions:
                continue
            ms, status = held_ms(address, data)
            if options.all:
                print(f"{action:28} {name:40} {ms:9.1f} ms  {status}", flush=True)
            if ms >= worst.get(action, (0.0,))[0]:
                worst[action] = ms, name, status
            if action in ("DeleteQueue", "CreateQueue", "PurgeQueue"):
                asked(address, request(JSON, "CreateQueue", b'{"QueueName":"q"}'))
    print(f"\n{'action':28} {'longest hold':>12}  status  of")
    for action, (ms, name, status) in worst.items():
        print(f"{action:28} {ms:9.1f} ms  {status:6}  {name}")
    return int(any(ms > options.limit for ms, _, _ in worst.values()))
