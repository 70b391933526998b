"""The voters: those in the newest log entry that names voters, committed or not.

The voters change one at a time. So any majority of the old voters and any majority of the new ones share a member
(Ongaro 2014, §4.1).
"""

from elasticq.replication.records import Base, Entry, Voter


class Membership:
    """The current ``voters``, their majority ``quorum``, and ``others``, the voters without this member."""

    def __init__(self, member_id: str, founders: tuple[str, ...], base: Base) -> None:
        """Read the voters from ``base``. ``founders`` are the voters if neither ``base`` nor an entry names any."""
        self.member_id = member_id
        first = base.voters if base.voters is not None else tuple(Voter(each) for each in founders)
        self._named: list[tuple[int, tuple[Voter, ...]]] = [(base.index if base.voters is not None else 0, first)]
        self._use_newest()

    @property
    def index(self) -> int:
        """Return the index of the entry that named the current voters."""
        return self._named[-1][0]

    def _use_newest(self) -> None:
        self.voters = self._named[-1][1]
        self.ids = tuple(voter.id for voter in self.voters)
        self.others = tuple(each for each in self.ids if each != self.member_id)
        self.is_voter = self.member_id in self.ids
        self.quorum = len(self.ids) // 2 + 1

    def appended(self, entry: Entry) -> bool:
        """Note an appended entry. Return whether it names voters."""
        if entry.voters is None:
            return False
        self._named.append((entry.index, entry.voters))
        self._use_newest()
        return True

    def truncated(self, index: int) -> bool:
        """Note that the entries from ``index`` on are void. Return whether one of them named the voters."""
        if self._named[-1][0] < index or len(self._named) == 1:
            return False
        while len(self._named) > 1 and self._named[-1][0] >= index:
            self._named.pop()
        self._use_newest()
        return True

    def committed(self, index: int) -> None:
        """Forget the voters before those in the newest committed entry with voters.

        They can never become current again.
        """
        while len(self._named) > 1 and self._named[1][0] <= index:
            del self._named[0]

    @property
    def committed_voters(self) -> tuple[Voter, ...]:
        """Return the voters in the newest committed entry that names voters."""
        return self._named[0][1]

    def knows(self, member_id: str) -> bool:
        """Return whether ``member_id`` is a voter by any entry that may still count, or if no voters are known."""
        return not self.ids or any(member_id == voter.id for _, voters in self._named for voter in voters)

    @property
    def has_been_voter(self) -> bool:
        """Return whether this member is a voter by any entry that may still count."""
        return any(self.member_id == voter.id for _, voters in self._named for voter in voters)

    def allows(self, voters: tuple[Voter, ...]) -> bool:
        """Return whether ``voters`` is not empty and differs from the current voters by at most one member."""
        return bool(voters) and len(set(self.ids) ^ {voter.id for voter in voters}) <= 1
