"""Extreme JSON values, and JSON documents with such values in them.

A value is one that ``json`` can write, or ``Raw``: text that goes into the JSON unchanged. So this module writes NaN, a
hundred thousand brackets and numbers of any length without deep recursion.
"""

import json
from random import Random
from typing import Any, Final

DEPTHS: Final = (10, 100, 1_000, 100_000)
AROUND_LIMIT: Final = (960, 1_000)
"""Depths next to the recursion limit of the interpreter, where a value passes in one place and raises in another."""
WIDE: Final = 1_000
LONG: Final = (80, 81, 128, 129, 256, 257, 1_024, 1_025, 4_097, 8_192, 8_193, 65_537)
HUGE_CHARS: Final = 1_048_576
HUGE_SHARE: Final = 0.03
"""Part of the long texts that have HUGE_CHARS; one of them costs as much as a thousand other calls."""
TEXTS: Final = (
    "", " ", "a", "\0", "a\0b", "\ud800", "\udfff\ud800", "\ufeff", "\ufeffa", "\u202eabc", "\uffff", "\U0001f600" * 20,
    "\U0010ffff", "e\u0301" * 60, "é" * 128, "\u0661\u0662", "a\nb\r\nc", "\x1b[2J", "<script>alert(1)</script>",
    "'\";--", "&lt;]]>", "%00", "%", "%zz", "../../x", "..", "/", "//", "*", "{}", "[]", "null", "true", "NaN",
    "Infinity", "-0", "1e308", "1e999", "0x10", "-1", "1.5", " 5", "+5", "9" * 400, ".fifo", "AWS.x", "a.b.c",
    "~topics", "lease:", "lease:a/1/", "n/1/1", "==", "AAAA",
)  # fmt: skip
INTEGERS: Final = (
    0, 1, -1, 2, 10, 11, 20, 21, 100, 900, 901, 1_000, 1_001, 43_200, 43_201, 120_000, 2**31 - 1, 2**31, -(2**31),
    -(2**31) - 1, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**30,
)  # fmt: skip
ODD_NUMBERS: Final = ("NaN", "Infinity", "-Infinity", "-0", "1e308", "1e999", "1E-999", "0.1", "1.0", "9" * 5_000)


class Raw(str):
    """Text that is written into JSON as it is."""

    __slots__ = ()


def write(value: Any) -> str:
    """Return JSON in ASCII: characters beyond it, lone surrogates too, are written as escapes."""
    if isinstance(value, Raw):
        return value
    if isinstance(value, dict):
        return "{" + ",".join(f"{write(str(name))}:{write(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    return json.dumps(value)


def nested(random: Random) -> Raw:
    """Return lists or objects within each other."""
    depth = random.choice((*DEPTHS, *(random.randint(*AROUND_LIMIT) for _ in range(4))))
    begin, middle, end = random.choice((("[", "", "]"), ('{"a":', "1", "}"), ('[{"a":', "null", "}]")))
    return Raw(begin * depth + middle + end * random.choice((depth, depth, depth, depth - 1)))


def long_text(random: Random) -> str:
    length = HUGE_CHARS if random.random() < HUGE_SHARE else random.choice(LONG)
    return random.choice(("x", "9", "é", "\0", '"')) * length


def wide(random: Random) -> Any:
    """Return a list or an object with many members."""
    item = random.choice(("a", 1, None, "x" * 100))
    return [item] * WIDE if random.random() < 0.5 else {f"k{number}": item for number in range(WIDE)}


def extreme(random: Random) -> Any:
    """Return any extreme value, of any type."""
    return random.choice(KINDS)(random)


def text(random: Random) -> str:
    return random.choice(TEXTS)


KINDS: Final = (
    text,
    long_text,
    *(nested,) * 3,
    wide,
    lambda random: random.choice(INTEGERS),
    lambda random: Raw(random.choice(ODD_NUMBERS)),
    lambda random: random.choice((None, True, False, [], {}, 0.5, [[]], {"": {}}, [None])),
)


def spoilt(random: Random, document: Any) -> Any:
    """Return a copy of a JSON document in which one value is extreme, or to which an extreme one is added."""
    if isinstance(document, dict) and document and random.random() < 0.7:
        name = random.choice(list(document))
        return document | {name: spoilt(random, document[name])}
    if isinstance(document, list) and document and random.random() < 0.7:
        at = random.randrange(len(document))
        return [*document[:at], spoilt(random, document[at]), *document[at + 1 :]]
    if isinstance(document, dict):
        return document | {random.choice(("Unknown", "a", "", "$or", text(random))): extreme(random)}
    return extreme(random)


def broken(random: Random, body: bytes) -> bytes:
    """Return bytes that are no JSON of an object, or JSON in another encoding than UTF-8."""
    ways = (
        lambda: body[: random.randrange(len(body) + 1)],
        lambda: b"\xef\xbb\xbf" + body,
        lambda: body.decode().encode(random.choice(("utf-16", "utf-32", "utf-16-be"))),
        lambda: body.replace(b"a", random.choice((b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\0")), 1),
        lambda: write(extreme(random)).encode(),
        lambda: b"[" * random.choice((*DEPTHS, *AROUND_LIMIT)),
        lambda: body[:-1] + b"," + body[1:] if body[:1] == b"{" else body * 2,
    )
    return random.choice(ways)()
