"""The command ``elasticq top``: members, queues and what needs attention in a cluster, live in a terminal."""

import argparse
import os
import select
import shutil
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from elasticq.cli.admin_client import AdminClient, Failure
from elasticq.cli.admin_options import add_admin_options, admin_client, run_asking
from elasticq.cli.ask import Unreachable
from elasticq.cli.exits import EXIT_FAILURE
from elasticq.cli.show import BOLD, PLAIN, Interrupt, count, one_line, table_lines

LOOK_S: Final = 0.1
"""How often a key and the size of the terminal are read."""
SORTS: Final[dict[str, Callable[[dict[str, Any]], float]]] = {
    "depth": lambda queue: queue["visible"] + queue["in_flight"] + queue["delayed"],
    "rate": lambda queue: queue["sent_per_s"] + queue["received_per_s"],
    "age": lambda queue: queue["oldest_age_ms"] or 0,
}
"""The orders of the queues: largest first, then by name."""
KEYS: Final = {"d": "depth", "r": "rate", "a": "age"}
_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_LINE_END: Final = "\x1b[K"
_REST: Final = "\x1b[J"
FINDINGS_SHOWN_MAX: Final = 5
_MEMBERS: Final = ("MEMBER", "ROLE", "VOTER", "VERSION", "UPTIME", "DISK FREE", "LAG", "SENT/S", "RECV/S")
_QUEUES: Final = ("QUEUE", "VISIBLE", "IN FLIGHT", "DELAYED", "OLDEST", "SENT/S", "RECV/S", "DEL/S")
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def add_top(parser: argparse.ArgumentParser) -> None:
    add_admin_options(parser)
    parser.add_argument("--sort", choices=tuple(SORTS), default="depth", help="order of the queues (depth)")
    parser.add_argument("--interval", type=float, default=2.0, metavar="S", help="ask every S seconds (2)")
    parser.add_argument("--once", action="store_true", help="print one frame with all queues, and end")
    parser.set_defaults(run=lambda options: run_asking(lambda: _top(options), options))


class Seen(NamedTuple):
    """The answers of one look. overview: the state of the cluster; queues: the list of the queues."""

    overview: dict[str, Any]
    queues: list[dict[str, Any]]


def _look(client: AdminClient) -> Seen:
    return Seen(client.overview(), client.queues())


def _top(options: argparse.Namespace) -> int:
    client = admin_client(options)
    if options.once or not sys.stdout.isatty():
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print("\n".join(frame(_look(client), options.sort, width)))
        return 0
    if not sys.stdin.isatty():
        print("elasticq: top reads keys from a terminal: use --once", file=sys.stderr)
        return EXIT_FAILURE
    feed = _Feed(client, _look(client), max(LOOK_S, options.interval))
    feed.start()
    with _screen(), Interrupt() as interrupt:
        _draw_until_the_end(feed, options.sort, interrupt)
    return 0


def _draw_until_the_end(feed: "_Feed", sort: str, interrupt: Interrupt) -> None:
    drawn = None
    while not interrupt.asked:
        size = shutil.get_terminal_size()
        now = (feed.seen, feed.trouble, sort, size)
        if now != drawn:
            lines = frame(feed.seen, sort, size.columns, size.lines, feed.trouble)
            _write(_HOME + "\n".join(f"{line}{_LINE_END}" for line in lines) + _REST)
            drawn = now
        key = _key()
        if key == "q":
            return
        sort = KEYS.get(key, sort)


class _Feed(threading.Thread):
    """The latest answers, from a thread, so that a silent member does not block the keys. It ends with the process."""

    def __init__(self, client: AdminClient, seen: Seen, interval_s: float) -> None:
        super().__init__(name="feed", daemon=True)
        self._client = client
        self._interval_s = interval_s
        self.seen = seen
        self.trouble = ""

    def run(self) -> None:
        while True:
            time.sleep(self._interval_s)
            try:
                self.seen, self.trouble = _look(self._client), ""
            except (Unreachable, Failure) as error:
                self.trouble = str(error)


