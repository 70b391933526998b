"""Cluster time: carried in entries and heartbeats, never ahead of real time, never falling on a master.

A master's offset to its own boot-time clock is fixed when it wins. A
follower's link is the newest heartbeat against its boot-time clock. Votes
carry both, and the term of the master that the link is to: a new master takes
the highest value that its quorum has of the newest master. A value of an older
one may be ahead of it by what heartbeats took on their way, and deadlines that
the newest one set would come too early by as much. Only where nobody is linked
(everybody restarted) the lower median of the voters' wall clocks counts.
The reasons, and what other rules led to, are in docs/adr/0018.

All of this is about real time. What tests advanced the clock by (docs/adr/0014)
is a row of the state like any other, so that it survives what the state
survives; it is added here, last, and nothing that members agree on real time
by ever sees it: not heartbeats, not votes, not timers of elections.
"""

from collections.abc import Iterable

ROUNDING_MS = 1
"""Clocks are read in whole milliseconds, so a clock that is set from another could be ahead of it by nearly 1 ms."""


class ClusterClock:
    """All arguments and results are ms; ``now_ms`` is the member's boot-time clock.

    ahead_ms: how far cluster time is ahead of real time, as the member's state says.
    """

    __slots__ = ("_linked_term", "_offset_ms", "_wall_offset_ms", "ahead_ms", "contact_ms")

    def __init__(self) -> None:
        self._linked_term = 0
        self._offset_ms = 0
        self._wall_offset_ms = 0
        self.ahead_ms = 0
        self.contact_ms: int | None = None  # real time when a master was last heard, or this member last was one

    @property
    def is_linked(self) -> bool:
        """True if a master was heard since the start, so that cluster time is known here."""
        return self._linked_term > 0

    def start(self, now_ms: int, wall_ms: int) -> None:
        self._wall_offset_ms = wall_ms - now_ms

    def reading(self, now_ms: int) -> tuple[int, int]:
        """What other members are told: (term of the link, real time), or (0, wall clock) without a link."""
        return self._linked_term, now_ms + (self._offset_ms if self._linked_term else self._wall_offset_ms)

    def time_ms(self, now_ms: int) -> int:
        """Cluster time when the boot-time clock reads ``now_ms``."""
        return now_ms + (self._offset_ms if self._linked_term else self._wall_offset_ms) + self.ahead_ms

    def boot_ms(self, time_ms: int) -> int:
        """The boot-time reading at which cluster time is ``time_ms``; it is past if an advance went beyond that."""
        return time_ms - (self._offset_ms if self._linked_term else self._wall_offset_ms) - self.ahead_ms

    def link(self, term: int, real_ms: int, now_ms: int) -> None:
        """Link the clock to the master of ``term``, whose heartbeat came now and gave the real time ``real_ms``."""
        self._offset_ms = real_ms - ROUNDING_MS - now_ms
        self._linked_term = term
        self.contact_ms = real_ms

    def win(self, term: int, votes: Iterable[tuple[int, int]], last_entry_ms: int, now_ms: int) -> None:
        """Fix the offset of the master of ``term`` from the clocks of those who voted for it (itself included).

        last_entry_ms: cluster time of the log's last entry; ``ahead_ms`` is what the log up to it says.
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
        """Note that this member is master now, which counts as contact with the master."""
        self.contact_ms = self.time_ms(now_ms) - self.ahead_ms
