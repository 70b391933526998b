"""The Raft state of a member: term and vote, entries, who the voters are, what is committed and what is durable.

The rules of how these change are here, and only Replica, which extends this class
by the roles, applies them. The parts (election.py, tracker.py, appends.py) hold it
by this type: they read it and leave what they want done in ``ready``, and there is
nothing that they could call to change the member's role.
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
    """``others`` are the voters without this member, ``quorum`` is the majority of all voters."""

    def __init__(
        self,
        member_id: str,
        voters: tuple[str, ...],
        durable: Durable,
        clock: Callable[[int], tuple[int, int]],
        *,
        is_volatile: bool = False,
    ) -> None:
        """``is_volatile``: records are durable when made.

        ``clock(now_ms)`` gives (term, time_ms): cluster time by the master of that term, or 0 and the wall clock.
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
        self.wanted: tuple[str, int] | None = None  # (source, index) of the snapshot that is being taken

        self.membership = Membership(member_id, voters, durable.base)
        for entry in durable.entries:
            self.membership.appended(entry)
        self.membership.committed(self.commit_index)
        self.followers: dict[str, Progress] = {}  # of a master: the other voters, and the learners
        self.take_members()

    # --- what is wanted ---------------------------------------------------------

    def record(self, record: Record) -> None:
        self.ready.records.append(record)

    def send(self, message: AnyMessage, *, rests_on_records: bool) -> None:
        """``rests_on_records``: it may not leave before all records made so far are durable."""
        self.ready.messages.append((message, rests_on_records))

    def tell(self, event: Event) -> None:
        self.ready.events.append(event)

    # --- members ----------------------------------------------------------------

    def take_members(self) -> None:
        """Derive the quorum, and whether this member is alone, from the present voters and followers."""
        membership = self.membership
        self.others = membership.others
        self.quorum = membership.quorum
        self.has_company = bool(self.others or self.followers)
        self.is_alone = membership.is_voter and not self.others
        self.commits_alone = self.is_volatile and self.is_alone and not self.followers  # nobody to ask or tell

    def members_changed(self) -> None:
        self.take_members()
        self.tell(MembersChanged(self.log.last_index, self.membership.is_voter))

    @property
    def voters(self) -> tuple[str, ...]:
        return self.membership.ids

    @property
    def may_vote(self) -> bool:
        """False while this member waits for a snapshot or its rows are damaged, and before it belongs to a cluster."""
        return self.is_whole and self.wanted is None and (self.membership.is_voter or bool(self.cluster))

    @property
    def may_stand(self) -> bool:
        """True for a voter that may vote and can raise its term: at the highest one there is no next."""
        return self.may_vote and self.membership.is_voter and self.term < TERM_MAX

    # --- vote and log -----------------------------------------------------------

    def persist_vote(self) -> None:
        """Record term and vote, which are durable before anybody hears of them."""
        self.record(Vote(self.term, self.voted_for))

    def append(self, entry: Entry) -> None:
        self.log.append(entry)
        self.record(entry)
        if self.membership.appended(entry):
            self.members_changed()

    def store(self, entries: list[Entry]) -> None:
        """Append the entries of a master; some may be here already, and those that conflict with them are cut."""
        for entry in entries:
            if entry.index <= self.log.last_index:
                if self.agrees(entry):
                    continue
                self._truncate(entry.index)
            self.append(entry)

    def agrees(self, entry: Entry) -> bool:
        """True if the log has this entry. Only a real conflict truncates: a late frame must not cut what follows."""
        return self.log.term_at(entry.index) == entry.term

    def _truncate(self, index: int) -> None:
        assert index > self.commit_index, "what is committed is never cut"
        self.tell(Dropped(self.log.truncate(index)))
        self.record(Truncation(index))
        if self.membership.truncated(index):
            self.members_changed()
        self.durability.truncated(index)

    def move_commit(self, index: int, *, is_master: bool) -> None:
        """Move the commit index up to ``index``; nothing changes if that is committed already."""
        if index > self.commit_index:
            assert index <= self.log.last_index
            self.commit_index = index
            self.membership.committed(index)
            self.tell(CommitMoved(index, is_master))
