"""The reader of HOCON files: pyhocon, with ElasticMQ's results.

pyhocon differs from ElasticMQ's parser in these points, which ``_lines`` and ``_plain`` correct: an include of the
class path is a syntax error, durations have two classes, keys keep their quotes, and an include may fetch a URL.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from elasticq.extras import how_to_install

INCLUDES_MAX: Final = 10  # files deep
FILE_BYTES_MAX: Final = 16 * 1_048_576

_INCLUDE: Final = re.compile(
    r"^\s*+include\s++(?P<required>required\s*+\()?\s*+(?:(?P<kind>\w++)\s*+\()?\s*+"
    r"\"(?P<name>[^\"]*)\"[\s)]*+(?:(?:#|//).*)?$"
)
_INCLUDE_AT_ALL: Final = re.compile(r"\s*include\s+[\"\w]")
_DEFAULTS: Final = ("application", "reference")  # files inside ElasticMQ's own archive


class MigrationError(Exception):
    """A foreign file of settings that cannot be read. The text names the reason."""


def parse(file: Path) -> dict[str, Any]:
    """Return the file as a tree of plain values. Raise MigrationError if it cannot be read."""
    try:
        from pyhocon import ConfigFactory, ConfigTree
        from pyhocon.exceptions import ConfigException
        from pyparsing import ParseBaseException
    except ImportError as error:
        reason = f"pyhocon reads ElasticMQ's files, but is not installed: {how_to_install('hocon')}"
        raise MigrationError(f"{file}: {reason}") from error
    text = "\n".join(_lines(file, 0))
    try:
        tree = ConfigFactory.parse_string(text)
    except ParseBaseException as error:
        raise MigrationError(f"{file}: not HOCON, line {error.lineno}: {error.line.strip()[:80]!r}") from error
    except (ConfigException, RecursionError, ValueError, TypeError, LookupError, AttributeError, OSError) as error:
        raise MigrationError(f"{file}: not HOCON: {error}") from error
    if not isinstance(tree, ConfigTree):
        raise MigrationError(f"{file}: not a HOCON object")
    plain: dict[str, Any] = _plain(tree.as_plain_ordered_dict())
    return plain


def _lines(file: Path, depth: int) -> Iterator[str]:
    """Yield the lines of a file and, in place of each include, those of the included file. Never fetch a URL."""
    if depth > INCLUDES_MAX:
        raise MigrationError(f"{file}: includes are more than {INCLUDES_MAX} files deep")
    for line in _text(file).splitlines():
        found = _INCLUDE.match(line)
        if found is not None:
            yield from _included(file, found, depth)
        elif _INCLUDE_AT_ALL.match(line) and "=" not in line:
            raise MigrationError(f"{file}: an unknown form of include: {line.strip()[:80]!r}")
        else:
            yield line


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise MigrationError(f"{file}: more than {FILE_BYTES_MAX} bytes")
        return content.decode("utf-8")
    except (OSError, UnicodeError) as error:
        raise MigrationError(f"{file}: {error}") from error


def _included(file: Path, include: re.Match[str], depth: int) -> Iterator[str]:
    path = file.parent / include["name"]
    if path.stem in _DEFAULTS and not path.is_file():
        return
    if include["kind"] not in (None, "file"):
        raise MigrationError(f"{file}: only files can be included, not {include[0].strip()[:80]!r}")
    if path.is_file():
        yield from _lines(path, depth + 1)
    elif include["required"]:
        raise MigrationError(f"{file}: {path} is required but missing")


def _plain(value: Any) -> Any:
    """Return the tree with durations as texts in milliseconds, and with keys without quotes."""
    if isinstance(value, Mapping):
        return {str(key).strip('"'): _plain(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_plain(below) for below in value]
    if isinstance(value, timedelta):
        return f"{value // timedelta(milliseconds=1)} ms"
    if type(value).__name__ == "relativedelta":  # if dateutil is installed
        days = value.days + 30 * value.months + 365 * value.years
        whole = timedelta(days=days, hours=value.hours, minutes=value.minutes, seconds=value.seconds)
        return _plain(whole + timedelta(microseconds=value.microseconds))
    return value
