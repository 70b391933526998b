"""The events of a replica for the node. Each holds the facts at its time; the replica may have advanced since then."""

from msgspec import Struct

from elasticq.replication.records import Entry


class Campaigned(Struct, frozen=True, gc=False):
    """The event that this member asks for votes in ``term``.

    is_pre_vote: it only asks whether it would get votes.
    is_asked: the master is handing over and asked for this election.
    """

    term: int
    is_pre_vote: bool = False
    is_asked: bool = False


class BecameMaster(Struct, frozen=True):
    """The event that this member is master.

    The node proposes the first entry of the term, and then asks for a heartbeat round.
    """


class LostMastership(Struct, frozen=True, gc=False):
    """The event that this member is not master any more. Its entries above ``commit_index`` may never be committed.

    reason: for the operator's log.
    """

    commit_index: int
    reason: str = ""


class CommitMoved(Struct, frozen=True, gc=False):
    """The event that entries up to ``index`` are committed.

    is_master: this member committed them as master, and had applied them before.
    """

    index: int
    is_master: bool


class HeardMaster(Struct, frozen=True, gc=False):
    """The event that an Append of the master of ``term`` came. Its real time at sending was ``time_ms``."""

    term: int
    time_ms: int


class MembersChanged(Struct, frozen=True, gc=False):
    """The event that the voters changed or, at a master, the learners.

    last_index: of the log, including the entry that named them.
    is_voter: this member is a voter.
    """

    last_index: int
    is_voter: bool


class Dropped(Struct, frozen=True):
    """The event that ``entries`` were cut off the log, because a newer master has other entries at their indexes."""

    entries: list[Entry]


class FellBehind(Struct, frozen=True, gc=False):
    """The event that this member needs a snapshot. ``source`` has one at ``index`` or above."""

    source: str
    index: int


class CaughtUp(Struct, frozen=True):
    """The event that no snapshot is needed any more."""


Event = (
    HeardMaster
    | CommitMoved
    | Campaigned
    | BecameMaster
    | LostMastership
    | MembersChanged
    | Dropped
    | FellBehind
    | CaughtUp
)
