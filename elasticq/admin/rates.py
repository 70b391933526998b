"""Remembers how many messages went in and out, for the page's charts of the last minute, ten minutes and hour.

The counts are those of the calls that this member answered (runtime/meter.py). They are looked at every PERIOD_S
seconds; a queue gets a line of its own with its first message, and the queue that was still longest gives its place.
"""

from array import array
from collections.abc import Mapping
from typing import Final

from elasticq.runtime.meter import Messages

PERIOD_S: Final = 2
SLOTS: Final = 3_600 // PERIOD_S
LINES_MAX: Final = 200
"""Queues whose rates are remembered: 22 KB each."""

ALL: Final = ("", "")
"""The key of all queues together."""
Key = tuple[str, str]
"""Owner and name of a queue."""


class Line:
    """One queue's messages in each of the last SLOTS periods, round and round."""

    __slots__ = ("deleted", "last", "moved_at", "received", "sent")

    def __init__(self, now: int) -> None:
        self.sent = array("f", bytes(4 * SLOTS))
        self.received = array("f", bytes(4 * SLOTS))
        self.deleted = array("f", bytes(4 * SLOTS))
        self.last = (0, 0, 0)
        self.moved_at = now

    def add(self, now: int, counts: tuple[int, int, int]) -> None:
        """Note the counts at the end of period ``now``; those of a queue that was made anew begin at 0 again."""
        last, self.last = self.last, counts
        sent, received, deleted = (max(0, new - old) for new, old in zip(counts, last, strict=True))
        if sent or received or deleted:
            self.moved_at = now
        slot = now % SLOTS
        self.sent[slot], self.received[slot], self.deleted[slot] = sent, received, deleted


class Rates:
    """``look`` is called once each period."""

    __slots__ = ("_began", "_lines", "_period")

    def __init__(self) -> None:
        self._period = 0
        self._began = False
        self._lines: dict[Key, Line] = {ALL: Line(0)}

    def look(self, counts: Mapping[Key, Messages]) -> None:
        """Note what moved since the last look. The first one only begins to count."""
        self._period = now = self._period + 1
        whole = [0, 0, 0]
        for key, messages in counts.items():
            told = (messages.sent, messages.received, messages.deleted)
            for at, count in enumerate(told):
                whole[at] += count
            if key == ALL:  # the meter counts queues together there that are beyond its bound
                continue
            line = self._lines.get(key)
            if line is None and any(told):
                line = self._begin(key, now)
                if not self._began:
                    line.last = told
            if line is not None:
                line.add(now, told)
        for key in [key for key in self._lines if key != ALL and key not in counts]:
            del self._lines[key]
        total = (whole[0], whole[1], whole[2])
        if not self._began:
            self._lines[ALL].last = total
            self._began = True
        self._lines[ALL].add(now, total)

    def _begin(self, key: Key, now: int) -> Line:
        if len(self._lines) > LINES_MAX:
            stillest = min((one for one in self._lines if one != ALL), key=lambda one: self._lines[one].moved_at)
            del self._lines[stillest]
        line = self._lines[key] = Line(now)
        return line

    def per_second(self, key: Key, window_s: int) -> tuple[float, float, float]:
        """Return messages sent, received and deleted a second, over the last ``window_s`` seconds."""
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
        """Return the rates a second of each period of the last ``window_s`` seconds, the oldest first.

        ``age_s`` tells how long ago each period ended.
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
