"""Tells who the voters are: those that the newest entry of the log that names any names, committed or not.

One change at a time, of one voter, so that any majority of the old ones and
any of the new ones share a member (Ongaro 2014, §4.1).
"""

from elasticq.replication.records import Base, Entry, Voter


class Membership:
    """``voters`` are the present ones, ``quorum`` their majority, ``others`` all but this member."""

    __slots__ = ("_named", "ids", "is_voter", "member_id", "others", "quorum", "voters")

    def __init__(self, member_id: str, founders: tuple[str, ...], base: Base) -> None:
        """``founders``: the voters where neither ``base`` nor an entry names any."""
        self.member_id = member_id
        first = base.voters if base.voters is not None else tuple(Voter(each) for each in founders)
        self._named: list[tuple[int, tuple[Voter, ...]]] = [(base.index if base.voters is not None else 0, first)]
        self._take()

    @property
    def index(self) -> int:
        """The index of the entry that named the present voters."""
        return self._named[-1][0]

    def _take(self) -> None:
        self.voters = self._named[-1][1]
        self.ids = tuple(voter.id for voter in self.voters)
        self.others = tuple(each for each in self.ids if each != self.member_id)
        self.is_voter = self.member_id in self.ids
        self.quorum = len(self.ids) // 2 + 1

    def appended(self, entry: Entry) -> bool:
        """Follow an entry that was appended; True if it names voters."""
        if entry.voters is None:
            return False
        self._named.append((entry.index, entry.voters))
        self._take()
        return True

    def truncated(self, index: int) -> bool:
        """Entries from ``index`` on are void; True if one of them named the voters."""
        if self._named[-1][0] < index or len(self._named) == 1:
            return False
        while len(self._named) > 1 and self._named[-1][0] >= index:
            self._named.pop()
        self._take()
        return True

    def committed(self, index: int) -> None:
        """Forget the voters named before the newest committed entry that names any: they can never come back."""
        while len(self._named) > 1 and self._named[1][0] <= index:
            del self._named[0]

    @property
    def committed_voters(self) -> tuple[Voter, ...]:
        """The voters that the newest committed entry with voters names."""
        return self._named[0][1]

    def knows(self, member_id: str) -> bool:
        """True if ``member_id`` is a voter by any entry that may still count, or if no voters are known."""
        return not self.ids or any(member_id == voter.id for _, voters in self._named for voter in voters)

    @property
    def has_been_voter(self) -> bool:
        """True if this member is a voter by any entry that may still count."""
        return any(self.member_id == voter.id for _, voters in self._named for voter in voters)

    def allows(self, voters: tuple[Voter, ...]) -> bool:
        """True if ``voters`` is not empty and differs from the present voters by one member at most."""
        return bool(voters) and len(set(self.ids) ^ {voter.id for voter in voters}) <= 1
