"""The leader's lease: until when no other master can exist, so that this one may answer reads by itself.

Each heartbeat round has a number, which its answers echo. A voter that answered a round helps nobody else to become
master for ``broken_link_ms`` after it heard it, and for much longer where its link is whole; so the lease runs from the
sending of the newest round that a quorum answered, and is shorter than that silence. A hand-over waives the silence,
and with it the lease.

Source: Ongaro, "Consensus: bridging theory and practice" (2014), §6.4.1.
"""

from collections import deque

LEASE_SHARE = 0.8  # of broken_link_ms, counted from the sending of the round: clocks may drift apart by a fifth
ROUNDS_MAX = 1_024  # rounds that no quorum has answered yet; older ones are forgotten


class LeaderLease:
    """Times are boot-clock ms. ``round`` is the number of the newest round; it never falls while the member lives."""

    __slots__ = ("_duration_ms", "_none_before_ms", "_sent_ms", "round", "until_ms")

    def __init__(self, silence_ms: int) -> None:
        self.round = 0
        self.until_ms = 0
        self._duration_ms = int(LEASE_SHARE * silence_ms)
        self._none_before_ms = 0  # rounds sent before it give none: the mastership was being handed over
        self._sent_ms: deque[tuple[int, int]] = deque()  # (round, sent) not known to a quorum yet

    def begin(self) -> None:
        """Begin a mastership without a lease: rounds of an earlier one prove nothing.

        A hand-over of an earlier one does not forbid the lease any longer: the member that was asked to stand then
        would stand in a term below this one, and is refused.
        """
        self._sent_ms.clear()
        self.until_ms = self._none_before_ms = 0

    def end(self) -> None:
        self.until_ms = 0

    def new_round(self, now_ms: int) -> None:
        self.round += 1
        self._sent_ms.append((self.round, now_ms))
        if len(self._sent_ms) > ROUNDS_MAX:
            self._sent_ms.popleft()

    def extend(self, answered_round: int) -> None:
        """Extend the lease, as a quorum has answered rounds up to ``answered_round``."""
        while self._sent_ms and self._sent_ms[0][0] <= answered_round:
            _, sent_ms = self._sent_ms.popleft()
            if sent_ms >= self._none_before_ms:
                self.until_ms = sent_ms + self._duration_ms

    def give_up(self, none_before_ms: int) -> None:
        """End the lease now; rounds sent before ``none_before_ms`` extend it no more."""
        self.until_ms = 0
        self._none_before_ms = none_before_ms

    def is_valid(self, now_ms: int) -> bool:
        return now_ms < self.until_ms
