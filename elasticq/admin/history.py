"""The history of queues over a day, for charts: how many messages they held, and how many moved.

Each member keeps it in memory, from its own start on. A sample is taken every PERIOD_S seconds and stored in three
resolutions: 2 s for ten minutes, 20 s for an hour, 5 min for a day. A point of a depth is the highest sample of its
period. A queue gets a line of its own when something in it changes. If all lines are in use, it replaces the line that
did not change for longest.
"""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from elasticq.runtime.meter import Messages

PERIOD_S: Final = 2
TIERS: Final = ((1, 300), (10, 180), (150, 288))
"""Samples of a point, and points: ten minutes, an hour and a day."""
WINDOWS_S: Final = {60: 0, 600: 0, 3_600: 1, 86_400: 2}
"""The windows of charts in seconds, each with its tier."""
RATES_S: Final = 60
"""The rates of lists are means over this time."""
DEPTHS: Final = ("visible", "in_flight", "delayed")
MOVES: Final = ("sent", "received", "deleted")
LINE_BYTES: Final = 4 * len(DEPTHS + MOVES) * sum(points for _, points in TIERS)
LINES_MAX: Final = 500
"""The number of queues with a history: LINE_BYTES (18,432) each, 9.2 MB together."""

ALL: Final = ("", "")
"""The key of all queues together."""
Key = tuple[str, str]
"""Owner and name of a queue."""
Depth = tuple[int, int, int]
"""Messages visible, in flight and delayed."""
Rate = tuple[float, float, float]
"""Messages sent, received and deleted per second."""
Counts = tuple[int, int, int]
"""Messages sent, received and deleted."""
_NONE: Final = (0, 0, 0)
_KEPT: Final = RATES_S // PERIOD_S


class Series(Struct, gc=False):
    """The points of a chart, the oldest first. Moves are messages a second; a depth is the highest of its period.

    time_s: when the period of each point began, in seconds since the epoch; period_s: its length; now_s: the end of
    the newest one so far.
    """

    now_s: int
    period_s: int
    time_s: list[int] = []
    visible: list[float] = []
    in_flight: list[float] = []
    delayed: list[float] = []
    sent: list[float] = []
    received: list[float] = []
    deleted: list[float] = []


class _Line:
    """The samples of one queue.

    began: the period of its first sample; changed: the last period in which a value differed from the one before;
    moved: the last one in which a message moved.
    """

    def __init__(self, now: int) -> None:
        self.began = self.changed = now
        self.moved = now - _KEPT
        self.depth: Depth = _NONE
        self.tiers = [[array("f", bytes(4 * points)) for _ in range(len(DEPTHS) + len(MOVES))] for _, points in TIERS]

    def add(self, now: int, depth: Depth, moved: Counts) -> None:
        """Store the sample of period ``now``, which begins new points where it is the first of theirs."""
        if depth != self.depth or any(moved):
            self.changed, self.depth = now, depth
        if any(moved):
            self.moved = now
        for (samples, points), lists in zip(TIERS, self.tiers, strict=True):
            at, is_first = now // samples % points, now % samples == 0 or now == self.began
            for values, value in zip(lists, depth, strict=False):
                values[at] = value if is_first else max(values[at], value)
            for values, value in zip(lists[len(DEPTHS) :], moved, strict=True):
                values[at] = value if is_first else values[at] + value


