"""The records that a member must keep over a crash: entries, truncations, term and vote.

The storage gets the records in the order in which they were made, and makes them durable in that order. Everything that
depends on a record names its sync token.
"""

from msgspec import Struct

from elasticq.model.ranges import Index, MemberId, PeerText, RowTimeMs, Term


class Voter(Struct, array_like=True, frozen=True, gc=False):
    """A member that counts for quorum. ``address`` (host:port) is its address when it became a voter."""

    id: MemberId
    address: PeerText = ""


class Entry(Struct, array_like=True, frozen=True, gc=False, tag=1):
    """One entry of the log.

    index: 1, 2, 3 ...
    term: of the master that made it.
    time_ms: cluster time, which never falls along the log.
    payload: encoded mutations of the engine, opaque to replication.
    voters: the voters from this entry on, committed or not; None: it does not change them.
    acked_before_commit: a call in it was answered before it was committed (modes async and one).
    """

    index: Index
    term: Term
    time_ms: RowTimeMs
    payload: bytes
    voters: tuple[Voter, ...] | None = None
    acked_before_commit: bool = False


class Truncation(Struct, array_like=True, frozen=True, gc=False, tag=2):
    """A record that all entries from ``index`` on are void, because they conflict with the master's log."""

    index: int


class Vote(Struct, array_like=True, frozen=True, gc=False, tag=3):
    """The member's term and its vote in that term (None: no vote)."""

    term: int
    voted_for: str | None


Record = Entry | Truncation | Vote


class Base(Struct, frozen=True):
    """The entry before the first one of a log. All fields are 0 for a log that begins at 1.

    voters: the voters at that entry; None if no entry up to it named any.
    """

    index: int = 0
    term: int = 0
    time_ms: int = 0
    voters: tuple[Voter, ...] | None = None


BEGINNING = Base()


class Durable(Struct):
    """The content of a storage at start.

    vote: the newest one.
    entries: in order; the first has the index ``base.index`` + 1.
    applied_index: the rows that come with it hold all entries up to this index. These are all committed (base.index <=
        applied_index <= the last entry's index).
    is_whole: False if some of the rows could not be read and are missing.
    was_removed: this member noted before its restart that it was removed from the voters.
    """

    vote: Vote
    entries: list[Entry]
    base: Base = BEGINNING
    applied_index: int = 0
    is_whole: bool = True
    was_removed: bool = False


NOTHING = Durable(Vote(0, None), [])
