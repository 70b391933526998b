"""Nodes under manual time: one alone, or several that pass real frames to each other in memory.

Time stands still until it is advanced; records become durable when asked (or
at once, for members in ``synced_at_once``); frames wait while a link is cut.
"""

from collections import deque
from collections.abc import Hashable

from elasticq.model import commands as c
from elasticq.model.errors import SqsError
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.model.results import ReceivedMessage, ReceiveMessageResult, Result
from elasticq.node.effects import Frame
from elasticq.node.node import Node
from elasticq.node.settings import NodeSettings
from elasticq.replication.records import NOTHING, Durable, Entry, Record, Truncation, Vote
from elasticq.replication.replica import MASTER

WALL_MS = 1_700_000_000_000
ENDPOINT = "http://localhost:9324"
Outcome = Result | SqsError


def call_of(command: c.Command, invocation: bytes = b"") -> c.Call:
    return c.Call(command, "anonymous", DEFAULT_ACCOUNT, ENDPOINT, invocation)


def restored(records: list[Record]) -> Durable:
    """What a storage would load from these records."""
    vote, entries = Vote(0, None), list[Entry]()
    for record in records:
        match record:
            case Vote():
                vote = record
            case Truncation():
                del entries[record.index - 1 :]
            case Entry():
                assert record.index == len(entries) + 1
                entries.append(record)
    return Durable(vote, entries)


class Member:
    """A node with its disk, and the frames that wait for a sync."""

    def __init__(self, settings: NodeSettings, durable: Durable, entropy: bytes) -> None:
        self.node = Node(settings, durable, entropy)
        self.settings = settings
        self.disk: list[tuple[int, Record]] = []
        self.waiting: deque[Frame] = deque()
        self.synced_token = 0
        self.replies: dict[Hashable, list[Outcome]] = {}
        self.reply_indexes: dict[Hashable, int] = {}

    def drain(self) -> None:
        effects = self.node.effects
        self.disk += [(effects.token, record) for record in effects.records]
        self.waiting += effects.frames
        for reply in effects.replies:
            self.replies.setdefault(reply.ticket, []).append(reply.outcome)
            self.reply_indexes[reply.ticket] = reply.index
        effects.records.clear()
        effects.frames.clear()
        effects.replies.clear()

    def ready_frames(self) -> list[Frame]:
        """Each frame leaves once what it rests on is durable, in order."""
        ready = []
        while self.waiting and self.waiting[0].token <= self.synced_token:
            ready.append(self.waiting.popleft())
        return ready

    def sync(self, now_ms: int) -> None:
        self.synced_token = self.node.effects.token
        self.node.synced(self.synced_token, now_ms)
        self.drain()


class Solo:
    """A cluster of one."""

    def __init__(self, *, volatile: bool = True, durable: Durable = NOTHING, **settings: object) -> None:
        self.now_ms = 1_000
        self.member = Member(
            NodeSettings(member_id="a", voters=("a",), volatile=volatile, **settings), durable, b"e" * 32
        )
        self.member.disk = [(0, record) for record in (durable.vote, *durable.entries)]
        self.synced_at_once = True
        self._tickets = 0
        self.node.start(self.now_ms, WALL_MS + self.now_ms)
        self._settle()

    @property
    def node(self) -> Node:
        return self.member.node

    @property
    def time_ms(self) -> int:
        """Cluster time."""
        return WALL_MS + self.now_ms

    @property
    def entries(self) -> list[Entry]:
        """The log: from the disk, or, where nothing is kept, from memory."""
        if self.member.settings.volatile:
            log = self.node.replica.log
            return log.slice(log.first_index, len(log), 2**40)
        return restored([record for _, record in self.member.disk]).entries

    def _settle(self) -> None:
        self.member.drain()
        while self.synced_at_once and self.member.synced_token < self.node.effects.token:
            self.member.sync(self.now_ms)

    def sync(self) -> None:
        self.member.sync(self.now_ms)

    def start_call(self, command: c.Command, invocation: bytes = b"") -> int:
        """Submit; the ticket, whose replies stand in ``member.replies``."""
        self._tickets += 1
        self.node.submit(call_of(command, invocation), self._tickets, self.now_ms)
        self._settle()
        return self._tickets

    def answers(self, ticket: int) -> list[Outcome]:
        return self.member.replies.get(ticket, [])

    def do(self, command: c.Command, invocation: bytes = b"") -> Result:
        """The one answer, which must be there at once; raises it if it is an error."""
        (outcome,) = self.answers(self.start_call(command, invocation))
        if isinstance(outcome, SqsError):
            raise outcome
        return outcome

    def advance(self, ms: int) -> None:
        """Let time pass and tick at every wake-up on the way."""
        until_ms = self.now_ms + ms
        while (wake_ms := self.node.effects.wake_at_ms) is not None and wake_ms <= until_ms:
            self.now_ms = max(self.now_ms, wake_ms)
            self.node.tick(self.now_ms)
            self._settle()
            after_ms = self.node.effects.wake_at_ms
            assert after_ms is None or after_ms > self.now_ms or after_ms != wake_ms, "a tick that does nothing"
        self.now_ms = until_ms

    def call_node(self, method: str, *arguments: object) -> None:
        getattr(self.node, method)(*arguments, self.now_ms)
        self._settle()

    # --- shorthands -----------------------------------------------------------------

    def create(self, name: str = "jobs", **attributes: str) -> None:
        self.do(c.CreateQueue(queue_name=name, attributes=attributes))

    def send(self, body: str = "body", *, delay_s: int | None = None) -> Result:
        return self.do(c.SendMessage(queue_url="jobs", message_body=body, delay_seconds=delay_s))

    def receive(self, limit: int = 1, *, visibility_s: int | None = None) -> list[ReceivedMessage]:
        command = c.ReceiveMessage(
            queue_url="jobs", max_number_of_messages=limit, visibility_timeout=visibility_s, wait_time_seconds=0
        )
        result = self.do(command)
        assert isinstance(result, ReceiveMessageResult)
        return result.messages

    def poll(self, wait_s: int = 20, *, limit: int = 1, invocation: bytes = b"") -> int:
        """A long poll's ticket."""
        command = c.ReceiveMessage(queue_url="jobs", max_number_of_messages=limit, wait_time_seconds=wait_s)
        return self.start_call(command, invocation)


