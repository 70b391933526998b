"""The seeded world: virtual time, members, network and clients, one event after the other.

Everything follows from the scenario: each source of chance draws from a stream
of its own, named after it, so that leaving a fault out leaves the others as they are.
"""

from __future__ import annotations

import heapq
import traceback
from collections.abc import Callable
from hashlib import blake2b
from random import Random

from msgspec import Struct, field

from elasticq.checks.history import Event
from elasticq.checks.queue import check
from elasticq.checks.story import Finding
from elasticq.sim.clients import Load
from elasticq.sim.disk import DurableView
from elasticq.sim.faults import Scenario
from elasticq.sim.injector import Injector
from elasticq.sim.invariants import Invariants
from elasticq.sim.links import Links
from elasticq.sim.member import Member
from elasticq.sim.network import Network
from elasticq.sim.operator import Operator
from elasticq.sim.phases import Met

LATENCY_US = (50, 1_500)  # between a client and a member
LOAD_AFTER_HEAL_MS = 3_000
RUN_PAST_END_MAX_MS = 60_000
RECOVERY_MAX_US = 5_000_000  # design: faults stop, and a master serves and commits what it is sent
CLIENT_TURNS_US = 3_000_000  # an attempt may hang for so long before its client turns to another member
FINDINGS_MAX = 10
NODE_FAILED, NO_PROGRESS, NO_MASTER = "node_failed", "no_progress", "no_master"
MOVE_STUCK = "move_stuck"
ORDER_NOT_DONE, LEFT_BEHIND, LEFT_OUT = "order_not_done", "left_behind", "left_out"
BEHIND_ENTRIES_MAX = 20


class Transfers(Struct):
    """Snapshots: taken in hand, interrupted on the way, installed."""

    begun: int = 0
    cut: int = 0
    installed: int = 0


class Outcome(Struct):
    """What a run was and what it showed."""

    seed: int
    members: int
    simulated_ms: int
    operations: int
    elections: int
    faults: int
    frames: int
    events: int
    trace_hash: str
    transfers: Transfers
    orders: int
    met: Met
    findings: list[Finding]
    history: list[Event]
    trace: list[str] = field(default_factory=list)


