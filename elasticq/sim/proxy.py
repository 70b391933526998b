"""A simulated proxy: the real Proxy, without a disk. Each start of its process is a new peer for the members."""

from __future__ import annotations

from elasticq.model.errors import SqsError
from elasticq.model.results import Result
from elasticq.node.proxy import Proxy
from elasticq.node.reply import Reply
from elasticq.node.settings import NodeSettings
from elasticq.sim.faults import Scenario
from elasticq.sim.member import Observer
from elasticq.sim.network import Network
from elasticq.sim.process import NODE_FAILED, Process
from elasticq.sim.queues import limits_of
from elasticq.sim.scheduler import Scheduler
from elasticq.sim.trace import Trace

STOP_US, LOOK_US = 300_000, 10_000  # a graceful stop waits for replies at most STOP_US, and checks every LOOK_US


class ProxyProcess(Process[Proxy]):
    """A proxy. index: its number among the proxies."""

    def __init__(
        self, scenario: Scenario, scheduler: Scheduler, trace: Trace, network: Network, observer: Observer, index: int
    ) -> None:
        super().__init__(scheduler, trace, network, f"p{index + 1}")
        self.scenario = scenario
        self.observer = observer
        self.index = index
        self._id_random = scheduler.random(f"id {self.name}")

    def start(self) -> None:
        if self.node is not None:
            return
        self.process += 1
        self.life += 1
        self.trace.note("start", self.name, self.life)
        self.id = f"{self.name}-{self._id_random.getrandbits(64):016x}"
        self.wake_us = None
        self.node = Proxy(
            NodeSettings(
                member_id=self.id,
                voters=(),
                limits=limits_of(self.scenario.features, is_relaxed=self.scenario.bounds.is_relaxed),
                incarnation=f"{self._id_random.getrandbits(64):016x}",
                nodes=self.scenario.members,
                hold_ms=self.scenario.hold_ms,
            )
        )
        self.call(lambda node: node.start(self.boot_ms, self.wall_ms))

    def crash(self) -> None:
        """End the process. The calls that it had passed on get no reply."""
        if self.node is None:
            return
        self.trace.note("crash", self.name, self.life)
        self.node = None
        self.life += 1
        self.observer.ended(self)
        self._refuse_all()

    def stop(self) -> None:
        """Stop gracefully: end waiting receives, then end the process when all calls are answered, or after STOP_US."""
        if self.node is not None and not self.is_paused:
            self._stop(self.life, self.scheduler.now_us + STOP_US)

    def _stop(self, life: int, until_us: int) -> None:
        if self.node is None or self.life != life:
            return
        if not self.tickets or self.scheduler.now_us >= until_us:
            self.crash()
            return
        self.call(lambda node: node.close_waiters(self.boot_ms))
        self.scheduler.schedule(LOOK_US, lambda: self._stop(life, until_us))

    def _fail(self) -> None:
        self.crash()

    def receive(self, sender: str, data: bytes) -> None:
        self.call(lambda node: self._receive(node, sender, data))

    def _receive(self, node: Proxy, sender: str, data: bytes) -> None:
        for _, error in node.receive_all([(sender, data)], self.boot_ms):
            self.trace.found(NODE_FAILED, f"{self.name} refused a frame of {sender}: {error}")

    def _report_reply(self, reply: Reply, outcome: Result | SqsError) -> None:
        self.observer.judge.passed_on(self.name, reply, outcome)

    def _drain(self, node: Proxy) -> None:
        effects = node.effects
        assert not [*effects.records, *effects.committed, *effects.fetches], "a proxy has nothing to store"
        frames = effects.frames.copy()
        effects.frames.clear()
        for frame in frames:
            self.network.send(self.id, frame.to, frame.data)
        self._release_all(effects.replies)
        effects.news.clear()
        self._arm(effects.wake_at_ms)
