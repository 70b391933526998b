"""The filters of the page's templates: they format numbers, times and bodies of messages."""

import json
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

START_CHARS: Final = 160
SHOWN_CHARS: Final = 65_536
"""The page cuts a longer body, which can be downloaded in full."""
HEX_BYTES: Final = 4_096
_WIDTH: Final = 16


def count(number: int) -> str:
    return f"{number:,}"


def size(size_bytes: float) -> str:
    """Return a number of bytes in the largest unit that gives at least 1."""
    for unit, of_bytes in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size_bytes >= of_bytes:
            return f"{size_bytes / of_bytes:,.1f} {unit}"
    return f"{size_bytes:.0f} B"


def rate(per_second: float) -> str:
    return "0" if per_second < 0.005 else f"{per_second:,.1f}" if per_second >= 10 else f"{per_second:.2f}"


def age(age_ms: int | None) -> str:
    """Return a duration in its two largest units, an empty text for None."""
    if age_ms is None:
        return ""
    seconds = max(0, age_ms) // 1_000
    for size_s, unit, next_s, next_unit in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size_s:
            rest = seconds % size_s // next_s
            return f"{seconds // size_s} {unit} {rest} {next_unit}" if rest else f"{seconds // size_s} {unit}"
    return f"{seconds} s"


def moment(time_ms: int | None) -> str:
    """Return a time, given in ms since the epoch, as UTC; an empty text for None."""
    if time_ms is None:
        return ""
    try:
        return f"{datetime.fromtimestamp(time_ms / 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OSError, OverflowError, ValueError):
        return str(time_ms)


def typed_time(time_ms: int) -> str:
    """Return a time, given in ms since the epoch, as the value of an HTML time field in UTC; empty if out of range."""
    try:
        return f"{datetime.fromtimestamp(time_ms // 1_000, UTC):%Y-%m-%dT%H:%M:%S}"
    except (OSError, OverflowError, ValueError):
        return ""


def visible(text: str) -> str:
    """Return the text with numbers for invisible letters and those that change the order of letters.

    So a body cannot deceive the reader.
    """
    invisible = [letter for letter in set(text) - {"\n", "\t"} if unicodedata.category(letter) in _INVISIBLE]
    return text.translate({ord(letter): f"\\u{ord(letter):04x}" for letter in invisible}) if invisible else text


_INVISIBLE: Final = frozenset(("Cc", "Cf", "Co", "Cn", "Zl", "Zp"))


def start(body: str) -> str:
    """Return the first letters of a body on one line."""
    return visible(" ".join(body[: 2 * START_CHARS].split())[:START_CHARS])


def shown(body: str) -> str:
    cut = visible(body[:SHOWN_CHARS])
    return cut if len(body) <= SHOWN_CHARS else f"{cut}\n... {len(body) - SHOWN_CHARS:,} more characters: download it"


def pretty(body: str) -> str:
    """Return a JSON object or list with one line for each member, an empty text for any other body."""
    if len(body) > SHOWN_CHARS or not body.lstrip().startswith(("{", "[")):
        return ""
    try:
        return visible(json.dumps(json.loads(body), indent=2, ensure_ascii=False))
    except (ValueError, RecursionError):
        return ""


_LETTERS: Final = bytes(each if 32 <= each < 127 else ord(".") for each in range(256))


def hexdump(body: str) -> str:
    """Return a dump of the body's first HEX_BYTES in UTF-8: offset, bytes, and the bytes as ASCII."""
    data = body.encode("utf-8", "replace")
    lines = []
    for at in range(0, min(len(data), HEX_BYTES), _WIDTH):
        part = data[at : at + _WIDTH]
        lines.append(f"{at:06x}  {part.hex(' '):<{3 * _WIDTH}} {part.translate(_LETTERS).decode('ascii')}")
    if len(data) > HEX_BYTES:
        lines.append(f"... {len(data) - HEX_BYTES:,} more bytes")
    return "\n".join(lines)


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    each.__name__: each for each in (count, size, rate, age, moment, typed_time, start, shown, pretty, hexdump)
}
