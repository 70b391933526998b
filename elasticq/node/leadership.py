"""The mastership of this member: how it takes over, and how it hands over to another member.

    became master -> entry TookOver proposed -> committed: serving -> mastership lost
                                                  |        ^
                                                  v        | not accepted within HAND_OVER_MS
                                                handing over: serving, but may not write

When the own TookOver is committed, everything before it is, too, by Raft's rules. So a member that serves answers from
a complete state.
"""

from typing import Final

from elasticq.engine.stored import mutations as m
from elasticq.node.journal import Journal
from elasticq.node.membership.members import founding
from elasticq.node.parts import Parts

HAND_OVER_MS: Final = 1_000
GRACE_BEFORE_MS: Final = 1_400  # a follower may have heard nothing for this long before it noticed
GRACE_AFTER_MS: Final = 2_000
GRACE_SPAN_MAX_MS: Final = 10_000
TAKING_OVER: Final = "The master is taking over; try again."


class Leadership:
    """The rights of this member as master: to execute calls, and to write.

    serving: calls are executed here. True only if this member is master and its own TookOver is committed.
    may_write: new entries may be made for calls and background work: this member serves and is not handing over.
    hands_over_until_ms: time on the boot clock at which the hand-over is given up; 0: no hand-over is in progress.
    """

    def __init__(self, parts: Parts, journal: Journal) -> None:
        self.serving = False
        self.may_write = False
        self.hands_over_until_ms = 0
        self._state = parts.state
        self._replica = parts.replica
        self._clock = parts.clock
        self._random = parts.random
        self._safe_executor = parts.safe_executor
        self._journal = journal
        self._takeover_index = 0
        self._transfer_target = ""
        self._served_until_ms = 0  # the boot clock's time at which this member ceased to be master; 0: never

    # --- taking over --------------------------------------------------------------

    def take_over(self, now_ms: int) -> None:
        """Apply the log to its end, fix the clock and propose the TookOver entry.

        The member serves when it is committed.
        """
        replica, clock, journal = self._replica, self._clock, self._journal
        journal.apply_to_end()
        contact_ms = clock.contact_ms
        clock.win(replica.term, replica.election.votes.values(), replica.log.last_time_ms, now_ms)
        journal.begin_term(now_ms)
        first: list[m.Mutation] = []
        if not self._state.cluster_id:
            first.append(founding(self._random))
        grace_from_ms, grace_until_ms = self._grace(contact_ms, journal.context.now_ms)
        takeover = m.TookOver(replica.term, replica.member_id, grace_from_ms, grace_until_ms)
        journal.append(self._safe_executor.own([*first, takeover]), now_ms, None)
        self._takeover_index = replica.log.last_index + 1
        journal.propose(now_ms)
        replica.ask_round(now_ms)  # this round carries the entry, which saves a round trip

    def _grace(self, contact_ms: int | None, time_ms: int) -> tuple[int, int]:
        """Return the start and end of the grace, in cluster time; (0, 0) without a grace.

        In that time consumers may have been unable to extend a visibility timeout.
        """
        known_ms = None if contact_ms is None else contact_ms + self._clock.ahead_ms
        last_ms = known_ms if known_ms is not None else self._replica.log.last_time_ms
        if not last_ms:
            return 0, 0
        from_ms = last_ms - GRACE_BEFORE_MS
        return from_ms, min(time_ms + GRACE_AFTER_MS, from_ms + GRACE_SPAN_MAX_MS)

    def commit_moved(self, commit_index: int) -> None:
        """Begin to serve once the own TookOver is committed, because then everything before it is, too."""
        if not self.serving and commit_index >= self._takeover_index:
            self.serve()

    def serve(self) -> None:
        """Begin to execute calls on this member."""
        self.serving = self.may_write = True

    def lost_mastership(self, now_ms: int) -> None:
        """Stop serving, because this member is not the master any more."""
        self._served_until_ms = now_ms
        self.serving = self.may_write = False
        self.hands_over_until_ms = 0

    # --- handing over -------------------------------------------------------------

    def hand_over(self, now_ms: int, to: str) -> bool:
        """Begin to hand over the mastership to ``to``, or to the voter with the newest log.

        Return False if that is impossible.

        This member makes no new entry until that voter has the whole log and the mastership. A target without the
        newest log would not be elected. After HAND_OVER_MS the attempt is given up.
        """
        if not self.serving or not self._replica.others:
            return False
        self._transfer_target, self.hands_over_until_ms = to, now_ms + HAND_OVER_MS
        self.may_write = False
        return True

    def go_on_handing_over(self, now_ms: int) -> None:
        """Let the target start its election once it has the whole log. Give up if the time is over."""
        if now_ms >= self.hands_over_until_ms:
            self.hands_over_until_ms = 0
            self.may_write = self.serving
        elif not self._journal.is_open and self._replica.commit_index == self._replica.log.last_index:
            transfer_target = self._transfer_target or self._replica.tracker.transfer_target()
            if self._replica.hand_over(now_ms, transfer_target):
                # Keep this target until the hand-over ends: two candidates at once would split the votes.
                self._transfer_target = transfer_target

    # --- status ---------------------------------------------------------------------

    def stale_ms(self, now_ms: int) -> int:
        """Return how many ms ago a master was heard, or this member ceased to be the master.

        It is 0 if this member serves, or has heard no master since its start.
        """
        heard_ms = self._replica.election.heard_ms
        return 0 if self.serving or heard_ms is None else now_ms - max(heard_ms, self._served_until_ms)
