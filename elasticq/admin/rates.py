"""The history of messages sent, received and deleted, for charts of the last minute, ten minutes and hour.

The counts are those of the calls that this member answered (runtime/meter.py), read every PERIOD_S seconds. A queue
gets a line of its own with its first message. If all lines are in use, it replaces the queue that was idle longest.
"""

from array import array
from collections.abc import Mapping
from typing import Final

from elasticq.runtime.meter import Messages

PERIOD_S: Final = 2
WINDOW_S: Final = 60
"""The window of the rates in lists."""
SLOTS: Final = 3_600 // PERIOD_S
LINES_MAX: Final = 200
"""The number of queues whose rates are remembered: 22 KB each."""

ALL: Final = ("", "")
"""The key of all queues together."""
Key = tuple[str, str]
"""Owner and name of a queue."""


Counts = tuple[int, int, int]
"""Messages sent, received and deleted."""
_NONE: Final = (0, 0, 0)


class Line:
    """The messages of one queue in each of the last SLOTS periods, as ring buffers.

    moved_at: the last period with a message.
    """

    def __init__(self, now: int) -> None:
        self.sent = array("f", bytes(4 * SLOTS))
        self.received = array("f", bytes(4 * SLOTS))
        self.deleted = array("f", bytes(4 * SLOTS))
        self.moved_at = now

    def add(self, now: int, moved: Counts) -> None:
        """Store the counts of period ``now``."""
        if any(moved):
            self.moved_at = now
        slot = now % SLOTS
        self.sent[slot], self.received[slot], self.deleted[slot] = moved


class Rates:
    """The lines of all queues. ``update`` is called once in each period."""

    def __init__(self) -> None:
        self._period = 0
        self._counts: dict[Key, Counts] | None = None
        self._lines: dict[Key, Line] = {ALL: Line(0)}

    def update(self, counts: Mapping[Key, Messages]) -> None:
        """Store the messages since the last call, given the total ``counts``. The first call stores only zeros."""
        self._period = now = self._period + 1
        before = self._counts
        self._counts = totals = {key: (each.sent, each.received, each.deleted) for key, each in counts.items()}
        if before is None:
            before = totals
        moved = {key: _moved(new, before.get(key, _NONE)) for key, new in totals.items() if new != before.get(key)}
        sent, received, deleted = zip(_NONE, *moved.values(), strict=True)
        moved[ALL] = sum(sent), sum(received), sum(deleted)  # the meter counts queues beyond its bound together
        for key in [key for key in self._lines if key != ALL and key not in counts]:
            del self._lines[key]
        for key, line in self._lines.items():
            line.add(now, moved.get(key, _NONE))
        self._begin([key for key, each in moved.items() if key not in self._lines and any(each)], now, moved)

    def _begin(self, keys: list[Key], now: int, moved: Mapping[Key, Counts]) -> None:
        """Create lines for these queues, while lines are unused or belong to idle queues."""
        still = [key for key, line in self._lines.items() if key != ALL and line.moved_at < now] if keys else []
        still.sort(key=lambda key: self._lines[key].moved_at, reverse=True)
        for key in keys:
            if len(self._lines) > LINES_MAX:
                if not still:
                    return
                del self._lines[still.pop()]
            line = self._lines[key] = Line(now)
            line.add(now, moved[key])

    def per_second(self, key: Key, window_s: int) -> tuple[float, float, float]:
        """Return messages sent, received and deleted per second, over the last ``window_s`` seconds."""
        line = self._lines.get(key)
        if line is None:
            return 0.0, 0.0, 0.0
        slots = self._slots(window_s)
        over_s = max(1, len(slots)) * PERIOD_S
        return (
            sum(line.sent[slot] for slot in slots) / over_s,
            sum(line.received[slot] for slot in slots) / over_s,
            sum(line.deleted[slot] for slot in slots) / over_s,
        )

    def series(self, key: Key, window_s: int) -> dict[str, list[float]]:
        """Return the rates per second in each period of the last ``window_s`` seconds, the oldest first.

        ``age_s`` has the seconds since the end of each period.
        """
        slots = self._slots(window_s)
        line = self._lines.get(key) or Line(0)
        return {
            "age_s": [float(PERIOD_S * (len(slots) - 1 - at)) for at in range(len(slots))],
            "sent": [line.sent[slot] / PERIOD_S for slot in slots],
            "received": [line.received[slot] / PERIOD_S for slot in slots],
            "deleted": [line.deleted[slot] / PERIOD_S for slot in slots],
        }

    def _slots(self, window_s: int) -> list[int]:
        count = min(SLOTS, self._period, max(1, window_s // PERIOD_S))
        return [(self._period - back) % SLOTS for back in range(count - 1, -1, -1)]


def _moved(new: Counts, old: Counts) -> Counts:
    """Return the increase of each count, at least 0: the counts of a queue that was created again restart at 0."""
    return max(0, new[0] - old[0]), max(0, new[1] - old[1]), max(0, new[2] - old[2])
