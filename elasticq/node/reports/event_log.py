"""The operator's log of the cluster: each election, master, member and read-only time is logged once.

The parts of the node call it when something may have changed. It remembers what it logged and changes no other part.
"""

from elasticq.node.effects import Effects
from elasticq.node.membership.members import Members, name_of
from elasticq.node.outputs import News
from elasticq.replication.events import Campaigned
from elasticq.replication.replica import CANDIDATE, MASTER, Replica


class EventLog:
    """The log lines of the cluster, which it adds to ``effects.news``."""

    def __init__(self, replica: Replica, members: Members, effects: Effects) -> None:
        self._replica = replica
        self._members = members
        self._effects = effects
        self._cluster = replica.cluster
        self._master: tuple[str, int] | None = None  # (master, term) as logged last
        self._is_read_only = False
        self._learners: set[str] = set()  # learners of this master
        self._voters = tuple(voter.id for voter in replica.membership.committed_voters)

    def _tell(self, event: str, text: str, *, is_warning: bool = False) -> None:
        self._effects.news.append(News(event, text, is_warning))

    # --- elections ------------------------------------------------------------------

    def campaigned(self, event: Campaigned) -> None:
        """Log that this member asks for votes. Do not log a pre-vote, which only asks whether it would get them."""
        if self._replica.others and not event.is_pre_vote:
            why = "as the master hands over" if event.is_asked else "as no master was heard"
            self._tell("election", f"This member stands for master of term {event.term}, {why}.")
        self.look()

    def became_master(self) -> None:
        replica = self._replica
        self._master = (replica.member_id, replica.term)
        self._learners = set()
        votes = _names(replica.election.votes)
        self._tell("mastership_gained", f"This member was elected master of term {replica.term}, by {votes}.")

    def lost_mastership(self, reason: str, *, is_handed_over: bool) -> None:
        """Log that this member is not the master any more.

        ``reason``: why the replica stepped down. A hand-over is intended, so it is no warning.
        """
        text = f"This member is master no more: {reason}."
        if is_handed_over:
            text = f"This member is master no more, as it hands the mastership over: {reason}."
        self._tell("mastership_lost", text, is_warning=not is_handed_over)

    # --- the cluster ----------------------------------------------------------------

    def look(self) -> None:
        """Log a new cluster, a new master, and the begin or end of a time in which nobody can write here."""
        replica = self._replica
        if replica.cluster != self._cluster:
            self._tell_cluster()
        master = replica.master
        if master is not None:
            if self._is_read_only:
                self._is_read_only = False
                self._tell("read_only_ended", f"This member is read-only no more: {name_of(master)} is master.")
            if self._master != (master, replica.term):
                self._master = (master, replica.term)
                self._tell("master", f"{name_of(master)} is the master of term {replica.term}.")
        elif not self._is_read_only and replica.role == CANDIDATE:
            reached, voters = self._members.reached_voters, len(replica.voters)
            if reached < replica.quorum:
                self._is_read_only = True
                told = f"{reached} of {voters} members reach each other, {replica.quorum} are needed for a master"
                self._tell("read_only", f"This member is read-only: {told}.", is_warning=True)

    def _tell_cluster(self) -> None:
        replica = self._replica
        self._cluster = replica.cluster
        if not replica.membership.is_voter:
            self._tell("joining", f"This member joins the cluster {replica.cluster} as a learner.")
        elif len(replica.voters) > 1:
            self._tell("founded", f"The cluster {replica.cluster} was founded by {_names(replica.voters)}.")

    # --- members ----------------------------------------------------------------------

    def members_changed(self) -> None:
        """Log the learners to which this master has begun to send its log."""
        replica = self._replica
        if replica.role != MASTER:
            return
        learners = {each for each in replica.tracker.learners if not replica.followers[each].is_leaving}
        for each in sorted(learners - self._learners):
            self._tell("learner", f"{name_of(each)} ({each}) follows the log as a learner.")
        self._learners = learners

    def voters_committed(self) -> None:
        """Log which members became voters and which ceased to be voters, by entries that are committed."""
        before, self._voters = self._voters, tuple(voter.id for voter in self._replica.membership.committed_voters)
        if not before:
            return
        now = f"the voters are {_names(self._voters)}"
        for each in self._voters:
            if each not in before:
                self._tell("voter_added", f"{name_of(each)} ({each}) is a voter now: {now}.")
        for each in before:
            if each not in self._voters:
                self._tell("voter_removed", f"{name_of(each)} ({each}) is no voter any more: {now}.", is_warning=True)


def _names(member_ids: "tuple[str, ...] | dict[str, tuple[int, int]]") -> str:
    return ", ".join(sorted(map(name_of, member_ids)))
