"""Digests of a member's rows at chosen places of the log, which members compare to find rows that differ."""

from typing import Final

from elasticq.engine.state import State
from elasticq.engine.views.digest import delivery_digest
from elasticq.replication.replica import Replica

DIGESTS_MAX: Final = 16
DAMAGED: Final = "damaged"  # stands in the place of a digest while rows of this member cannot be read


class Digests:
    """``by_index``: the newest digests, by the log index at which they were taken."""

    __slots__ = ("_replica", "_state", "by_index")

    def __init__(self, state: State, replica: Replica) -> None:
        self._state = state
        self._replica = replica
        self.by_index: dict[int, str] = {}

    def note(self, index: int, time_ms: int) -> None:
        """Take the digest of the state, which is that of ``index``; ``time_ms`` is the time of that entry."""
        is_whole = self._replica.is_whole
        self.by_index[index] = delivery_digest(self._state, time_ms).hex() if is_whole else DAMAGED
        while len(self.by_index) > DIGESTS_MAX:
            del self.by_index[next(iter(self.by_index))]

    def forget_above(self, index: int) -> None:
        """Drop the digests of the entries above ``index``, which were taken back: others may come in their places."""
        for each in [each for each in self.by_index if each > index]:
            del self.by_index[each]
