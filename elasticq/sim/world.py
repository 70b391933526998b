"""The run of a scenario, which connects scheduler, cluster, clients, faults and checks; and its outcome."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from elasticq.checks.history import Event
from elasticq.checks.queue_history import Finding
from elasticq.sim.adjusters import Timekeeper
from elasticq.sim.clients import Clients
from elasticq.sim.cluster import Cluster
from elasticq.sim.faults import Scenario
from elasticq.sim.groups import GroupClients
from elasticq.sim.injector import Injector
from elasticq.sim.invariants import Invariants
from elasticq.sim.links import Links
from elasticq.sim.member import Member
from elasticq.sim.operator import Operator
from elasticq.sim.phases import Met
from elasticq.sim.process import Process
from elasticq.sim.scheduler import Scheduler
from elasticq.sim.topics import TopicClients
from elasticq.sim.trace import Trace
from elasticq.sim.transfers import Transfer, Transfers
from elasticq.sim.verdict import RECOVERY_MAX_US, judge_at_rest
from elasticq.sim.workload import Workload

LOAD_AFTER_HEAL_MS = 3_000
RUN_PAST_END_MAX_MS = 60_000


class Outcome(Struct):
    """The parameters, the numbers and the findings of a run."""

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
    """One run of one scenario. Call ``run`` only once.

    It connects the parts, and passes on the events that members report (``Observer``).
    """

    def __init__(self, scenario: Scenario, *, keeps_trace: bool = False) -> None:
        self.scenario = scenario
        self.scheduler = Scheduler(scenario.seed)
        self.trace = Trace(self.scheduler, keeps_lines=keeps_trace)
        self.cluster = Cluster(scenario, self.scheduler, self.trace, self)
        self.links = Links(self.cluster)
        self.cluster.network.mended = self.links.count
        self.judge = Invariants(self.cluster, self.links)
        self.transfers = Transfers()
        self.transfer_random = self.scheduler.random("transfers")
        self.workload = Workload(self.cluster)
        self.clients = Clients(self.cluster, self.workload)
        self.topics = TopicClients(self.cluster, self.workload)
        self.groups = GroupClients(self.cluster, self.workload, self.judge.group_log)
        self.operator = Operator(self.cluster)
        timekeeper = Timekeeper(self.cluster, self.workload, "timekeeper")
        self.injector = Injector(self.cluster, self.operator, timekeeper)

    # --- events that members report -------------------------------------------------

    def voted(self, member: Member) -> None:
        self.injector.voted(member)

    def appended_as_master(self, member: Member) -> None:
        self.injector.master_appended(member)

    def stepped(self, member: Member) -> None:
        self.injector.look()

    def ended(self, process: Process[Any]) -> None:
        self.links.ended(process.id)

    def wants_snapshot(self, member: Member) -> Transfer:
        return Transfer(self.cluster, member, self.transfer_random, self.transfers)

    # --- the run ------------------------------------------------------------------

    def run(self) -> Outcome:
        for member in self.cluster.members:
            if member.is_wanted:
                member.start()
        for proxy in self.cluster.proxies:
            proxy.start()
        self.links.start()
        self.clients.start()
        self.topics.start()
        self.groups.start()
        self.injector.start()
        self.scheduler.schedule(self.scenario.heal_ms * 1_000, self._heal)
        end_us = self.scenario.duration_ms * 1_000
        self.scheduler.run_until(end_us)
        while (
            not self.trace.findings
            and not self.clients.is_drained
            and self.scheduler.now_us < end_us + RUN_PAST_END_MAX_MS * 1_000
        ):
            self.scheduler.run_until(self.scheduler.now_us + 500_000)
        if not self.trace.findings:
            judge_at_rest(self.cluster, self.judge, self.workload, self.clients, self.operator)
            if self.cluster.master is not None:
                self.topics.judge(self.cluster.master)
            self.groups.judge(self.judge.jumps)
        return self._outcome()

    def _heal(self) -> None:
        self.trace.note("heal", "all", "")
        self.cluster.is_healed = True
        self.injector.heal()
        self.scheduler.schedule(LOAD_AFTER_HEAL_MS * 1_000, self.workload.drain)
        self.scheduler.schedule(RECOVERY_MAX_US, self.injector.add_who_lost_its_place)

    def _outcome(self) -> Outcome:
        return Outcome(
            seed=self.scenario.seed,
            members=self.scenario.members,
            simulated_ms=self.scheduler.now_us // 1_000,
            operations=len(self.workload.history),
            elections=self.judge.elections,
            faults=self.injector.struck,
            frames=self.cluster.network.frames,
            events=self.scheduler.events,
            trace_hash=self.trace.hash,
            transfers=self.transfers,
            orders=self.operator.done,
            met=self.injector.met,
            findings=self.trace.findings,
            history=self.workload.history,
            trace=self.trace.lines,
        )


def run(scenario: Scenario, *, keeps_trace: bool = False) -> Outcome:
    """Run a scenario from start to end and return its outcome. keeps_trace: keep a line for each event."""
    return World(scenario, keeps_trace=keeps_trace).run()
