"""A simulated consumer group: its consumers, their faults, and the check of its history by checks/groups.py.

The consumers are in group_consumer.py. In addition to the faults of the members, consumers are killed, paused, cut
from the network, or leave. An operator moves resources, drains consumers and recreates queues. All this ends shortly
before the faults of the members do, so the group can settle before the run ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from elasticq.checks.group_history import Ordered, Rest
from elasticq.checks.groups import check
from elasticq.checks.queue_history import Jump
from elasticq.model.commands import Command, DeleteQueue, SendMessage
from elasticq.model.errors import SqsError
from elasticq.model.group_commands import ElasticqDrainConsumer, ElasticqMoveResource, ElasticqSetGroup
from elasticq.model.group_results import GroupChangedResult
from elasticq.model.results import Result
from elasticq.node.outputs import Ticket
from elasticq.sim.client import Client, Periodic
from elasticq.sim.cluster import Cluster
from elasticq.sim.faults import LOAD_FROM_MS
from elasticq.sim.group_consumer import Consumer
from elasticq.sim.group_log import PREFIX, GroupLog
from elasticq.sim.group_record import GROUP, STREAM, GroupRecord, plan, url_of
from elasticq.sim.queues import GROUPS
from elasticq.sim.workload import Workload

FIFO_GROUPS: Final = 9  # the number of message groups in the partitioned queue
SEND_US: Final = (50_000, 400_000)
FAULTS: Final = (8, 20)
LENGTH_US: Final = (100_000, 6_000_000)
ANEW_US: Final = (10_000, 400_000)
CALM_MS: Final = 1_000  # the faults of consumers end this long before those of members
KINDS: Final = ("kill", "kill", "pause", "pause", "cut", "cut", "leave", "move", "drain", "anew", "anew")


class Insisting(Client):
    """A client that repeats each call until it is answered with a result or an error."""

    is_refused = False

    def start(self) -> None:
        """Do nothing: other parts start each call."""

    def answered(self, ticket: Ticket, outcome: Result | SqsError) -> None:
        self.is_refused = isinstance(outcome, SqsError)
        super().answered(ticket, outcome)
        self.is_refused = False

    def insist(self, command: Command, done: Callable[[Result | None], None]) -> None:
        """Repeat a call until it is answered. done: gets the result, or None for an error."""

        def ended(result: Result | None) -> None:
            if result is None and not self.is_refused:
                self.insist(command, done)
            else:
                done(result)

        self.begin(command, None, ended)


class GroupProducer(Periodic):
    """A producer for the queues of the group."""

    pause_us = SEND_US

    def __init__(self, cluster: Cluster, workload: Workload, name: str, queues: list[str]) -> None:
        super().__init__(cluster, workload, name)
        self.queues = queues

    def act(self) -> None:
        queue = self.random.choice(self.queues)
        group = str(self.random.randrange(FIFO_GROUPS)) if queue == STREAM else None
        command = SendMessage(url_of(queue), f"{self.name}-{self.number}", message_group_id=group)
        self.begin(command, None, lambda _: self.start())


class GroupClients:
    """The group of a run with all its clients. Scenarios without the feature ``groups`` have none."""

    def __init__(self, cluster: Cluster, workload: Workload, log: GroupLog) -> None:
        self.cluster = cluster
        self.workload = workload
        self.scheduler = cluster.scheduler
        self.is_there = GROUPS in cluster.scenario.features
        self.random = self.scheduler.random("group faults")
        self.plan = plan(self.scheduler.seed)
        self.record = GroupRecord(log)
        self.consumers: list[Consumer] = []
        self.calm_us = 1_000 * (cluster.scenario.heal_ms - CALM_MS)
        self.has_begun = False
        self.is_making = False

    def start(self) -> None:
        if self.is_there:
            self.founder = Insisting(self.cluster, self.workload, "group founder")
            self.operator = Insisting(self.cluster, self.workload, "group operator")
            chosen = self.plan
            commands: list[Command] = [chosen.create(queue) for queue in chosen.queues]
            group = ElasticqSetGroup(
                group_name=GROUP,
                queue_name_prefix=None if chosen.partitions else PREFIX,
                partitions_of=chosen.queues[0] if chosen.partitions else None,
                session_timeout_ms=chosen.session_ms,
                rebalance_delay_ms=chosen.delay_ms,
                max_per_consumer=chosen.max_per_consumer,
            )
            commands.insert(self.random.randint(0, len(commands)), group)
            self._found(commands)

    def _found(self, commands: list[Command]) -> None:
        """Create the queues and the group one by one, then start the consumers and schedule their faults."""
        if commands:
            command, *others = commands
            self.founder.insist(command, lambda _: self._found(others))
            return
        self.has_begun = True
        cluster, workload, record = self.cluster, self.workload, self.record
        self.consumers = [
            Consumer(cluster, workload, record, f"member{number}", weight)
            for number, weight in enumerate(self.plan.weights)
        ]
        for consumer in self.consumers:
            self.scheduler.schedule(self.random.randint(0, 3_000_000), consumer.start)
        GroupProducer(cluster, workload, "group producer", self.plan.queues).start()
        for _ in range(self.random.randint(*FAULTS)):
            self.scheduler.schedule_at(self.random.randint(1_000 * LOAD_FROM_MS, self.calm_us), self._strike)
        self.scheduler.schedule_at(self.calm_us, self._calm)

    # --- the faults of consumers --------------------------------------------------------

    def _strike(self) -> None:
        consumer, kind = self.random.choice(self.consumers), self.random.choice(KINDS)
        length_us = self.random.randint(*LENGTH_US)
        self.cluster.trace.note("group fault", kind, consumer.name)
        end: Callable[[], None] | None = None
        if kind == "anew" and (holder := self._recreate_queue()) is not None:
            consumer, kind = holder, self.random.choice(("pause", "cut", "leave"))
        match kind:
            case "kill":
                consumer.kill()
                end = consumer.start
            case "pause":
                consumer.pause()
                end = consumer.resume
            case "cut":
                consumer.is_cut = True
                end = consumer.mend
            case "leave":
                consumer.leave()
            case "move" | "drain" if consumer.id and self.operator.running is None:
                self._order(kind, consumer)
        if end is not None:
            self.scheduler.schedule_at(min(self.scheduler.now_us + length_us, self.calm_us), end)

    def _calm(self) -> None:
        for consumer in self.consumers:
            consumer.calm()

    def _order(self, kind: str, consumer: Consumer) -> None:
        if kind == "move":
            resource = self.random.choice(self.plan.resources)
            self.record.log.decisions.append(Ordered(self.scheduler.now_us, resource, consumer.id))
            self.operator.insist(ElasticqMoveResource(GROUP, resource, consumer.id), lambda _: None)
        else:
            drained = consumer.id
            self.operator.insist(ElasticqDrainConsumer(GROUP, drained), partial(self._drained, drained))

    def _drained(self, consumer: str, result: Result | None) -> None:
        if isinstance(result, GroupChangedResult):
            self.record.drained.add(consumer)

    def _recreate_queue(self) -> Consumer | None:
        """Delete a queue and recreate it soon. Return its holder, so a fault can hide the deletion from it.

        Return None if another queue is being recreated, or if nobody holds this one.
        """
        if self.is_making:
            return None
        self.is_making = True
        queue, delay_us = self.random.choice(self.plan.queues), self.random.randint(*ANEW_US)

        def again(_: Result | None) -> None:
            create = self.plan.create(queue)
            self.scheduler.schedule(delay_us, lambda: self.founder.insist(create, self._made))

        self.founder.insist(DeleteQueue(url_of(queue)), again)
        return next((each for each in self.consumers if each.holds(queue)), None)

    def _made(self, result: Result | None) -> None:
        self.is_making = False

    # --- the check --------------------------------------------------------------------

    def judge(self, jumps: list[Jump]) -> None:
        """Check the whole history at the end of the run. jumps: the jumps of cluster time."""
        if not self.has_begun:
            return
        log = self.record.log
        jumps = [*log.advances, *(each for each in jumps if each.ahead_ms > 0)]
        events = [*log.decisions, *self.record.events]
        for finding in check(events, 1_000 * self.plan.session_ms, jumps=jumps, rest=self._rest()):
            self.cluster.trace.found(finding.name, finding.evidence)

    def _rest(self) -> Rest | None:
        now_us = self.scheduler.now_us
        is_busy = self.is_making or self.operator.running is not None
        if is_busy or now_us < 1_000 * self.cluster.scenario.heal_ms + self.plan.quiet_us:
            return None
        weights = {each.id: 0 if each.id in self.record.drained else each.weight for each in self.consumers if each.id}
        return Rest(now_us, weights, self.plan.resources, self.plan.max_per_consumer)