class History:
    """The lines of all queues. ``update`` is called once in each period.

    first: the number of the first period since the epoch, so the points of all members begin at the same times.
    """

    def __init__(self, first: int) -> None:
        self._now = first - 1
        self._counts: dict[Key, Counts] | None = None
        self._lines: dict[Key, _Line] = {}
        self._whole = _Line(first)

    def update(
        self, depths: Mapping[Key, Depth], counts: Mapping[Key, Messages], exists: Callable[[Key], bool]
    ) -> None:
        """Store a sample: the depths of the queues with messages, and the totals of messages that moved so far."""
        self._now = now = self._now + 1
        totals = {key: (each.sent, each.received, each.deleted) for key, each in counts.items()}
        before, self._counts = totals if self._counts is None else self._counts, totals
        moved = {key: _increase(new, before.get(key, _NONE)) for key, new in totals.items() if new != before.get(key)}
        for key in [key for key in self._lines if key != ALL and key not in depths and not exists(key)]:
            del self._lines[key]
        for key in self._beginning(depths, moved, exists):
            self._lines[key] = _Line(now)
        for key, line in self._lines.items():
            line.add(now, depths.get(key, _NONE), moved.get(key, _NONE))
        self._whole.add(now, _sum(depths.values()), _sum(moved.values()))

    def _beginning(
        self, depths: Mapping[Key, Depth], moved: Mapping[Key, Counts], exists: Callable[[Key], bool]
    ) -> list[Key]:
        """Return the queues that get a line, while lines are free. Those that move may replace lines that are still."""
        movers = [key for key, each in moved.items() if key not in self._lines and any(each) and exists(key)]
        full = [key for key in depths if key not in self._lines and key not in moved]
        free = LINES_MAX - len(self._lines)
        if len(movers) > free:
            still = [key for key, line in self._lines.items() if line.changed < self._now - 1]
            still.sort(key=lambda key: self._lines[key].changed)
            for key in still[: len(movers) - free]:
                del self._lines[key]
        return (movers + full)[: LINES_MAX - len(self._lines)]

    def _line(self, key: Key) -> _Line | None:
        return self._whole if key == ALL else self._lines.get(key)

    def has(self, key: Key) -> bool:
        """Return whether the queue has a line. One that never held a message has none."""
        return key in self._lines

    def rates(self) -> dict[Key, Rate]:
        """Return the rates of the last RATES_S seconds of each queue whose messages moved."""
        moving = [key for key, line in self._lines.items() if line.moved + _KEPT > self._now]
        return {key: self.per_second(key, RATES_S) for key in moving}

    def per_second(self, key: Key, window_s: int) -> Rate:
        """Return messages sent, received and deleted per second, over the last ``window_s`` seconds, at most 600."""
        line, (_, points) = self._line(key), TIERS[0]
        if line is None or self._now < line.began:
            return 0.0, 0.0, 0.0
        shown = range(max(line.began, self._now + 1 - min(points, window_s // PERIOD_S)), self._now + 1)
        over_s = len(shown) * PERIOD_S
        sent, received, deleted = line.tiers[0][len(DEPTHS) :]
        return (
            sum(sent[at % points] for at in shown) / over_s,
            sum(received[at % points] for at in shown) / over_s,
            sum(deleted[at % points] for at in shown) / over_s,
        )

    def series(self, key: Key, window_s: int) -> Series:
        """Return the points of one of the windows (WINDOWS_S). A queue without a line has no points."""
        samples, points = TIERS[WINDOWS_S[window_s]]
        period_s, line = samples * PERIOD_S, self._line(key)
        if line is None:
            return Series((self._now + 1) * PERIOD_S, period_s)
        newest, oldest = self._now // samples, line.began // samples
        shown = range(max(oldest, newest + 1 - min(points, window_s // period_s)), newest + 1)
        ends = [min(self._now + 1, (at + 1) * samples) for at in shown]
        lengths_s = [PERIOD_S * (end - max(line.began, at * samples)) for at, end in zip(shown, ends, strict=True)]
        lists = [[values[at % points] for at in shown] for values in line.tiers[WINDOWS_S[window_s]]]
        moves = [[each / of_s for each, of_s in zip(one, lengths_s, strict=True)] for one in lists[len(DEPTHS) :]]
        times_s = [at * period_s for at in shown]
        return Series((self._now + 1) * PERIOD_S, period_s, times_s, *lists[: len(DEPTHS)], *moves)


def added(members: Sequence[Series]) -> Series:
    """Return the series of a cluster: the rates of all members together, the depths that the first member has.

    Depths from before the first member's start are those of another member.
    """
    found, at = Series(members[0].now_s, members[0].period_s), dict[int, int]()
    for number, time_s in enumerate(sorted({each for one in members for each in one.time_s})):
        at[time_s] = number
        found.time_s.append(time_s)
    for name in DEPTHS + MOVES:
        values = [0.0] * len(at)
        for one in reversed(members):
            for time_s, value in zip(one.time_s, getattr(one, name), strict=True):
                values[at[time_s]] = value + (values[at[time_s]] if name in MOVES else 0)
        setattr(found, name, values)
    return found


def _increase(new: Counts, old: Counts) -> Counts:
    """Return the increase of each count, at least 0: the counts of a queue that was created again restart at 0."""
    return max(0, new[0] - old[0]), max(0, new[1] - old[1]), max(0, new[2] - old[2])


def _sum(triples: Iterable[tuple[int, int, int]]) -> tuple[int, int, int]:
    first, second, third = zip(_NONE, *triples, strict=True)
    return sum(first), sum(second), sum(third)
