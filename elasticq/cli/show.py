"""Prints tables and bars on a terminal, plain lines elsewhere, and lets Ctrl-C end a command between two steps.

rich is imported on a terminal only.
"""

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

TELL_EVERY_S: Final = 5.0


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on stdout; where that is no terminal, in columns made by spaces."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        drawn = Table(*heads, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            drawn.add_row(*map(Text, map(one_line, row)))
        Console().print(drawn)
        return
    lines = [tuple(heads), *(tuple(map(one_line, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def json_lines(documents: Sequence[dict[str, Any]]) -> None:
    for document in documents:
        print(json.dumps(document))


def outcome(as_json: bool, name: str, value: str) -> None:
    """Print what a command has done: the value alone, or a line of JSON that names it."""
    if as_json:
        json_lines([{name: value}])
    else:
        print(value)


def one_line(text: str) -> str:
    """Return ``text`` with escapes for control characters, so that a message cannot move the reader's cursor."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def tell(text: str) -> None:
    """Print a line for whoever started the command, on stderr; stdout is for what was asked for."""
    print(f"elasticq: {text}", file=sys.stderr, flush=True)


@contextmanager
def bar(told: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with how much is done. On a terminal it draws one line on stderr again and again.

    Elsewhere it prints a line every few seconds, so that a log shows that a long command goes on. total: None where it
    is not known.
    """
    if not sys.stderr.isatty():
        yield _Lines(told, total).show
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(told, total=total)
        yield lambda done: progress.update(task, completed=done)


class _Lines:
    """Tells in plain lines how far a command is, and is silent about those that are done soon."""

    def __init__(self, told: str, total: int | None) -> None:
        self._told = told
        self._total = total
        self._next_s = time.monotonic() + TELL_EVERY_S

    def show(self, done: int) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + TELL_EVERY_S
        if self._total is None:
            tell(f"{self._told}: {done} done")
        else:
            tell(f"{self._told}: {done} of {self._total} done, {max(0, self._total - done)} left")


class Interrupt:
    """While it is entered, Ctrl-C and SIGTERM set ``asked``, so that the command ends after its step.

    A second one ends the command at once.
    """

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> "Interrupt":
        self._before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
