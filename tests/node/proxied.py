"""A cluster in memory with a proxy beside it, which is linked to those members that it was introduced to."""

from collections.abc import Hashable

from elasticq.model import commands as c
from elasticq.model.errors import SqsError
from elasticq.model.results import Result
from elasticq.node.outputs import Frame
from elasticq.node.proxy import Proxy
from elasticq.node.settings import NodeSettings
from tests.node.cluster import WALL_MS, Cluster, Outcome, call_of

HOLD_MS = 25_000
PROXY_ID = "web-" + "7" * 16


class Proxied(Cluster):
    """All members are linked to each other and to the proxy, unless ``is_linked`` says no."""

    def __init__(self, names: str = "abc", *, is_linked: bool = True, hold_ms: int = HOLD_MS) -> None:
        self.proxy = proxy_of(hold_ms)
        self.linked: list[str] = []
        self.proxy_replies: dict[Hashable, list[Outcome]] = {}
        self.to_proxy: list[Frame] = []  # all that came
        super().__init__(names, hold_ms=HOLD_MS)
        self.proxy.start(self.now_ms, WALL_MS + self.now_ms)
        self.introduce_all()
        if is_linked:
            for name in names:
                self.link(name)

    def link(self, name: str) -> None:
        """A link between a member and the proxy comes up."""
        self.linked.append(name)
        self.proxy.met(self.node(name).introduce(), self.now_ms)
        self.drain_proxy()
        self.node(name).met(self.proxy.introduce(), self.now_ms)
        self.members[name].drain()
        self.settle()

    def unlink(self, name: str) -> None:
        self.linked.remove(name)
        self.proxy.lost(name, self.now_ms)
        self.drain_proxy()
        if name in self.members:
            self.node(name).lost(PROXY_ID, self.now_ms)
            self.members[name].drain()
        self.settle()

    def crash(self, name: str) -> None:
        super().crash(name)
        if name in self.linked:
            self.unlink(name)

    def deliver(self, sender: str, frame: Frame) -> None:
        if frame.to != PROXY_ID:
            super().deliver(sender, frame)
        elif sender in self.linked and not (self.drops is not None and self.drops(sender, frame)):
            self.to_proxy.append(frame)
            assert self.proxy.receive_all([(sender, frame.data)], self.now_ms) == []
            self.drain_proxy()

    def drain_proxy(self) -> None:
        effects = self.proxy.effects
        assert [effects.records, effects.committed, effects.fetches, effects.wanted] == [[], [], [], None]
        frames, replies = effects.frames.copy(), effects.replies.copy()
        effects.frames.clear()
        effects.replies.clear()
        for reply in replies:
            self.proxy_replies.setdefault(reply.ticket, []).append(reply.outcome)
        for frame in frames:
            if frame.to in self.linked:
                self.deliver(PROXY_ID, frame)

    def advance(self, ms: int) -> None:
        until_ms = self.now_ms + ms
        while True:
            wake_ms = self.proxy.effects.wake_at_ms
            if wake_ms is None or wake_ms > until_ms:
                break
            super().advance(max(0, wake_ms - self.now_ms))
            if self.proxy.effects.wake_at_ms == wake_ms:
                self.proxy.tick(self.now_ms)
                self.drain_proxy()
                self.settle()
        super().advance(until_ms - self.now_ms)

    def ask(self, command: c.Command, invocation: bytes = b"") -> int:
        """Submit a call to the proxy, and let everything happen that needs no time; the ticket."""
        self._tickets += 1
        self.proxy.submit(call_of(command, invocation), self._tickets, self.now_ms)
        self.drain_proxy()
        self.settle()
        return self._tickets

    def told(self, ticket: int) -> list[Outcome]:
        """All answers of the proxy to a call."""
        return self.proxy_replies.get(ticket, [])

    def done(self, command: c.Command, invocation: bytes = b"") -> Result:
        """The one answer of the proxy, which comes at once and is no error."""
        (outcome,) = self.told(self.ask(command, invocation))
        if isinstance(outcome, SqsError):
            raise outcome
        assert isinstance(outcome, Result)
        return outcome


def proxy_of(hold_ms: int = HOLD_MS) -> Proxy:
    return Proxy(NodeSettings(member_id=PROXY_ID, voters=(), incarnation="5" * 16, hold_ms=hold_ms))
