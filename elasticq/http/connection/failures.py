"""Log lines of unexpected exceptions: type and place, but not their text, because that may quote a request.

A client that can cause an exception can cause it often. So each place is logged at most once a minute,
with the number of exceptions that were not logged since the last line.
"""

from traceback import extract_tb, format_list
from types import TracebackType
from typing import Final

from elasticq.runtime.clock import Clock, boot_ms

QUIET_MS: Final = 60_000
PLACES_MAX: Final = 64


class Failures:
    """The places that one logger has logged, and when."""

    def __init__(self, clock: Clock = boot_ms) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, str, int], tuple[int, int]] = {}  # when logged, and how often not logged since

    def line(self, event: str, failure: BaseException | None, trace: TracebackType | None) -> str:
        """Return the line for the log. It is empty if the same place was logged within the last minute."""
        name = "" if failure is None else type(failure).__name__
        frames = extract_tb(trace)
        place = (name, frames[-1].filename, frames[-1].lineno or 0) if frames else (name, "", 0)
        now_ms, unlogged = self._clock(), 0
        if place in self._logged:
            logged_ms, unlogged = self._logged[place]
            if now_ms - logged_ms < QUIET_MS:
                self._logged[place] = logged_ms, unlogged + 1
                return ""
        elif len(self._logged) >= PLACES_MAX:
            self._logged.clear()
        self._logged[place] = now_ms, 0
        more = f" ({unlogged} more since the last line about this)" if unlogged else ""
        return f"{event} {name}{more}\n{''.join(format_list(frames))}"
