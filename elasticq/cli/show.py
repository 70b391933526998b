"""The output of commands: tables and progress bars on a terminal, plain lines elsewhere. Also the handling of Ctrl-C.

rich is imported only on a terminal.
"""

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

REPORT_EVERY_S: Final = 5.0


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on stdout. If stdout is not a terminal, pad the columns with spaces."""
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
    """Print the result of a command: the value alone, or a JSON object with its name."""
    if as_json:
        json_lines([{name: value}])
    else:
        print(value)


def one_line(text: str) -> str:
    """Return ``text`` with escapes for control characters, so a message cannot move the reader's cursor."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def report(text: str) -> None:
    """Print a line for the user on stderr. Only the command's result goes to stdout."""
    print(f"elasticq: {text}", file=sys.stderr, flush=True)


@contextmanager
def bar(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows progress on stderr; its argument is the amount done so far.

    On a terminal it redraws one line. Elsewhere it prints a line every REPORT_EVERY_S, so a log shows that a long
    command makes progress. total: None if it is unknown.
    """
    if not sys.stderr.isatty():
        yield _Lines(title, total).show
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)


class _Lines:
    """Progress in plain lines. A command that ends within REPORT_EVERY_S prints none."""

    def __init__(self, title: str, total: int | None) -> None:
        self._title = title
        self._total = total
        self._next_s = time.monotonic() + REPORT_EVERY_S

    def show(self, done: int) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + REPORT_EVERY_S
        if self._total is None:
            report(f"{self._title}: {done} done")
        else:
            report(f"{self._title}: {done} of {self._total} done, {max(0, self._total - done)} left")


class Interrupt:
    """A context manager in which Ctrl-C and SIGTERM only set ``asked``. The command then ends after its current step.

    A second signal ends the command at once.
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
