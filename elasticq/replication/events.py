"""What a replica tells the node: how things stood when an event happened; the replica may be further by then."""

from msgspec import Struct

from elasticq.replication.records import Entry


class Campaigned(Struct, frozen=True, gc=False):
    """This member asks for votes in ``term``.

    is_pre_vote: it only asks whether it would get them; is_asked: the master that hands over wants it to stand.
    """

    term: int
    is_pre_vote: bool = False
    is_asked: bool = False


class BecameMaster(Struct, frozen=True):
    """This member is master. The node proposes the first entry of the term, and then asks for a heartbeat round."""


class LostMastership(Struct, frozen=True, gc=False):
    """This member is master no more: what it proposed above ``commit_index`` may never be committed.

    reason: why, for the operator's log.
    """

    commit_index: int
    reason: str = ""


class CommitMoved(Struct, frozen=True, gc=False):
    """Entries up to ``index`` are committed; ``is_master``: this member committed them, and applied them before."""

    index: int
    is_master: bool


class HeardMaster(Struct, frozen=True, gc=False):
    """The master of ``term`` was heard; by its clock it was ``time_ms`` when it said so."""

    term: int
    time_ms: int


class MembersChanged(Struct, frozen=True, gc=False):
    """The voters changed or, at a master, the learners.

    last_index: of the log, with the entry that named them; is_voter: this member is one of them.
    """

    last_index: int
    is_voter: bool


class Dropped(Struct, frozen=True):
    """These ``entries`` were cut off the log: a newer master has others in their place."""

    entries: list[Entry]


class FellBehind(Struct, frozen=True, gc=False):
    """This member needs a snapshot: ``source`` has one at ``index`` or above."""

    source: str
    index: int


class CaughtUp(Struct, frozen=True):
    """No snapshot is needed any more."""


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
