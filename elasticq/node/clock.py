"""Cluster time: entries and heartbeats carry it. It is never ahead of real time, and on a master it never falls.

The boot clock of a machine counts the time since its start. A new master fixes the offset of cluster time to its boot
clock when it wins the election. A follower links its boot clock to the newest heartbeat.

Votes carry the voter's time and the term of the master to which its clock is linked. A new master takes the highest
time among the votes that are linked to the newest master. Times linked to an older master may be ahead by the delay of
heartbeats, and then deadlines would come too early. If no voter is linked, because all have restarted, the lower median
of their wall clocks counts.
The reasons, and the results of other rules, are in docs/adr/0018.

All of this is about real time. Tests can advance the clock (docs/adr/0014). That advance is a row of the state and is
added last. Heartbeats, votes and election timers never see it.
"""

from collections.abc import Iterable

ROUNDING_MS = 1
"""Clocks are read in whole ms, so a clock that is set from another one could be up to 1 ms ahead of it."""


class ClusterClock:
    """The clock of one member. All arguments and results are ms; ``now_ms`` is the member's boot clock.

    ahead_ms: how far cluster time is ahead of real time, from the member's state.
    """

    def __init__(self) -> None:
        self._linked_term = 0
        self._offset_ms = 0
        self._wall_offset_ms = 0
        self.ahead_ms = 0
        self.contact_ms: int | None = None  # real time when a master was last heard, or when this member last was one

    @property
    def is_linked(self) -> bool:
        """Return whether a master was heard since the start. Then cluster time is known here."""
        return self._linked_term > 0

    def start(self, now_ms: int, wall_ms: int) -> None:
        self._wall_offset_ms = wall_ms - now_ms

    def reading(self, now_ms: int) -> tuple[int, int]:
        """Return the clock reading sent to other members: (term of the link, real time), or (0, wall clock) without
        a link."""
        return self._linked_term, now_ms + (self._offset_ms if self._linked_term else self._wall_offset_ms)

    def time_ms(self, now_ms: int) -> int:
        """Return the cluster time at which the boot clock reads ``now_ms``."""
        return now_ms + (self._offset_ms if self._linked_term else self._wall_offset_ms) + self.ahead_ms

    def boot_ms(self, time_ms: int) -> int:
        """Return the reading of the boot clock at cluster time ``time_ms``. An advance may have put it into the
        past."""
        return time_ms - (self._offset_ms if self._linked_term else self._wall_offset_ms) - self.ahead_ms

    def link(self, term: int, real_ms: int, now_ms: int) -> None:
        """Link the clock to the master of ``term``, whose heartbeat arrived now with the real time ``real_ms``."""
        self._offset_ms = real_ms - ROUNDING_MS - now_ms
        self._linked_term = term
        self.contact_ms = real_ms

    def win(self, term: int, votes: Iterable[tuple[int, int]], last_entry_ms: int, now_ms: int) -> None:
        """Fix the offset of the master of ``term`` from the clock readings in its votes, its own included.

        last_entry_ms: cluster time of the log's last entry; ``ahead_ms`` already includes the log up to that entry.
        """
        readings = list(votes)
        newest_term, chosen_ms = max(readings)
        if newest_term:
            chosen_ms -= ROUNDING_MS
        else:
            walls = sorted(time_ms for _, time_ms in readings)
            chosen_ms = walls[(len(walls) - 1) // 2]
        self._offset_ms = max(chosen_ms, last_entry_ms - self.ahead_ms) - now_ms
        self._linked_term = term

    def keep(self, now_ms: int) -> None:
        """Note that this member is master now. That counts as contact with the master."""
        self.contact_ms = self.time_ms(now_ms) - self.ahead_ms


def earlier(one_ms: int | None, other_ms: int | None) -> int | None:
    """Return the earlier of two times; None is later than any time."""
    if one_ms is None or other_ms is None:
        return other_ms if one_ms is None else one_ms
    return min(one_ms, other_ms)
