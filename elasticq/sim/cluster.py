"""The members of a run, the network between them, and questions that need the state of all members."""

from __future__ import annotations

from typing import Any

from elasticq.sim.disk import DurableView
from elasticq.sim.faults import Scenario
from elasticq.sim.member import Member, Observer
from elasticq.sim.network import Network
from elasticq.sim.phases import ELECTION, HAND_OVER, LEASE_OPEN, LEASE_SEALED, MOVING, SNAPSHOT, TAKEOVER
from elasticq.sim.process import Process
from elasticq.sim.proxy import ProxyProcess
from elasticq.sim.scheduler import Scheduler
from elasticq.sim.trace import Trace


class Cluster:
    """The members and proxies of a run, and the network between them.

    processes: the members and the proxies; clients call all of them. is_healed: the faults have ended.
    gone: the contents of lost disks by member id.
    """

    def __init__(self, scenario: Scenario, scheduler: Scheduler, trace: Trace, observer: Observer) -> None:
        self.scenario = scenario
        self.scheduler = scheduler
        self.trace = trace
        self.is_healed = False
        self.gone: dict[str, DurableView] = {}
        self.network = Network(
            scheduler.random("network"),
            scheduler.schedule,
            self._deliver,
            loss_share=scenario.loss_share,
            duplicate_share=scenario.duplicate_share,
            straggler_share=scenario.straggler_share,
        )
        indexes = range(scenario.members + scenario.spares)
        self.members = [self._new_member(index, observer) for index in indexes]
        self.proxies = [
            ProxyProcess(scenario, scheduler, trace, self.network, observer, at) for at in range(scenario.proxies)
        ]
        self.processes: list[Process[Any]] = [*self.members, *self.proxies]
        founders = self.members[: scenario.members]
        for member in founders if not scenario.is_founded_by_meeting else ():
            member.voters = tuple(each.id for each in founders)
        for spare in self.members[scenario.members :]:
            spare.is_wanted = False

    def _new_member(self, index: int, observer: Observer) -> Member:
        return Member(self.scenario, self.scheduler, self.trace, self.network, self.gone, observer, index)

    def _deliver(self, sender: str, to: str, data: bytes) -> None:
        self.trace.frame(sender, to, len(data))
        for process in self.processes:
            if process.id == to:
                process.receive(sender, data)
                return

    @property
    def master(self) -> Member | None:
        """Return the running master with the highest term, None if there is none.

        A master with a lower term has been replaced and has not noticed it yet.
        """
        return max(filter(_is_master, self.members), key=_term, default=None)

    @property
    def lost_voters(self) -> list[str]:
        """Return the ids of the voters whose disks are lost for good. There must be a master."""
        master = self.master
        assert master is not None
        assert master.node is not None
        ids = {member.id for member in self.members}
        return [each for each in master.node.replica.voters if each not in ids]

    def may_forget(self, member: Member) -> bool:
        """Return whether a member's data may be lost. The other voters must be a quorum and have all of it."""
        master = self.master
        if master is None or master.node is None:
            return False
        replica = master.node.replica
        if member.id not in replica.voters:
            return True
        is_settled = master.node.serving and replica.membership.index <= replica.commit_index
        spare = len(replica.voters) - replica.membership.quorum
        others = [each for each in self.members if each is not member and each.id in replica.voters]
        lost = len(self.lost_voters) + sum(each.is_about_to_forget for each in others)
        return is_settled and lost + 1 <= spare

    @property
    def phases(self) -> set[str]:
        """Return the current phases, without ``TWO_AT_ONCE``, which only the injector knows."""
        found = set()
        master = self.master
        if master is None or master.node is None:
            found.add(ELECTION)
        else:
            node = master.node
            if not node.serving:
                found.add(TAKEOVER)
            if node.leadership.hands_over_until_ms:
                found.add(HAND_OVER)
            if node.state.moving:
                found.add(MOVING)
            for lease in node.state.leases.living.values():
                found.add(LEASE_SEALED if lease.is_sealed else LEASE_OPEN)
        if any(member.transfer is not None for member in self.members):
            found.add(SNAPSHOT)
        return found


def _is_master(member: Member) -> bool:
    return member.node is not None and member.node.replica.role == "master"


def _term(member: Member) -> int:
    assert member.node is not None
    return member.node.replica.term
