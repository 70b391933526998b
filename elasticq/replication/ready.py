"""What a replica wants done after a call: records to keep, messages to send, and events that the node must hear of.

The node drains it after each call, the events first and in their order, as what they tell builds on one another: a lost
mastership is rolled back before entries of the next master are applied, and a new master's first entry, which
the node proposes when it hears that it is one, joins the records. An event tells how things stood when it
happened; the replica may be further by the time it is heard.
"""

from msgspec import Struct, field

from elasticq.replication.messages import AnyMessage
from elasticq.replication.records import Entry, Record


class BecameMaster(Struct, frozen=True):
    """This member is master. The node proposes the first entry of the term, and then asks for a heartbeat round."""


class LostMastership(Struct, frozen=True, gc=False):
    """This member is master no more: what it proposed above ``commit_index`` may never be committed."""

    commit_index: int


class CommitMoved(Struct, frozen=True, gc=False):
    """Entries up to ``index`` are committed; ``is_master``: this member committed them, and applied them before."""

    index: int
    is_master: bool


class Linked(Struct, frozen=True, gc=False):
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


Event = Linked | CommitMoved | BecameMaster | LostMastership | MembersChanged | Dropped | FellBehind | CaughtUp


class Ready(Struct):
    """Each list is in order; a message that rests on records waits for their sync."""

    records: list[Record] = field(default_factory=list)
    messages: list[tuple[AnyMessage, bool]] = field(default_factory=list)  # (message, rests on the records so far)
    events: list[Event] = field(default_factory=list)
