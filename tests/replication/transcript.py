"""Transcripts: a text file of commands, and under each what the members did.

    # a comment, or an empty line, stays as it is
    > advance 1500
    a stores vote 1 a
    a>b RequestVote term 1 log 0/0

``play`` gives the text with what happens now; where it differs from the file, something changed.
Members are written by their names; ``c2`` is the second member of the name c (its disk was lost).
Heartbeats that change nothing are left out.
"""

from collections import deque
from collections.abc import Callable, Iterator

from msgspec import Struct, field

from elasticq.engine.stored import mutations as m
from elasticq.engine.views.dump import dump
from elasticq.model import commands as c
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.node import forwarding, orders
from elasticq.node.node import Node
from elasticq.node.outputs import Frame
from elasticq.node.settings import NodeSettings
from elasticq.replication import messages as r
from elasticq.replication.records import BEGINNING, Base, Durable, Entry, Record, Truncation, Vote
from elasticq.replication.replica import MASTER

WALL_MS = 1_700_000_000_000
LOG_KEPT_BYTES = 100  # as good as nothing: who is away for long takes a snapshot
ORDERS: dict[str, Callable[[str], orders.Order]] = {
    "add": orders.AddVoter,
    "remove": orders.RemoveVoter,
    "replace": orders.ReplaceVoter,
    "transfer": orders.TransferMastership,
}


class Disk(Struct):
    """What a member keeps: the newest vote, its log, and rows where they stand."""

    vote: Vote = Vote(0, None)
    entries: list[Entry] = field(default_factory=list)
    base: Base = BEGINNING
    rows: bytes = m.encode([])

    def take(self, record: Record) -> None:
        match record:
            case Vote():
                self.vote = record
            case Truncation():
                self.entries = [entry for entry in self.entries if entry.index < record.index]
            case Entry():
                self.entries.append(record)

    def load(self) -> tuple[Durable, list[m.Mutation]]:
        kept = [entry for entry in self.entries if entry.index > self.base.index]
        return Durable(self.vote, kept, self.base, self.base.index), m.decode(self.rows)


class Player:
    """A member; ``node`` is None while it is down."""

    def __init__(self, name: str, nodes: int) -> None:
        self.name, self.nodes = name, nodes
        self.lives, self.ids = 0, 1
        self.disk = Disk()
        self.unsynced: list[tuple[int, Record]] = []
        self.frames: deque[Frame] = deque()
        self.synced_token = 0
        self.is_held = False
        self.node: Node | None = None
        self.seen: tuple[str, int] = ("", 0)
        self.wanted = 0
        self.voters: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.name}-{self.ids:016x}"


