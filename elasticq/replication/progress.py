"""A master's knowledge of one follower or learner."""

from msgspec import Struct


class Progress(Struct):
    """The replication state of one follower or learner.

    probing: the master sends one Append at a time until it knows that the logs match.
    offered_index: not 0 while the member fetches a snapshot at that index or above. The log above it is kept until
        then.
    heard_ms: when the member last answered.
    told_index: the commit index that was last sent to it.
    is_leaving: it was a voter. It gets the log until it knows that it is not a voter any more.
    """

    next_index: int
    match_index: int = 0
    heard_ms: int = 0
    round: int = 0
    probing: bool = True
    offered_index: int = 0
    is_leaving: bool = False
    told_index: int = 0

    def take_hint(self, index: int) -> bool:
        """Lower ``next_index`` to ``index`` + 1 at most, because the follower refused an Append.

        index: the follower's hint. Its log may equal the master's up to there.
        Return False for an outdated refusal, which changes nothing.
        """
        if index < self.match_index:
            return False
        self.next_index = max(self.match_index, min(index, self.next_index - 1)) + 1
        self.probing = True
        return True