class World:
    """One run of one scenario; ``run`` once."""

    def __init__(self, scenario: Scenario, *, keeps_trace: bool = False) -> None:
        self.scenario = scenario
        self.now_us = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._trace_hash = blake2b(digest_size=16)
        self._keeps_trace = keeps_trace
        self._trace: list[str] = []
        self.findings: list[Finding] = []
        self.elections = 0
        self.events = 0
        self.is_healed = False
        self._latency = self.random("latency")
        self._by_id: dict[str, Member] = {}
        self.gone: dict[str, DurableView] = {}  # what members had that are no more, by id
        self.transfers = Transfers()
        self.transfer_random = self.random("transfers")
        self.members = [self._new_member(index) for index in range(scenario.members + scenario.spares)]
        founders = self.members[: scenario.members]
        for member in founders if not scenario.is_founded_by_meeting else ():
            member.voters = tuple(each.id for each in founders)
        for spare in self.members[scenario.members :]:
            spare.is_wanted = False
        self.invariants = Invariants(self)
        self.network = Network(
            self.random("network"),
            self.schedule,
            self._deliver,
            loss_share=scenario.loss_share,
            duplicate_share=scenario.duplicate_share,
            straggler_share=scenario.straggler_share,
        )
        self.links = Links(self)
        self.network.mended = self.links.count
        self.operator = Operator(self)
        self.injector = Injector(self)
        self.load = Load(self)

    def _new_member(self, index: int) -> Member:
        scenario = self.scenario
        skews_ms = scenario.wall_skew_ms
        skew_ms = skews_ms[index] if index < len(skews_ms) else 0  # at most one clock is wild: a minority
        return Member(self, index, f"m{index + 1}", skew_ms, is_volatile=index in scenario.volatile)

    # --- for all that lives here ------------------------------------------------

    def random(self, name: str) -> Random:
        """A stream of chance of its own for ``name``."""
        return Random(f"{self.scenario.seed}/{name}")

    def schedule(self, delay_us: int, action: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (self.now_us + delay_us, self._sequence, action))

    def after_latency(self, action: Callable[..., None], *arguments: object) -> None:
        """Something passes between a client and a member."""
        self.schedule(self._latency.randint(*LATENCY_US), lambda: action(*arguments))

    def trace(self, kind: str, who: str, what: object) -> None:
        line = f"{self.now_us} {kind} {who} {what}"
        self._trace_hash.update(line.encode())
        if self._keeps_trace:
            self._trace.append(line)

    def found(self, name: str, evidence: str) -> None:
        self.trace("found", name, evidence)
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(Finding(name, evidence, self.now_us))

    def node_failed(self, member: Member, failure: Exception) -> None:
        """An assertion of the core, or worse: the member would stop, the run does."""
        where = "".join(traceback.format_exception(failure)[-3:])
        self.found(NODE_FAILED, f"{member.name}: {where}")
        member.crash()

    def renamed(self, member: Member) -> None:
        self._by_id[member.id] = member

    @property
    def lost_voters(self) -> list[str]:
        """Voters whose disks are gone for good."""
        master = self.master
        assert master is not None
        assert master.node is not None
        return [each for each in master.node.replica.voters if self._by_id[each].id != each]

    @property
    def lost_or_unsettled(self) -> bool:
        """Something is under way with the voters, or one of them is gone for good."""
        master = self.master
        return master is None or bool(self.lost_voters) or bool(self.operator.tasks)

    def may_forget(self, member: Member) -> bool:
        """What it has may be lost for good: the other voters are sure to have it all, and are a quorum."""
        master = self.master
        if master is None or master.node is None:
            return False
        replica = master.node.replica
        if member.id not in replica.voters:
            return True
        is_settled = master.node.serving and replica.membership.index <= replica.commit_index
        spare = len(replica.voters) - replica.membership.quorum
        return is_settled and len(self.lost_voters) + 1 <= spare

    def master_appended(self, member: Member) -> None:
        self.injector.master_appended(member)

    def voted(self, member: Member) -> None:
        self.injector.voted(member)

    @property
    def master(self) -> Member | None:
        """Of the living masters the one with the highest term: an older one does not know yet."""
        return max(filter(_is_master, self.members), key=_term, default=None)

    def _deliver(self, sender: str, to: str, data: bytes) -> None:
        self._trace_hash.update(b"%d %s %s %d" % (self.now_us, sender.encode(), to.encode(), len(data)))
        member = self._by_id.get(to)
        if member is not None and member.id == to:
            member.receive(data)

    # --- the run ------------------------------------------------------------------

    def run(self) -> Outcome:
        for member in self.members:
            if member.is_wanted:
                member.start()
        self.links.start()
        self.load.start()
        self.injector.start()
        self.schedule(self.scenario.heal_ms * 1_000, self._heal)
        end_us = self.scenario.duration_ms * 1_000
        self._run_until(end_us)
        while not self.findings and not self.load.is_drained and self.now_us < end_us + RUN_PAST_END_MAX_MS * 1_000:
            self._run_until(self.now_us + 500_000)
        if not self.findings:
            self._at_rest()
        return self._outcome()

    def _run_until(self, until_us: int) -> None:
        """Until then, or until something was found: what follows a broken rule proves nothing."""
        heap = self._heap
        while heap and heap[0][0] <= until_us and not self.findings:
            self.now_us, _, action = heapq.heappop(heap)
            self.events += 1
            action()
        if not self.findings:
            self.now_us = until_us

    def _heal(self) -> None:
        self.trace("heal", "all", "")
        self.is_healed = True
        self.injector.heal()
        self.schedule(LOAD_AFTER_HEAL_MS * 1_000, self.load.drain)
        self.schedule(RECOVERY_MAX_US, self.injector.add_who_lost_its_place)

    def _at_rest(self) -> None:
        """All faults are over and all is drained: the history is judged, the rows are compared."""
        if self.master is None:
            self.found(NO_MASTER, "no master at the end")
        heal_us = self.scenario.heal_ms * 1_000
        first_us = self.load.first_write_after_heal_us
        if first_us is None or first_us - heal_us > RECOVERY_MAX_US + CLIENT_TURNS_US:
            self.found(NO_PROGRESS, f"healed at {heal_us} us, the first write succeeded at {first_us}")
        served_us = self.invariants.served_us
        if served_us is None or served_us - heal_us > RECOVERY_MAX_US:
            self.found(NO_PROGRESS, f"healed at {heal_us} us, a master served at {served_us}")
        undone = [task for task in self.operator.tasks if not task.is_tried_once and not task.is_void()]
        if undone:
            orders = ", ".join(str(task.order()) for task in undone)
            self.found(ORDER_NOT_DONE, f"{orders}: still not done at {self.now_us} us")
        master = self.master
        if master is not None and master.node is not None and master.node.state.moving:
            self.found(MOVE_STUCK, f"{list(master.node.state.moving.values())} at the end")
        for member in self.members:
            if member.node is not None:
                self.invariants.compare_rows(member)
            self._look_after(member)
        drain_us = self.load.drain_us if self.load.is_drained else None
        history = self.invariants.without_excused(self.load.history)
        for finding in check(history, jumps=self.invariants.jumps, drain_us=drain_us):
            self.found(finding.name, finding.evidence)

    def _look_after(self, member: Member) -> None:
        """Whoever belongs to the cluster has followed; one that lives in memory is a voter again."""
        master, node = self.master, member.node
        if master is None or master.node is None or node is None or not member.is_wanted:
            return
        if node.applied_index + BEHIND_ENTRIES_MAX < master.node.replica.commit_index:
            self.found(LEFT_BEHIND, f"{member.name} has applied {node.applied_index} at the end")
        if member.is_volatile and member.id not in master.node.replica.voters:
            self.found(LEFT_OUT, f"{member.id} is no voter at the end")

    def _outcome(self) -> Outcome:
        return Outcome(
            seed=self.scenario.seed,
            members=self.scenario.members,
            simulated_ms=self.now_us // 1_000,
            operations=len(self.load.history),
            elections=self.elections,
            faults=self.injector.struck,
            frames=self.network.frames,
            events=self.events,
            trace_hash=self._trace_hash.hexdigest(),
            transfers=self.transfers,
            orders=self.operator.done,
            met=self.injector.met,
            findings=self.findings,
            history=self.load.history,
            trace=self._trace,
        )


def _is_master(member: Member) -> bool:
    return member.node is not None and member.node.replica.role == "master"


def _term(member: Member) -> int:
    assert member.node is not None
    return member.node.replica.term


def run(scenario: Scenario, *, keeps_trace: bool = False) -> Outcome:
    """Run ``scenario`` from its beginning to its end."""
    return World(scenario, keeps_trace=keeps_trace).run()
