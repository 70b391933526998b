"""The output of commands: tables and progress bars on a terminal, plain lines elsewhere. Also the handling of Ctrl-C.

rich is imported only for a progress bar on a terminal.
"""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

REPORT_EVERY_S: Final = 5.0
WAKE_S: Final = 0.1
GAP: Final = "  "
BOLD: Final = "\x1b[1m"
PLAIN: Final = "\x1b[0m"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], whole: Sequence[str] = ()) -> None:
    """Print a table on stdout. On a terminal, texts are shortened until the table fits its width.

    whole: the heads of columns that are shortened last, such as ids that the operator needs for the next command.
    """
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = table_lines(heads, rows, width, whole)
    if width is not None and "NO_COLOR" not in os.environ:
        lines[0] = f"{BOLD}{lines[0]}{PLAIN}"
    for line in lines:
        print(line)


def table_lines(
    heads: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None, whole: Sequence[str] = ()
) -> list[str]:
    """Return the lines of a table, the heads first. Numbers are aligned to the right. Empty columns are left out.

    width: the longest possible line in characters, None without a bound. To fit, the widest columns are shortened, but
    those of ``whole`` only if that is not enough. Numbers and heads are never shortened, so a line may stay longer.
    """
    lines = [tuple(heads), *(tuple(map(one_line, row)) for row in rows)]
    columns = [column for column in zip(*lines, strict=True) if not rows or any(column[1:])]
    is_number = [bool(rows) and all(map(_is_number, column[1:])) for column in columns]
    widths = [max(map(len, column)) for column in columns]
    if width is not None:
        spare = [0 if is_number[at] else max(0, widths[at] - len(column[0])) for at, column in enumerate(columns)]
        _shrink(widths, [0 if column[0] in whole else spare[at] for at, column in enumerate(columns)], width)
        _shrink(widths, [min(spare[at], widths[at] - len(column[0])) for at, column in enumerate(columns)], width)
    texts = [
        [_cell(text, wide, to_the_right=right) for text in column]
        for column, wide, right in zip(columns, widths, is_number, strict=True)
    ]
    return [GAP.join(line).rstrip() for line in zip(*texts, strict=True)]


def _cell(text: str, width: int, *, to_the_right: bool) -> str:
    short = shorten(text, width)
    return short.rjust(width) if to_the_right else short.ljust(width)


def _is_number(text: str) -> bool:
    return not text or text.removeprefix("-").replace(".", "", 1).isdigit()


def _shrink(widths: list[int], spare: list[int], width: int) -> None:
    """Reduce the widest columns in place until a line has at most ``width`` characters.

    spare: by how much each column can be reduced.
    """
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while excess > 0 and any(spare):
        widest = max((at for at, left in enumerate(spare) if left), key=lambda at: widths[at])
        widths[widest] -= 1
        spare[widest] -= 1
        excess -= 1


def shorten(text: str, width: int) -> str:
    """Return a text of at most ``width`` characters. Its middle is left out, because names often differ at the end."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def count(number: int, thing: str) -> str:
    """Return a number with its thing, in the plural unless it is one: "1 message", "0 queues"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


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

    def wait(self, seconds: float) -> None:
        """Sleep. Return at most WAKE_S after a signal."""
        end_s = time.monotonic() + seconds
        while not self.asked and (left_s := end_s - time.monotonic()) > 0:
            time.sleep(min(left_s, WAKE_S))  # Python goes on with a sleep after a signal

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
