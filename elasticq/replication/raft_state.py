"""What all parts of a replica know of the member: its term and vote, its log, and who the voters are.

Replica extends it and alone writes its fields. The parts (election.py, progress.py,
appends.py) hold it by this type: they read it and leave what they want done in
``ready``, and cannot call anything that changes the member's role.
"""

from collections.abc import Callable

from elasticq.replication.log import Log
from elasticq.replication.membership import Membership
from elasticq.replication.messages import AnyMessage
from elasticq.replication.ready import Event, Ready
from elasticq.replication.records import Durable, Record, Vote


class RaftState:
    """``others`` are the voters without this member, ``quorum`` is the majority of all voters."""

    def __init__(
        self, member_id: str, voters: tuple[str, ...], durable: Durable, clock: Callable[[int], tuple[int, int]]
    ) -> None:
        """``clock(now_ms)`` gives (term, time_ms): cluster time by the master of that term, or 0 and the wall clock."""
        self.member_id = member_id
        self.cluster = ""  # the cluster id, once it is committed or this member wants to join it
        self.term = durable.vote.term
        self.voted_for = durable.vote.voted_for
        self.log = Log(durable.entries, durable.base)
        self.membership = Membership(member_id, voters, durable.base)
        for entry in durable.entries:
            self.membership.appended(entry)
        self.commit_index = durable.applied_index  # rows hold committed entries only
        self.membership.committed(self.commit_index)
        self.others = self.membership.others
        self.quorum = self.membership.quorum
        self.clock = clock
        self.ready = Ready()

    def record(self, record: Record) -> None:
        self.ready.records.append(record)

    def send(self, message: AnyMessage, *, rests_on_records: bool) -> None:
        """``rests_on_records``: it may not leave before all records made so far are durable."""
        self.ready.messages.append((message, rests_on_records))

    def tell(self, event: Event) -> None:
        self.ready.events.append(event)

    def persist_vote(self) -> None:
        """Term and vote are durable before anybody hears of them."""
        self.record(Vote(self.term, self.voted_for))
