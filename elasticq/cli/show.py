"""Prints tables and bars on a terminal, plain lines elsewhere, and lets Ctrl-C end a command between two steps.

rich is imported on a terminal only.
"""

import json
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any


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


def one_line(text: str) -> str:
    """Return ``text`` with escapes for control characters, so that a message cannot move the reader's cursor."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def tell(text: str) -> None:
    """Print a line for whoever started the command, on stderr; stdout is for what was asked for."""
    print(f"elasticq: {text}", file=sys.stderr, flush=True)


@contextmanager
def bar(told: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with how much is done; on a terminal it draws a bar on stderr.

    total: None where it is not known.
    """
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(told, total=total)
        yield lambda done: progress.update(task, completed=done)


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
