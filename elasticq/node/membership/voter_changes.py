"""Changes of the voters, one at a time: orders of the operator, and members that restarted under an old name.

An order is answered when its entry is committed. A replacement takes two entries: the first one removes the old voter,
and the second one adds the new voter.
"""

from typing import Final

from msgspec import Struct

from elasticq.node.membership.members import Members, name_of
from elasticq.node.orders import AddVoter, Order, OrderDone, OrderOutcome, OrderRefused, RemoveVoter, ReplaceVoter
from elasticq.node.outputs import Ticket
from elasticq.node.settings import NodeSettings
from elasticq.replication.records import Voter
from elasticq.replication.replica import MASTER, Replica

CAUGHT_UP_ENTRIES = 1_000  # a learner that is no further behind than this may become a voter
NOT_THE_MASTER: Final = "this member is not the master: ask the master"


class _Promise(Struct):
    """An order that is answered once ``index`` is committed in ``term``."""

    ticket: Ticket
    term: int
    index: int
    text: str


class VoterChanges:
    """The changes of voters that are to be proposed. ``answered`` holds the orders whose answers may leave."""

    def __init__(self, settings: NodeSettings, replica: Replica, members: Members) -> None:
        self._settings = settings
        self._replica = replica
        self._members = members
        self.answered: list[tuple[Ticket, OrderOutcome]] = []
        self._promises: list[_Promise] = []
        self._replacing: dict[str, tuple[str, Ticket | None]] = {}  # new id -> (old id, ticket of the order, if any)

    def order(self, order: Order, ticket: Ticket) -> tuple[Voter, ...] | None:
        """Return the voters to propose for an order; None if it is refused, or carried out later by ``next_change``."""
        if self._replica.role != MASTER:
            self._refuse(ticket, NOT_THE_MASTER)
            return None
        match order:
            case AddVoter():
                return self._add(order.member, ticket)
            case RemoveVoter():
                return self._remove(order.member, ticket)
            case ReplaceVoter():
                return self._replace(order.member, ticket)
        return None

    def _add(self, name: str, ticket: Ticket) -> tuple[Voter, ...] | None:
        learner = self._find(name, tuple(self._candidates))
        if not learner:
            self._refuse(ticket, f"{name} is no learner: start it with this cluster's seeds first")
        elif old := self._members.predecessor(learner):
            self._refuse(ticket, f"{learner} has the name of the voter {old}: use 'replace'")
        elif not self.has_caught_up(learner):
            self._refuse(ticket, f"{name} has not caught up yet: try again")
        elif self._may_change(ticket):
            self.promise(ticket, f"{learner} is a voter")
            return self._with(learner)
        return None

    def _remove(self, name: str, ticket: Ticket) -> tuple[Voter, ...] | None:
        voter = self._find(name, self._replica.voters)
        if not voter:
            self._refuse(ticket, f"{name} is no voter")
        elif len(self._replica.voters) == 1:
            self._refuse(ticket, f"{name} is the last voter")
        elif self._may_change(ticket):
            self.promise(ticket, f"{voter} is no voter any more")
            return self._without(voter)
        return None

    def _replace(self, name: str, ticket: Ticket) -> tuple[Voter, ...] | None:
        old = self._find(name, self._replica.voters)
        new = next((each for each in self._candidates if old and self._members.predecessor(each) == old), "")
        if not old and self._find(name, tuple(self._candidates)):
            return self._add(name, ticket)  # the old voter was removed before the mastership moved
        if not new:
            self._refuse(ticket, f"no new member has the name of {name}")
        elif old in self._members.linked:
            self._refuse(ticket, f"{old} is alive")
        elif not self.has_caught_up(new):
            self._refuse(ticket, f"{new} has not caught up yet: try again")
        elif self._may_change(ticket):
            self._replacing[new] = (old, ticket)
        return None

    def has_caught_up(self, learner: str) -> bool:
        replica = self._replica
        progress = replica.followers[learner]
        is_near = progress.match_index + CAUGHT_UP_ENTRIES >= replica.log.last_index
        return is_near and not progress.probing and not progress.offered_index and progress.match_index > 0

    def next_change(self) -> tuple[Voter, ...] | None:
        """Return the voters to propose next to replace a voter by the member with its name; None without such a change.

        The dead voter is removed first. If the new one were added first and died, the quorum could be out of reach.
        """
        replica = self._replica
        if not replica.may_change():
            return None
        if not self._replacing:
            self._replace_volatile()
        for new, (old, ticket) in list(self._replacing.items()):
            if old in replica.voters:
                return self._without(old) if len(replica.voters) > 1 else None
            del self._replacing[new]
            if new in self._candidates:
                if ticket is not None:
                    self.promise(ticket, f"{new} is a voter in the place of {old}")
                return self._with(new)
            if ticket is not None:
                self._refuse(ticket, f"{new} is gone; {old} is no voter any more")
        return None

    def _replace_volatile(self) -> None:
        """Let a memory-only member that restarted replace its predecessor without an order.

        If the mastership moved in between, its predecessor may be removed already. Then there are fewer voters than
        ``nodes``.
        """
        is_short = len(self._replica.voters) < self._settings.nodes
        for learner in self._candidates:
            peer, old = self._members.peers.get(learner), self._members.predecessor(learner)
            if not (peer and peer.is_volatile and self.has_caught_up(learner)):
                continue
            if (old and old not in self._members.linked) or (not old and is_short):
                self._replacing[learner] = (old, None)
                return

    def refuse_transfer(self, name: str, ticket: Ticket) -> None:
        """Refuse to hand over the mastership to ``name`` (empty: any voter), and give the reason."""
        if self._replica.role != MASTER:
            self._refuse(ticket, NOT_THE_MASTER)
        elif not self._replica.others:
            self._refuse(ticket, "this member is the only voter: nobody else can become master")
        elif name and not self.other_voter(name):
            self._refuse(ticket, f"{name} is not one of the other voters, which 'elasticq cluster status' shows")
        else:
            self._refuse(ticket, "this member is still taking over the mastership: try again")

    def other_voter(self, name: str) -> str:
        """Return the id of the other voter called ``name``; empty if there is none."""
        return self._find(name, self._replica.others)

    def _find(self, name: str, among: tuple[str, ...]) -> str:
        if name in among:
            return name
        found = [each for each in among if name_of(each) == name]
        return found[0] if len(found) == 1 else ""

    @property
    def _candidates(self) -> list[str]:
        """Return the linked learners. Removed voters and dead learners stay known for a while, but are not linked."""
        return [each for each in self._replica.tracker.learners if each in self._members.linked]

    def _may_change(self, ticket: Ticket) -> bool:
        if self._replica.may_change() and not self._replacing:
            return True
        self._refuse(ticket, "another change of the voters is under way: try again when it is committed")
        return False

    def _with(self, learner: str) -> tuple[Voter, ...]:
        peer = self._members.peers.get(learner)
        return (*self._replica.membership.voters, Voter(learner, peer.address if peer else ""))

    def _without(self, old: str) -> tuple[Voter, ...]:
        return tuple(voter for voter in self._replica.membership.voters if voter.id != old)

    def promise(self, ticket: Ticket, text: str) -> None:
        """Answer the order with ``text`` once the next entry of the log is committed."""
        replica = self._replica
        self._promises.append(_Promise(ticket, replica.term, replica.log.last_index + 1, text))

    def keep_promises(self) -> None:
        """Answer the orders whose entry is committed."""
        if not self._promises:
            return
        replica = self._replica
        for promise in list(self._promises):
            if promise.index <= replica.commit_index:
                self._promises.remove(promise)
                self.answered.append((promise.ticket, OrderDone(promise.text)))

    def _refuse(self, ticket: Ticket, reason: str) -> None:
        self.answered.append((ticket, OrderRefused(reason)))

    def lost_mastership(self) -> None:
        waiting = [promise.ticket for promise in self._promises]
        waiting += [ticket for _, ticket in self._replacing.values() if ticket is not None]
        for ticket in waiting:
            self.refuse_lost(ticket)
        self._promises.clear()
        self._replacing.clear()

    def refuse_lost(self, ticket: Ticket) -> None:
        """Refuse an order that this member cannot finish, because it is not the master any more."""
        self._refuse(ticket, "the mastership was lost meanwhile: check the status and try again")