class Cluster:
    """Several members on one table. Frames are delivered by ``settle``, in order, unless a link is cut."""

    def __init__(self, names: str = "abc", *, volatile: bool = False, offsets_ms: tuple[int, ...] = ()) -> None:
        self.now_ms = 10_000
        self.names = tuple(names)
        self.volatile = volatile
        self.members: dict[str, Member] = {}
        self.down: dict[str, list[tuple[int, Record]]] = {}  # disks of members that are down
        self.lives = 0
        self.cut: set[tuple[str, str]] = set()
        self.held = set[str]()  # members whose disks do not sync
        self.lost_frames: list[tuple[str, Frame]] = []
        self.wall_offsets_ms = dict(zip(self.names, offsets_ms or (0,) * len(self.names), strict=True))
        self._tickets = 0
        for name in self.names:
            self._boot(name, NOTHING)
        self.settle()

    def _boot(self, name: str, durable: Durable) -> None:
        self.lives += 1
        settings = NodeSettings(member_id=name, voters=self.names, volatile=self.volatile)
        entropy = name.encode() * 31 + bytes([self.lives])
        self.members[name] = Member(settings, durable, entropy)
        self.members[name].node.start(self.now_ms, WALL_MS + self.now_ms + self.wall_offsets_ms[name])
        self.members[name].drain()

    def node(self, name: str) -> Node:
        return self.members[name].node

    # --- time and network ---------------------------------------------------------------

    def settle(self) -> None:
        """Sync and deliver until nothing moves."""
        is_moving = True
        while is_moving:
            is_moving = False
            for name, member in list(self.members.items()):
                if name not in self.held and member.synced_token < member.node.effects.token:
                    member.sync(self.now_ms)
                    is_moving = True
                for frame in member.ready_frames():
                    is_moving = True
                    self.deliver(name, frame)

    def deliver(self, sender: str, frame: Frame) -> None:
        if (sender, frame.to) in self.cut or frame.to not in self.members:
            self.lost_frames.append((sender, frame))
            return
        target = self.members[frame.to]
        target.node.receive(frame.data, self.now_ms)
        target.drain()

    def advance(self, ms: int) -> None:
        until_ms = self.now_ms + ms
        while True:
            wakes = [(member.node.effects.wake_at_ms, name) for name, member in self.members.items()]
            due = [(wake_ms, name) for wake_ms, name in wakes if wake_ms is not None and wake_ms <= until_ms]
            if not due:
                break
            wake_ms, name = min(due)
            self.now_ms = max(self.now_ms, wake_ms)
            self.members[name].node.tick(self.now_ms)
            self.members[name].drain()
            self.settle()
        self.now_ms = until_ms

    def isolate(self, name: str) -> None:
        self.cut |= {(name, other) for other in self.names} | {(other, name) for other in self.names}

    def heal(self) -> None:
        self.cut.clear()
        self.held.clear()
        self.settle()

    def crash(self, name: str) -> None:
        """Stop a member; what was not synced is lost."""
        member = self.members.pop(name)
        self.down[name] = [(0, record) for token, record in member.disk if token <= member.synced_token]

    def restart(self, name: str) -> None:
        disk = self.down.pop(name)
        self._boot(name, restored([record for _, record in disk]))
        self.members[name].disk = disk + self.members[name].disk
        self.settle()

    # --- who is who -------------------------------------------------------------------------

    def masters(self) -> list[str]:
        return [name for name, member in self.members.items() if member.node.replica.role == MASTER]

    def serving(self) -> list[str]:
        return [name for name, member in self.members.items() if member.node.serving]

    def elect(self) -> str:
        """Advance until one member serves."""
        for _ in range(200):
            if self.serving():
                return self.serving()[-1]
            self.advance(100)
        raise AssertionError("nobody was elected within 20 s")

    def elect_other(self, than: str) -> str:
        for _ in range(200):
            others = [name for name in self.serving() if name != than]
            if others:
                return others[0]
            self.advance(100)
        raise AssertionError("nobody else was elected within 20 s")

    # --- calls ------------------------------------------------------------------------------

    def submit(self, name: str, command: c.Command, invocation: bytes = b"") -> int:
        """Without delivering anything afterwards."""
        self._tickets += 1
        member = self.members[name]
        member.node.submit(call_of(command, invocation), self._tickets, self.now_ms)
        member.drain()
        return self._tickets

    def answers(self, name: str, ticket: int) -> list[Outcome]:
        return self.members[name].replies.get(ticket, [])

    def do(self, name: str, command: c.Command, invocation: bytes = b"") -> Result:
        ticket = self.submit(name, command, invocation)
        self.settle()
        (outcome,) = self.answers(name, ticket)
        if isinstance(outcome, SqsError):
            raise outcome
        return outcome
