"""Digests of a member's rows at chosen log indexes. Members compare them to find rows that differ."""

from typing import Final

from elasticq.engine.state import State
from elasticq.engine.views.digest import delivery_digest
from elasticq.replication.replica import Replica

DIGESTS_MAX: Final = 16
DAMAGED: Final = "damaged"  # replaces a digest while rows of this member cannot be read


class Digests:
    """The newest digests of this member, in ``by_index`` by log index."""

    __slots__ = ("_replica", "_state", "by_index")

    def __init__(self, state: State, replica: Replica) -> None:
        self._state = state
        self._replica = replica
        self.by_index: dict[int, str] = {}

    def note(self, index: int, time_ms: int) -> None:
        """Add the digest of the state, which is that of entry ``index``. ``time_ms`` is the time of that entry."""
        is_whole = self._replica.is_whole
        self.by_index[index] = delivery_digest(self._state, time_ms).hex() if is_whole else DAMAGED
        while len(self.by_index) > DIGESTS_MAX:
            del self.by_index[next(iter(self.by_index))]

    def forget_above(self, index: int) -> None:
        """Drop the digests of entries above ``index``. Those were rolled back, and other entries may get their
        indexes."""
        for each in [each for each in self.by_index if each > index]:
            del self.by_index[each]