class Stage:
    """Plays one file."""

    def __init__(self) -> None:
        self.now_ms = 10_000
        self.players: dict[str, Player] = {}
        self.cuts: set[tuple[str, str]] = set()
        self.lines: list[str] = []
        self.is_silent = False
        self.number = 0

    # --- the commands -----------------------------------------------------------------

    def do(self, command: str) -> list[str]:
        """What happens at a command."""
        self.lines = []
        verb, *words = command.split()
        method: Callable[..., None] = getattr(self, f"do_{verb.replace('-', '_')}")
        method(*words)
        self._settle()
        return self.lines

    def do_voters(self, *names: str) -> None:
        """Members that know from the start who the voters are."""
        for name in names:
            self.players[name] = Player(name, len(names))
        for name in names:
            self.players[name].voters = tuple(self.players[each].id for each in names)
            self._boot(self.players[name])
        self.do_meet(*names)

    def do_fresh(self, nodes: str, *names: str) -> None:
        """Fresh members that shall be so many; they have not met."""
        for name in names:
            self.players[name] = Player(name, int(nodes))
            self._boot(self.players[name])

    def do_meet(self, *names: str) -> None:
        """Each hears what each other says of itself; again when that changed meanwhile."""
        for _ in range(2):
            for one in names:
                for other in names:
                    player, peer = self.players[one], self.players[other]
                    if player is not peer and player.node is not None and peer.node is not None:
                        player.node.met(peer.node.introduce(), self.now_ms)
                        self._drain(player)
            self._settle()

    def do_advance(self, ms: str) -> None:
        until_ms = self.now_ms + int(ms)
        while True:
            wakes = [(player.node.effects.wake_at_ms, name) for name, player in self.players.items() if player.node]
            due = [(wake_ms, name) for wake_ms, name in wakes if wake_ms is not None and wake_ms <= until_ms]
            if not due:
                break
            wake_ms, name = min(due)
            self.now_ms = max(self.now_ms, wake_ms)
            self._tick(self.players[name])
        self.now_ms = until_ms

    def do_elect(self, name: str) -> None:
        """It alone is woken until it is master; the others stand still."""
        player = self.players[name]
        self.now_ms += 1_400
        for _ in range(20):
            assert player.node is not None
            if player.node.serving:
                return
            self.now_ms = max(self.now_ms, player.node.effects.wake_at_ms or 0)
            self._tick(player)
        raise AssertionError(f"{name} did not become master")

    def _tick(self, player: Player) -> None:
        assert player.node is not None
        player.node.tick(self.now_ms)
        self._drain(player)
        self._settle()

    def do_write(self, name: str, count: str = "1") -> None:
        """A client creates queues there."""
        for _ in range(int(count)):
            self.number += 1
            node, player = self.players[name].node, self.players[name]
            assert node is not None
            call = c.Call(c.CreateQueue(queue_name=f"q{self.number}"), "x", DEFAULT_ACCOUNT, "http://x", b"")
            node.submit(call, f"q{self.number}", self.now_ms)
            self._drain(player)
            self._settle()

    def do_order(self, name: str, verb: str, member: str = "") -> None:
        node = self.players[name].node
        assert node is not None
        node.order(ORDERS[verb](member), "order", self.now_ms)
        self._drain(self.players[name])

    def do_hand_over(self, name: str) -> None:
        node = self.players[name].node
        assert node is not None
        node.hand_over(self.now_ms)
        self._drain(self.players[name])

    def do_cut(self, one: str, other: str) -> None:
        self.cuts |= {(one, other), (other, one)}

    def do_isolate(self, name: str) -> None:
        for other in self.players:
            self.do_cut(name, other)

    def do_heal(self) -> None:
        self.cuts.clear()

    def do_hold(self, name: str) -> None:
        """Its disk does not sync until it is released."""
        self.players[name].is_held = True

    def do_release(self, name: str) -> None:
        self.players[name].is_held = False

    def do_crash(self, name: str) -> None:
        player = self.players[name]
        player.node, player.unsynced = None, []
        player.frames.clear()
        self._lose(player)

    def _lose(self, gone: Player) -> None:
        for player in self.players.values():
            if player.node is not None and player is not gone:
                player.node.lost(gone.id, self.now_ms)
                self._drain(player)

    def do_start(self, name: str) -> None:
        self._boot(self.players[name])
        self.do_meet(*(name for name, player in self.players.items() if player.node is not None))

    def do_wipe(self, name: str) -> None:
        """The disk is lost; it comes back as another member."""
        self.do_crash(name)
        player = self.players[name]
        player.ids, player.disk, player.voters = player.ids + 1, Disk(), ()
        self.do_start(name)

    def do_store(self, name: str) -> None:
        """Its rows take all that is committed, and the log forgets what nobody needs."""
        player = self.players[name]
        node = player.node
        assert node is not None
        replica = node.replica
        assert node.applied_index == replica.commit_index
        player.disk.base = replica.log.base_at(replica.commit_index, replica.membership.committed_voters)
        player.disk.rows = m.encode([mutation for part in dump(node.state) for mutation in part])
        node.stored(replica.commit_index, self.now_ms)
        self._drain(player)
        self.lines.append(f"{name} keeps its log from {replica.log.first_index}")

    def do_install(self, name: str, source: str) -> None:
        """The rows of ``source`` in the place of log and rows, under a new node."""
        player, giver = self.players[name], self.players[source]
        old = player.node
        assert old is not None
        old.retire(self.now_ms)
        self._drain(player)
        linked = old.members.linked_peers
        player.disk = Disk(player.disk.vote, [], giver.disk.base, giver.disk.rows)
        self._boot(player)
        for peer in linked:
            assert player.node is not None
            player.node.met(peer, self.now_ms)
        self._drain(player)

    def do_quietly(self, *command: str) -> None:
        """What happens is not written down, but for the outcome of it all."""
        self.is_silent = True
        self.do(" ".join(command))
        self.is_silent = False

    def do_status(self) -> None:
        for name, player in self.players.items():
            if player.node is None:
                self.lines.append(f"{name} is down")
                continue
            replica = player.node.replica
            voters = ",".join(map(self._name, replica.voters)) or "none"
            log = f"log {replica.log.first_index}..{replica.log.last_index} ({replica.log.last_term})"
            standing = f"{replica.role} term {replica.term} {log} commit {replica.commit_index}"
            self.lines.append(f"{self._name(player.id)} {standing} voters {voters}")

    # --- what follows -------------------------------------------------------------------

    def _boot(self, player: Player) -> None:
        player.lives += 1
        player.unsynced, player.synced_token, player.wanted = [], 0, 0
        player.frames.clear()
        settings = NodeSettings(
            member_id=player.id, voters=player.voters, nodes=player.nodes, log_kept_bytes=LOG_KEPT_BYTES
        )
        durable, rows = player.disk.load()
        node = player.node = Node(settings, durable, player.name.encode() * 31 + bytes([player.lives]), rows)
        node.replica.tracker.in_flight_entries_max = 8
        node.start(self.now_ms, WALL_MS + self.now_ms)
        self._drain(player)

    def _drain(self, player: Player) -> None:
        node = player.node
        assert node is not None
        effects = node.effects
        who = self._name(player.id)
        for record in effects.records:
            player.unsynced.append((effects.token, record))
            self._say(f"{who} {_record(record)}")
        player.frames += effects.frames
        for reply in effects.replies:
            what = getattr(reply.outcome, "text", "") or getattr(reply.outcome, "reason", "")
            self._say(f"{who} answers {reply.ticket}: {what or type(reply.outcome).__name__}", is_loud=bool(what))
        self._tell(player, node)
        for each in (effects.records, effects.frames, effects.replies, effects.committed, effects.discarded):
            each.clear()

    def _tell(self, player: Player, node: Node) -> None:
        who, replica = self._name(player.id), node.replica
        seen = replica.role, replica.term
        if seen != player.seen and (replica.role == MASTER or player.seen[0] == MASTER):
            self._say(f"{who} is {replica.role} in term {replica.term}", is_loud=True)
        player.seen = seen
        wanted = node.effects.wanted.index if node.effects.wanted is not None else 0
        if wanted != player.wanted:
            self._say(f"{who} wants a snapshot at {wanted}" if wanted else f"{who} wants no snapshot", is_loud=True)
            player.wanted = wanted

    def _say(self, line: str, *, is_loud: bool = False) -> None:
        if is_loud or not self.is_silent:
            self.lines.append(line)

    def _settle(self) -> None:
        is_moving = True
        while is_moving:
            moved = [self._move(player) for player in list(self.players.values())]
            is_moving = any(moved)

    def _move(self, player: Player) -> bool:
        """Sync, and deliver what may leave."""
        node, is_moving = player.node, False
        if node is not None and not player.is_held and player.synced_token < node.effects.token:
            player.synced_token = node.effects.token
            for _, record in player.unsynced:
                player.disk.take(record)
            player.unsynced.clear()
            node.synced(player.synced_token, self.now_ms)
            self._drain(player)
            is_moving = True
        ready = [frame for frame in player.frames if frame.token <= player.synced_token]
        player.frames = deque(frame for frame in player.frames if frame.token > player.synced_token)
        for frame in ready:
            self._deliver(player, frame)
        return is_moving or bool(ready)

    def _deliver(self, player: Player, frame: Frame) -> None:
        target = next((each for each in self.players.values() if each.id == frame.to and each.node), None)
        is_lost = target is None or (player.name, target.name) in self.cuts
        line = self._frame(frame.data)
        if line:
            self._say(f"{self._name(player.id)}>{self._name(frame.to)} {line}{' (lost)' if is_lost else ''}")
        if target is not None and target.node is not None and not is_lost:
            target.node.receive(frame.data, self.now_ms)
            self._drain(target)

    # --- words ----------------------------------------------------------------------------

    @staticmethod
    def _name(member_id: str) -> str:
        name, _, number = member_id.rpartition("-")
        return name if int(number, 16) == 1 else f"{name}{int(number, 16)}"

    def _frame(self, data: bytes) -> str:
        """Empty for a heartbeat and its answer."""
        if data[0] == forwarding.FRAME_KIND:
            return type(forwarding.decode(data)).__name__
        message = r.decode(data)
        kind = type(message).__name__
        match message:
            case r.PreVote() | r.RequestVote():
                return f"{kind} term {message.term} log {message.last_index}/{message.last_term}"
            case r.PreVoteReply() | r.VoteReply():
                return f"{kind} term {message.term} {'yes' if message.granted else 'no'}"
            case r.Append():
                entries = ", ".join(_entry(entry) for entry in message.entries)
                after = f"{kind} after {message.prev_index}/{message.prev_term}: {entries}"
                return f"{after}, commit {message.commit_index}" if entries else ""
            case r.AppendReply():
                return "" if message.ok else f"{kind} no, try {message.match_index}"
            case r.Offer():
                return f"{kind} of a snapshot at {message.index}"
            case r.Found():
                return f"{kind} {_entry(message.entry)}"
        return f"{kind} term {message.term}"


def _entry(entry: Entry) -> str:
    names = "" if entry.voters is None else " voters " + ",".join(Stage._name(voter.id) for voter in entry.voters)
    return f"{entry.index}/{entry.term}{names}"


def _record(record: Record) -> str:
    match record:
        case Vote():
            return f"stores vote {record.term} {'-' if record.voted_for is None else Stage._name(record.voted_for)}"
        case Truncation():
            return f"cuts its log from {record.index}"
        case Entry():
            return f"stores entry {_entry(record)}"


def play(text: str) -> str:
    """The transcript with what happens now."""
    return "\n".join(_played(text.splitlines())) + "\n"


def _played(lines: list[str]) -> Iterator[str]:
    stage = Stage()
    for at, line in enumerate(lines):
        if line.startswith("> "):
            yield line
            yield from stage.do(line[2:])
            if at + 1 < len(lines) and not any(each.startswith(("> ", "#")) or not each for each in lines[at + 1 :]):
                return
        elif not line or line.startswith("#"):
            yield line
