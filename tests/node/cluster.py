"""Nodes under manual time: one alone, or several that pass real frames to each other in memory.

Time stands still until it is advanced; records become durable when asked (or
at once, for members in ``synced_at_once``); frames are lost while a link is cut.
Members that have been introduced to each other forward calls, greet anew when
what they say of themselves changes, and take snapshots of each other.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable

from elasticq.engine.stored import mutations as m
from elasticq.engine.views.dump import dump
from elasticq.model import commands as c
from elasticq.model.errors import SqsError
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.model.results import ReceivedMessage, ReceiveMessageResult, Result
from elasticq.node import forwarding
from elasticq.node.membership.peer import Peer
from elasticq.node.node import Node
from elasticq.node.orders import Order, OrderOutcome
from elasticq.node.outputs import Failure, Frame
from elasticq.node.settings import NodeSettings
from elasticq.replication.records import BEGINNING, NOTHING, Base, Durable, Entry, Record, Truncation, Vote
from elasticq.replication.replica import MASTER

WALL_MS = 1_700_000_000_000
ENDPOINT = "http://localhost:9324"
Outcome = Result | SqsError | OrderOutcome


def call_of(command: c.Command, invocation: bytes = b"") -> c.Call:
    return c.Call(command, "anonymous", DEFAULT_ACCOUNT, ENDPOINT, invocation)


def restored(records: list[Record], base: Base = BEGINNING) -> Durable:
    """What a storage would load from these records above ``base``."""
    vote, entries = Vote(0, None), list[Entry]()
    for record in records:
        match record:
            case Vote():
                vote = record
            case Truncation():
                del entries[record.index - base.index - 1 :]
            case Entry():
                assert record.index == base.index + len(entries) + 1
                entries.append(record)
    return Durable(vote, entries, base, base.index)


class Member:
    """A node with its disk, and the frames that wait for a sync."""

    def __init__(
        self, settings: NodeSettings, durable: Durable, entropy: bytes, rows: Iterable[m.Mutation] = ()
    ) -> None:
        self.rows = list(rows)  # of a snapshot, at ``base``
        self.base = durable.base
        self.entropy = entropy
        self.node = Node(settings, durable, entropy, self.rows)
        self.settings = settings
        self.disk: list[tuple[int, Record]] = []
        self.waiting: deque[Frame] = deque()
        self.synced_token = 0
        self.failures: list[Failure] = []
        self.may_fail = False  # what fails in judging a command fails the test, too
        self.replies: dict[Hashable, list[Outcome]] = {}
        self.reply_indexes: dict[Hashable, int] = {}

    def drain(self) -> None:
        effects = self.node.effects
        self.failures += effects.failures
        effects.failures.clear()
        if self.failures and not self.may_fail:
            raise self.failures[0].cause
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
        assert isinstance(outcome, Result)
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

    def __init__(
        self,
        names: Iterable[str] = "abc",
        *,
        volatile: bool = False,
        offsets_ms: tuple[int, ...] = (),
        voters: Iterable[str] | None = None,
        **settings: object,
    ) -> None:
        """``voters``: all of them unless told; ``settings``: of each node."""
        self.now_ms = 10_000
        self.names = tuple(names)
        self.voters = self.names if voters is None else tuple(voters)
        self.volatile = volatile
        self.settings = settings
        self.members: dict[str, Member] = {}
        self.down: dict[str, Member] = {}
        self.lives = 0
        self.cut: set[tuple[str, str]] = set()
        self.held = set[str]()  # members whose disks do not sync
        self.transfers = True  # snapshots that are wanted are taken
        self.links: dict[tuple[str, str], None] = {}  # in the order in which they came up
        self.greetings: dict[str, Peer] = {}
        self.lost_frames: list[tuple[str, Frame]] = []
        self.drops: Callable[[str, Frame], bool] | None = None  # what the network loses besides
        self.wall_offsets_ms = dict(zip(self.names, offsets_ms or (0,) * len(self.names), strict=True))
        self._tickets = 0
        for name in self.names:
            self._boot(name, NOTHING)
        self.settle()

    @classmethod
    def fresh(cls, names: Iterable[str] = "abc", *, nodes: int = 3, **settings: object) -> "Cluster":
        """Members without a past, which have not met; those of one forwarded message get a full id."""
        return cls([member_id(name) for name in names], voters=(), nodes=nodes, **settings)  # type: ignore[arg-type]

    def _boot(self, name: str, durable: Durable, rows: Iterable[m.Mutation] = (), **settings: object) -> None:
        self.lives += 1
        told = {"member_id": name, "voters": self.voters, "volatile": self.volatile, **self.settings, **settings}
        entropy = name.encode().ljust(31, b"-")[:31] + bytes([self.lives])
        self.members[name] = Member(NodeSettings(**told), durable, entropy, rows)  # type: ignore[arg-type]
        self.start(name)

    def start(self, name: str) -> None:
        self.members[name].node.start(self.now_ms, WALL_MS + self.now_ms + self.wall_offsets_ms.get(name, 0))
        self.members[name].drain()

    # --- members that meet and part -----------------------------------------------------

    def add(self, name: str, **settings: object) -> None:
        """A new member, which knows nobody yet."""
        self.names = (*self.names, name)
        self._boot(name, NOTHING, **{"voters": (), **settings})
        self.settle()

    def join(self, name: str, **settings: object) -> None:
        """A new member that meets all others."""
        self.add(name, **settings)
        self.introduce_all()

    def introduce(self, one: str, other: str) -> None:
        """A link comes up: both greet."""
        self.links[min(one, other), max(one, other)] = None
        self._greet(one, other)
        self._greet(other, one)
        self.settle()

    def introduce_all(self) -> None:
        for one in self.members:
            for other in self.members:
                if one < other and (one, other) not in self.cut:
                    self.introduce(one, other)

    def _greet(self, one: str, other: str) -> None:
        greeting = self.greetings[one] = self.node(one).introduce()
        self.node(other).met(greeting, self.now_ms)
        self.members[other].drain()

    def part(self, one: str, other: str) -> None:
        """A link breaks, and both notice."""
        self.cut |= {(one, other), (other, one)}
        self._unlink(one, other)

    def _unlink(self, one: str, other: str) -> None:
        self.links.pop((min(one, other), max(one, other)), None)
        for member, gone in ((one, other), (other, one)):
            if member in self.members:
                self.node(member).lost(gone, self.now_ms)
                self.members[member].drain()

    def _renew_greetings(self) -> bool:
        """Whoever says something else of itself now says it to all whom it knows."""
        changed = [name for name in self.greetings if name in self.members and self._says_something_else(name)]
        for name in changed:
            for other in self.linked_with(name):
                self._greet(name, other)
        return bool(changed)

    def _says_something_else(self, name: str) -> bool:
        return bool(self.linked_with(name)) and self.node(name).introduce() != self.greetings[name]

    def linked_with(self, name: str) -> list[str]:
        return [one if other == name else other for one, other in self.links if name in (one, other)]

    # --- snapshots ----------------------------------------------------------------------

    def _install_wanted(self) -> bool:
        is_moving = False
        for name, member in list(self.members.items()):
            wanted = member.node.effects.wanted
            if self.transfers and wanted is not None and wanted.source in self.members:
                is_moving |= self.install(name, wanted.source)
        return is_moving

    def install(self, name: str, source: str) -> bool:
        """A new node over a snapshot of what ``source`` has committed; False if it cannot make one now."""
        giver, old = self.node(source), self.members[name]
        replica = giver.replica
        wanted = old.node.effects.wanted
        if giver.applied_index > replica.commit_index or (wanted and replica.commit_index < wanted.index):
            return False
        base = replica.log.base_at(replica.commit_index, replica.membership.committed_voters)
        rows = [mutation for chunk in dump(giver.state) for mutation in chunk]
        vote = old.node.vote if old.node.vote.term >= base.term else Vote(base.term, None)
        held = old.node.retire(self.now_ms)
        old.drain()
        new = Member(old.settings, Durable(vote, [], base, base.index), old.entropy, rows)
        new.replies, new.reply_indexes, new.disk = old.replies, old.reply_indexes, [(0, vote)]
        self.members[name] = new
        self.start(name)
        for other in self.linked_with(name):
            self._greet(other, name)
        new.node.go_on_with(held, self.now_ms)
        new.drain()
        return True

    def forget_log(self, name: str) -> None:
        """As if it had grown beyond its bound: only what is pinned stays."""
        self.node(name).replica.compact(self.node(name).replica.commit_index, 1)

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
            is_moving |= self._renew_greetings()
            is_moving |= self._install_wanted()

    def deliver(self, sender: str, frame: Frame) -> None:
        is_dropped = self.drops is not None and self.drops(sender, frame)
        if is_dropped or (sender, frame.to) in self.cut or frame.to not in self.members:
            self.lost_frames.append((sender, frame))
            return
        target = self.members[frame.to]
        target.node.receive(frame.data, self.now_ms, sender)
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
        """Nothing comes or goes; those who are linked notice."""
        self.cut |= {(name, other) for other in self.names} | {(other, name) for other in self.names}
        for other in self.linked_with(name):
            self._unlink(name, other)

    def heal(self) -> None:
        was_linked = bool(self.greetings)
        self.cut.clear()
        self.held.clear()
        if was_linked:
            self.introduce_all()
        self.settle()

    def crash(self, name: str) -> None:
        """Stop a member; what was not synced is lost."""
        member = self.down[name] = self.members.pop(name)
        member.disk = [(0, record) for token, record in member.disk if token <= member.synced_token]
        for other in self.linked_with(name):
            self._unlink(name, other)

    def restart(self, name: str) -> None:
        old = self.down.pop(name)
        self._boot(name, restored([record for _, record in old.disk], old.base), old.rows, voters=old.settings.voters)
        self.members[name].disk = old.disk + self.members[name].disk
        if self.greetings:
            self.introduce_all()
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
        outcome = self.answer(name, ticket)
        if isinstance(outcome, SqsError):
            raise outcome
        assert isinstance(outcome, Result)
        return outcome

    def say(self, name: str, command: c.Command, invocation: bytes = b"") -> int:
        """Submit, and let everything happen that needs no time; the ticket."""
        ticket = self.submit(name, command, invocation)
        self.settle()
        return ticket

    def answer(self, name: str, ticket: int) -> Outcome:
        """The one answer, which must be there."""
        (outcome,) = self.answers(name, ticket)
        return outcome

    def order(self, name: str, order: Order) -> int:
        self._tickets += 1
        self.node(name).order(order, self._tickets, self.now_ms)
        self.members[name].drain()
        self.settle()
        return self._tickets

    def obey(self, name: str, order: Order) -> OrderOutcome:
        """The outcome of an order, within three seconds."""
        ticket = self.order(name, order)
        for _ in range(30):
            if self.answers(name, ticket):
                break
            self.advance(100)
        return self.answer(name, ticket)  # type: ignore[return-value]


def member_id(name: str, life: int = 1) -> str:
    return f"{name}-{life:016x}"


def mutations(solo: Solo, since: int = 0) -> list[m.Mutation]:
    """Of all its entries from number ``since`` on."""
    return [mutation for entry in solo.entries[since:] for mutation in m.decode(entry.payload)]


def bodies(cluster: Cluster) -> list[str]:
    """Of all messages of the queue "jobs" that are visible or become so; they stay hidden for ten minutes."""
    (master,) = cluster.serving()
    command = c.ReceiveMessage("jobs", wait_time_seconds=0, max_number_of_messages=10, visibility_timeout=600)
    found: list[str] = []
    while True:
        cluster.advance(200)
        messages = cluster.do(master, command).messages  # type: ignore[attr-defined]
        if not messages:
            return found
        found += [message.body for message in messages]


def is_answer(frame: Frame) -> bool:
    """True for the answer to a call that another member passed on."""
    is_forwarded = frame.data[:1] == forwarding.FORWARDED
    return is_forwarded and isinstance(forwarding.decode(frame.data), forwarding.Answer)
