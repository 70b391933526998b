"""The leader lease: the time until which no other master can exist. Until then this master can answer reads alone.

Each heartbeat round has a number, which the answers repeat. A voter that answered a round votes for no other master for
``broken_link_ms`` after it got that round. If its link is not broken, it waits much longer. So the lease starts when
the newest round was sent that a quorum answered, and it is shorter than that silence. A hand-over breaks the silence
and so ends the lease.

Source: Ongaro, "Consensus: bridging theory and practice" (2014), §6.4.1.
"""

from collections import deque

LEASE_SHARE = 0.8  # part of broken_link_ms, from the sending of the round: clocks may differ in speed by a fifth
ROUNDS_MAX = 1_024  # rounds without the answers of a quorum; older ones are forgotten


class LeaderLease:
    """The lease of one master. Times are ms of the boot clock.

    ``round`` is the number of the newest round. It never falls during the life of the process.
    """

    def __init__(self, silence_ms: int) -> None:
        self.round = 0
        self.until_ms = 0
        self._duration_ms = int(LEASE_SHARE * silence_ms)
        self._none_before_ms = 0  # rounds sent earlier do not extend the lease, because of a hand-over
        self._sent_ms: deque[tuple[int, int]] = deque()  # (round, sent) of rounds that no quorum has answered yet

    def begin(self) -> None:
        """Begin a mastership without a lease, because rounds of an earlier one prove nothing.

        A hand-over in an earlier mastership does not matter any more. Its target would become a candidate in an older
        term and is refused.
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
        """Extend the lease, because a quorum has answered rounds up to ``answered_round``."""
        while self._sent_ms and self._sent_ms[0][0] <= answered_round:
            _, sent_ms = self._sent_ms.popleft()
            if sent_ms >= self._none_before_ms:
                self.until_ms = sent_ms + self._duration_ms

    def give_up(self, none_before_ms: int) -> None:
        """End the lease. Rounds sent before ``none_before_ms`` do not extend it any more."""
        self.until_ms = 0
        self._none_before_ms = none_before_ms

    def is_valid(self, now_ms: int) -> bool:
        return now_ms < self.until_ms
