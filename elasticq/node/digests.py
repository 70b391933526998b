"""What a member finds in comparisons of rows: a digest for each comparison that went through here from end to end."""

from hashlib import blake2b
from typing import Final

from elasticq.engine.state import State
from elasticq.engine.stored.comparisons import RowsCompared
from elasticq.engine.views.digest import Part, Position, digest_part
from elasticq.replication.replica import Replica

DIGESTS_MAX: Final = 16
DAMAGED: Final = "damaged"  # stands in the place of a digest while rows of this member cannot be read
INCOMPLETE: Final = "incomplete"  # likewise, of a comparison whose first parts this member did not take part in


class Digests:
    """``by_number``: the newest digests, by the number of the comparison: the log index of its first part."""

    __slots__ = ("_digest", "_ends", "_next", "_replica", "_state", "by_number")

    def __init__(self, state: State, replica: Replica) -> None:
        self._state = state
        self._replica = replica
        self._digest = ""  # of the parts of the comparison that is under way; or DAMAGED
        self._next: tuple[int, Position] | None = None  # the number and beginning of the part that continues it
        self._ends: dict[int, int] = {}  # the log indexes of the last parts
        self.by_number: dict[int, str] = {}

    def part(self, after: Position, time_ms: int) -> Part:
        """Return the part behind ``after`` of the rows as they are, for the master to propose it."""
        return digest_part(self._state, time_ms, after)

    def note(self, compared: RowsCompared, index: int, time_ms: int, part: Part | None = None) -> None:
        """Add a part, which is that of the rows at ``index``; ``time_ms`` is the time of that entry.

        part: of these rows, where it is known.
        """
        number, after = compared.number, compared.after
        if not after:
            self._digest = ""
        elif self._next != (number, after):
            self._digest = INCOMPLETE
        if not self._replica.is_whole:
            self._digest = DAMAGED
        if self._digest not in (DAMAGED, INCOMPLETE):
            part = part or digest_part(self._state, time_ms, after, compared.until)
            self._digest = blake2b(self._digest.encode() + part.digest, digest_size=16).hexdigest()
        self._next = (number, compared.until) if compared.until else None
        if not compared.until:
            self.by_number[number], self._ends[number] = self._digest, index
            while len(self.by_number) > DIGESTS_MAX:
                del self._ends[next(iter(self.by_number))], self.by_number[next(iter(self.by_number))]

    def forget_above(self, index: int) -> None:
        """Drop what comes of the entries above ``index``, which were taken back: others may come in their places."""
        self._next = None
        for number in [number for number, end in self._ends.items() if end > index]:
            del self._ends[number], self.by_number[number]
