"""How commands talk: tables and bars on a terminal, plain lines elsewhere; and how Ctrl-C ends them between two steps.

rich is imported on a terminal only.
"""

import json
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

EXIT_INTERRUPTED: Final = 130
"""What shells expect of a program that Ctrl-C ended."""


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """On stdout; columns by spaces where it is no terminal."""
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
    """Nothing of a message moves the cursor of whoever looks at it."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def tell(text: str) -> None:
    """To whoever started the command; stdout is for what was asked for."""
    print(f"elasticq: {text}", file=sys.stderr, flush=True)


@contextmanager
def bar(told: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Call it with how much is done; on a terminal it is drawn on stderr. total: None where nobody knows."""
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
    """While entered, Ctrl-C and SIGTERM set ``asked``: the command ends after its step; a second one ends it now."""

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
