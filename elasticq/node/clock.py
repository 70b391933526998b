"""Cluster time: carried in entries and heartbeats, never ahead of real time, never falling on a master.

A master's offset to its own boot-time clock is fixed when it wins. A
follower's link is the newest heartbeat against its boot-time clock. Votes
carry both: a new master takes the highest linked value of its quorum; only
where nobody is linked (everybody restarted) the lower median of the voters'
wall clocks. design.md §4; the bugs that other rules cause: testing.md §3.

All of this is about real time. What tests advanced the clock by (docs/adr/0014)
is a row of the state like any other, so that it survives what the state
survives; it is added here, last, and nothing that members agree on real time
by ever sees it: not heartbeats, not votes, not timers of elections.
"""

from collections.abc import Iterable


class ClusterClock:
    """All arguments and results are ms; ``now_ms`` is the member's boot-time clock.

    ahead_ms: how far cluster time is ahead of real time, as the member's state says.
    """

    __slots__ = ("_linked", "_offset_ms", "_wall_offset_ms", "ahead_ms", "contact_ms")

    def __init__(self) -> None:
        self._linked = False
        self._offset_ms = 0
        self._wall_offset_ms = 0
        self.ahead_ms = 0
        self.contact_ms: int | None = None  # real time when a master was last heard (or was oneself)

    def start(self, now_ms: int, wall_ms: int) -> None:
        self._wall_offset_ms = wall_ms - now_ms

    def reading(self, now_ms: int) -> tuple[bool, int]:
        """(linked, real time), or (not linked, wall clock): what other members are told."""
        if self._linked:
            return True, now_ms + self._offset_ms
        return False, now_ms + self._wall_offset_ms

    def time_ms(self, now_ms: int) -> int:
        """Cluster time."""
        return now_ms + (self._offset_ms if self._linked else self._wall_offset_ms) + self.ahead_ms

    def boot_ms(self, time_ms: int) -> int:
        """The boot-time reading at which cluster time will be ``time_ms``; past if the clock is advanced behind it."""
        return time_ms - (self._offset_ms if self._linked else self._wall_offset_ms) - self.ahead_ms

    def link(self, real_ms: int, now_ms: int) -> None:
        """A heartbeat of the present master said ``real_ms``."""
        self._offset_ms = real_ms - now_ms
        self._linked = True
        self.contact_ms = real_ms

    def win(self, votes: Iterable[tuple[bool, int]], last_entry_ms: int, now_ms: int) -> None:
        """Fix the offset of a new master from the clocks of those who voted for it (itself included).

        last_entry_ms: cluster time of the log's last entry; ``ahead_ms`` is what the log up to it says.
        """
        readings = list(votes)
        linked = [time_ms for is_linked, time_ms in readings if is_linked]
        if linked:
            chosen_ms = max(linked)
        else:
            walls = sorted(time_ms for _, time_ms in readings)
            chosen_ms = walls[(len(walls) - 1) // 2]
        self._offset_ms = max(chosen_ms, last_entry_ms - self.ahead_ms) - now_ms
        self._linked = True

    def keep(self, now_ms: int) -> None:
        """This member is master: contact with the master is now."""
        self.contact_ms = self.time_ms(now_ms) - self.ahead_ms
