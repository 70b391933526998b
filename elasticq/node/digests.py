"""The digests of finished comparisons of rows on this member. Members compare them to find rows that differ."""

from hashlib import blake2b
from typing import Final

from elasticq.engine.state import State
from elasticq.engine.stored.comparisons import RowsCompared
from elasticq.engine.views.digest import Part, Position, digest_part
from elasticq.replication.replica import Replica

DIGESTS_MAX: Final = 16
DAMAGED: Final = "damaged"  # replaces a digest while rows of this member cannot be read
INCOMPLETE: Final = "incomplete"  # replaces the digest of a comparison whose first parts this member missed


class Digests:
    """The newest digests of this member.

    ``by_number`` holds them by the number of the comparison, which is the log index of its first part.
    """

    def __init__(self, state: State, replica: Replica) -> None:
        self._state = state
        self._replica = replica
        self._digest = ""  # of the parts so far, or DAMAGED or INCOMPLETE
        self._next: tuple[int, Position] | None = None  # number of the comparison and start of its next part
        self._ends: dict[int, int] = {}  # number of the comparison -> log index of its last part
        self.by_number: dict[int, str] = {}

    def part(self, after: Position, time_ms: int) -> Part:
        """Return the part of the current rows after ``after``. The master proposes it."""
        return digest_part(self._state, time_ms, after)

    def note(self, compared: RowsCompared, index: int, time_ms: int, part: Part | None = None) -> None:
        """Add a part of a comparison. Its rows are those at entry ``index``, whose time is ``time_ms``.

        part: the digest of these rows, if it is known.
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
        """Drop the results of entries above ``index``, which were rolled back. Other entries may get their indexes."""
        self._next = None
        for number in [number for number, end in self._ends.items() if end > index]:
            del self._ends[number], self.by_number[number]
