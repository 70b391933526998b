"""What a master knows of one follower or learner."""

from msgspec import Struct


class Progress(Struct):
    """probing: one Append at a time until the logs are known to match; offered_index: not 0 while it
    takes a snapshot at that index or above, so that the log above stays; heard_ms: when it last answered;
    told_index: the commit index that was sent to it last;
    is_leaving: it was a voter and hears the log until it knows that it is none.
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
        """Try at ``index`` next, as the follower refused an Append; False for a late answer, which changes nothing."""
        if index < self.match_index:
            return False
        self.next_index = max(self.match_index, min(index, self.next_index - 1)) + 1
        self.probing = True
        return True
