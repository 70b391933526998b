"""The Raft state of a member: term, vote, entries, voters, and what is committed and durable.

This module holds the rules for changes of the state. Only Replica, a subclass with the roles, applies them. The parts
(election.py, tracker.py, appends.py) use this type. They read the state and add their requests to ``ready``. This type
gives them no method that changes the member's role.
"""

from collections.abc import Callable

from elasticq.model.ranges import TERM_MAX
from elasticq.replication.durability import Durability
from elasticq.replication.events import CommitMoved, Dropped, Event, MembersChanged
from elasticq.replication.log import Log
from elasticq.replication.membership import Membership
from elasticq.replication.messages import AnyMessage
from elasticq.replication.progress import Progress
from elasticq.replication.ready import Ready
from elasticq.replication.records import Durable, Entry, Record, Truncation, Vote


class RaftState:
    """The Raft state of one member.

    others: the voters without this member.
    quorum: the majority of all voters.
    """

    def __init__(
        self,
        member_id: str,
        voters: tuple[str, ...],
        durable: Durable,
        clock: Callable[[int], tuple[int, int]],
        *,
        is_volatile: bool = False,
    ) -> None:
        """Restore the state from ``durable``.

        is_volatile: records are durable when they are made.
        clock: returns (term, time_ms) for ``now_ms``: cluster time by the master of that term, or 0 and the wall clock.
        """
        self.member_id = member_id
        self.is_volatile = is_volatile
        self.cluster = ""  # the cluster id, once it is committed or this member wants to join it
        self.clock = clock
        self.ready = Ready()

        self.term = durable.vote.term
        self.voted_for = durable.vote.voted_for
        self.log = Log(durable.entries, durable.base)
        self.durability = Durability(self.log.last_index)
        self.commit_index = durable.applied_index  # rows hold committed entries only
        self.is_whole = durable.is_whole
        self.wanted: tuple[str, int] | None = None  # (source, index) of the snapshot that is being fetched

        self.membership = Membership(member_id, voters, durable.base)
        for entry in durable.entries:
            self.membership.appended(entry)
        self.membership.committed(self.commit_index)
        self.followers: dict[str, Progress] = {}  # of a master: the other voters, and the learners
        self.take_members()

    # --- output -----------------------------------------------------------------

    def record(self, record: Record) -> None:
        self.ready.records.append(record)

    def send(self, message: AnyMessage, *, rests_on_records: bool) -> None:
        """Send a message. With ``rests_on_records`` it may leave only when all records made so far are durable."""
        self.ready.messages.append((message, rests_on_records))

    def tell(self, event: Event) -> None:
        self.ready.events.append(event)

    # --- members ----------------------------------------------------------------

    def take_members(self) -> None:
        """Derive the quorum, and whether this member is alone, from the current voters and followers."""
        membership = self.membership
        self.others = membership.others
        self.quorum = membership.quorum
        self.has_company = bool(self.others or self.followers)
        self.is_alone = membership.is_voter and not self.others
        # there is no other member to ask or inform
        self.commits_alone = self.is_volatile and self.is_alone and not self.followers

    def members_changed(self) -> None:
        self.take_members()
        self.tell(MembersChanged(self.log.last_index, self.membership.is_voter))

    @property
    def voters(self) -> tuple[str, ...]:
        return self.membership.ids

    @property
    def may_vote(self) -> bool:
        """Return whether this member may vote.

        It may not before it belongs to a cluster, while it waits for a snapshot, or while its rows are damaged.
        """
        return self.is_whole and self.wanted is None and (self.membership.is_voter or bool(self.cluster))

    @property
    def may_stand(self) -> bool:
        """Return whether this member may become a candidate: a voter that may vote and whose term is not the highest
        one."""
        return self.may_vote and self.membership.is_voter and self.term < TERM_MAX

    # --- vote and log -----------------------------------------------------------

    def persist_vote(self) -> None:
        """Record term and vote. They are durable before any other member gets a message that depends on them."""
        self.record(Vote(self.term, self.voted_for))

    def append(self, entry: Entry) -> None:
        self.log.append(entry)
        self.record(entry)
        if self.membership.appended(entry):
            self.members_changed()

    def store(self, entries: list[Entry]) -> None:
        """Append the entries of a master.

        Skip those that are here already, and cut off the entries that conflict with them.
        """
        for entry in entries:
            if entry.index <= self.log.last_index:
                if self.agrees(entry):
                    continue
                self._truncate(entry.index)
            self.append(entry)

    def agrees(self, entry: Entry) -> bool:
        """Return whether the log has this entry.

        Only a conflict truncates the log; a late frame must not cut off entries.
        """
        return self.log.term_at(entry.index) == entry.term

    def _truncate(self, index: int) -> None:
        assert index > self.commit_index, "committed entries are never cut off"
        self.tell(Dropped(self.log.truncate(index)))
        self.record(Truncation(index))
        if self.membership.truncated(index):
            self.members_changed()
        self.durability.truncated(index)

    def move_commit(self, index: int, *, is_master: bool) -> None:
        """Move the commit index up to ``index``. Do nothing if that is committed already."""
        if index > self.commit_index:
            assert index <= self.log.last_index
            self.commit_index = index
            self.membership.committed(index)
            self.tell(CommitMoved(index, is_master))
