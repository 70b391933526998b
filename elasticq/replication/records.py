"""What a member must keep over a crash: entries, truncations, term and vote.

Records reach the storage in the order in which they were made and are durable
in that order; everything that rests on one names its sync token.
"""

from msgspec import Struct

from elasticq.model.ranges import Index, MemberId, PeerText, RowTimeMs, Term


class Voter(Struct, array_like=True, frozen=True, gc=False):
    """A member that counts for quorum; ``address`` (host:port) is where it was when it became one."""

    id: MemberId
    address: PeerText = ""


class Entry(Struct, array_like=True, frozen=True, gc=False, tag=1):
    """One place in the log.

    index: 1, 2, 3 ...; term: of the master that made it; time_ms: cluster time,
    never falling; payload: mutations as the engine encodes them, opaque here.
    voters: from this entry on, committed or not, these are the voters; None: as before.
    acked_before_commit: something in it was answered before it was committed (modes async and one).
    """

    index: Index
    term: Term
    time_ms: RowTimeMs
    payload: bytes
    voters: tuple[Voter, ...] | None = None
    acked_before_commit: bool = False


class Truncation(Struct, array_like=True, frozen=True, gc=False, tag=2):
    """All entries from ``index`` on are void: a conflict with the master's log."""

    index: int


class Vote(Struct, array_like=True, frozen=True, gc=False, tag=3):
    """The member's term, and whom it voted for in it (None: nobody yet)."""

    term: int
    voted_for: str | None


Record = Entry | Truncation | Vote


class Base(Struct, frozen=True):
    """The entry before the first one of a log; all zero for a log that begins at 1.

    voters: who they were at that entry; None where no entry up to it named any.
    """

    index: int = 0
    term: int = 0
    time_ms: int = 0
    voters: tuple[Voter, ...] | None = None


BEGINNING = Base()


class Durable(Struct):
    """What a storage gives back at start.

    vote: the newest; entries: in order, the first at ``base.index`` + 1;
    applied_index: the rows that come with it hold all entries up to here, and all of
    these are committed (base.index <= applied_index <= the last entry's index).
    is_whole: False where some of what the rows held could not be read and is left out of them.
    was_removed: this member noted, in an earlier life, that it was a voter and was taken out.
    """

    vote: Vote
    entries: list[Entry]
    base: Base = BEGINNING
    applied_index: int = 0
    is_whole: bool = True
    was_removed: bool = False


NOTHING = Durable(Vote(0, None), [])