@contextmanager
def _screen() -> Iterator[None]:
    """Use the terminal's second screen, without a cursor, and pass each key on at once."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        _write(_ENTER)
        yield
    finally:
        _write(_LEAVE)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _key() -> str:
    """Return a key that was pressed within LOOK_S, empty without one."""
    descriptor = sys.stdin.fileno()
    ready, _, _ = select.select([descriptor], [], [], LOOK_S)
    return os.read(descriptor, 1).decode("ascii", "ignore") or "q" if ready else ""


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def frame(seen: Seen, sort: str, width: int | None = None, height: int | None = None, trouble: str = "") -> list[str]:
    """Return the lines of a frame. width, height: of the terminal, None for a frame that is not cut."""
    overview, queues = seen.overview, sorted(seen.queues, key=_name)
    queues.sort(key=SORTS[sort], reverse=True)
    state = f"master {overview['master'] or '(none)'}  term {overview['term']}  quorum {overview['quorum']}"
    head = [f"{overview['asked']}: {state}"]
    if trouble:
        head.append(f"OLD: {trouble}")
    members = table_lines(_MEMBERS, [_member(each) for each in overview["members"]], width)
    top = [*head, *_findings(overview, is_whole=height is None), "", *members, "", _sums(overview, len(queues), sort)]
    if height is None:
        shown, foot = queues, []
    else:
        shown = queues[: max(0, height - len(top) - 3)]  # the heads, the foot, and one line that stays free
        keys = "  ".join(f"{key} {name}" for key, name in KEYS.items())
        foot = [f"{count(len(queues) - len(shown), 'more queue')}  q quit  sort: {keys}"]
    rows = table_lines(_QUEUES, [_queue(each) for each in shown], width, _QUEUES[4:])
    body = [*top, *rows] if height is None else [*top, *rows][: max(0, height - 1 - len(foot))]
    lines = [one_line(line)[:width] for line in [*body, *foot]]
    if height is None:
        return lines
    bold = {members[0][:width], rows[0][:width]}
    return [f"{BOLD}{line}{PLAIN}" if line in bold else line for line in lines]


def _name(queue: dict[str, Any]) -> tuple[str, str, str]:
    return queue["name"], queue["account"], queue["region"]


def _findings(overview: dict[str, Any], *, is_whole: bool) -> list[str]:
    """Return a line for each finding, at most FINDINGS_SHOWN_MAX. is_whole: all, with their causes and commands."""
    found, lines = overview["findings"], list[str]()
    for each in found if is_whole else found[:FINDINGS_SHOWN_MAX]:
        since = duration(max(0, overview["time_ms"] - each["since_ms"]))
        lines.append(f"{each['severity'].upper()} for {since}: {each['what']}")
        if is_whole:
            lines += [f"  {text}" for text in (each["cause"], each.get("command", "")) if text]
    if len(found) > FINDINGS_SHOWN_MAX and not is_whole:
        lines.append(f"and {count(len(found) - FINDINGS_SHOWN_MAX, 'more finding')}: --once shows all")
    return lines or ["nothing needs attention"]


def _member(member: dict[str, Any]) -> list[str]:
    free = member["disk_free_bytes"]
    return [
        member["name"],
        member["role"] if member["answers"] else "NO ANSWER",
        "yes" if member["voter"] else "no",
        member["version"] or "-",
        "-" if member["uptime_ms"] is None else duration(member["uptime_ms"]),
        "-" if free is None else f"{free / 1e9:.1f} GB",
        "-" if member["lag"] is None else str(member["lag"]),
        *("-" if member[name] is None else f"{member[name]:.1f}" for name in ("sent_per_s", "received_per_s")),
    ]


def _sums(overview: dict[str, Any], queues: int, sort: str) -> str:
    totals = overview["totals"]
    counts = [f"{totals[name]} {name.replace('_', ' ')}" for name in ("visible", "in_flight", "delayed")]
    rates = [f"{overview[f'{name}_per_s']:.1f} {name}/s" for name in ("sent", "received", "deleted")]
    return f"{count(queues, 'queue')} by {sort}: {', '.join([*counts, *rates])}"


def _queue(queue: dict[str, Any]) -> list[str]:
    counts = [str(queue[name]) for name in ("visible", "in_flight", "delayed")]
    rates = [f"{queue[f'{name}_per_s']:.1f}" for name in ("sent", "received", "deleted")]
    age_ms = queue["oldest_age_ms"]
    return [queue["name"], *counts, "-" if age_ms is None else duration(age_ms), *rates]


def duration(ms: float) -> str:
    """Return a duration with its two largest units, such as 2d 3h."""
    left_s, parts = int(ms // 1_000), list[str]()
    for unit_s, name in _UNITS:
        if left_s >= unit_s or (parts and len(parts) < 2) or (unit_s == 1 and not parts):
            parts.append(f"{left_s // unit_s}{name}")
            left_s %= unit_s
        if len(parts) == 2:
            break
    return " ".join(parts)
