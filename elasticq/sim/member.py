"""One simulated member: the real Node with a disk, a gate and clocks that can be crashed, paused and restarted.

The member does for its node what runtime/ does for users: records to the disk,
frames behind the sync gate, replies to their tickets, ticks when they are due.
A new life is a new Node over what the disk kept; so is what follows the install
of a snapshot. A member whose disk was lost, or who has none, is another member
under the same name from then on.
"""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import Any, Protocol

from elasticq.model.errors import SqsError
from elasticq.model.results import Result
from elasticq.node.node import Node
from elasticq.node.orders import Order
from elasticq.node.outputs import Fetch, Frame, Reply, Ticket
from elasticq.node.settings import NodeSettings
from elasticq.replication.messages import AnyMessage, VoteReply, decode
from elasticq.replication.records import Entry, Record, Vote
from elasticq.sim.disk import Copy, Disk, DurableView, Memory, copy_of_memory, in_a_fork
from elasticq.sim.faults import Scenario
from elasticq.sim.network import Network
from elasticq.sim.process import OrderGiver, Process
from elasticq.sim.queues import limits_of
from elasticq.sim.scheduler import Scheduler
from elasticq.sim.trace import Trace
from elasticq.storage.gate import SyncGate
from elasticq.storage.interface import Loaded
from elasticq.storage.rows.batches import Batch

TAG_AT, VOTE_TAG, APPEND_TAG = 2, 4, 5  # in a frame: version, array head, tag; an Append promises nothing: not decoded
REPLICATION = 1  # a frame's first byte; forwarded messages between nodes have another
HAND_OVER_US, HAND_OVER_STEP_US = 1_500_000, 20_000


def void(_: object) -> None:
    """Drop what a call gives back, as an action gives back nothing."""


def decode_vote(data: bytes) -> VoteReply:
    message = decode(data)
    assert type(message) is VoteReply
    return message


class Judge(Protocol):
    """Checks the rules of a run at each step, so a member tells it what it does."""

    def starting(self, member: Member, vote: Vote) -> None:
        """A node was made over a log whose newest vote is ``vote``."""

    def started(self, member: Member, vote: Vote) -> None:
        """That node has started."""

    def installing(self, member: Member, copy: Copy) -> None:
        """A snapshot is about to take the place of what the member has."""

    def installed(self, member: Member) -> None:
        """The snapshot is in place, and a new node has started over it."""

    def crashed(self, member: Member) -> None:
        """The process ends."""

    def recorded(self, member: Member, records: list[Record]) -> None:
        """Records were appended to the disk, and are not synced."""

    def synced(self, member: Member, records: list[Record]) -> None:
        """These records are durable."""

    def decided(self, member: Member, vote: VoteReply) -> None:
        """A vote is made; its frame waits for the disk."""

    def released(self, member: Member, message: AnyMessage) -> None:
        """A frame leaves the member."""

    def replied(self, member: Member, reply: Reply, outcome: Result | SqsError) -> None:
        """A reply leaves the member."""

    def passed_on(self, name: str, reply: Reply, outcome: Result | SqsError) -> None:
        """A reply leaves a proxy."""

    def discarded(self, member: Member, entries: list[Entry]) -> None:
        """Entries whose effects were acknowledged were dropped for a newer master's, and the member said so."""

    def stepped(self, member: Member) -> None:
        """All that follows from one entry into the node is done."""


class Observer(Protocol):
    """Reacts in the same moment to what a member does."""

    @property
    def judge(self) -> Judge:
        """The judge of the run."""

    def voted(self, member: Member) -> None:
        """The member let out a granted vote."""

    def appended_as_master(self, member: Member) -> None:
        """The member is master and appended an entry that no other member has yet."""

    def stepped(self, member: Member) -> None:
        """All that follows from one entry into the node is done, and judged."""

    def ended(self, process: Process[Any]) -> None:
        """The process of a member or a proxy has ended."""

    def wants_snapshot(self, member: Member) -> object:
        """The node wants a snapshot; what comes back stands for the transfer until it is over."""


class Member(Process[Node]):
    """A member; ``transfer`` is None while no snapshot is on its way to it."""

    def __init__(
        self,
        scenario: Scenario,
        scheduler: Scheduler,
        trace: Trace,
        network: Network,
        gone: dict[str, DurableView],
        observer: Observer,
        index: int,
    ) -> None:
        name = f"m{index + 1}"
        super().__init__(scheduler, trace, network, name)
        self.scenario = scenario
        self.gone = gone
        self.observer = observer
        self.index = index
        self.is_volatile = index in scenario.volatile
        self.id_random = scheduler.random(f"id {name}")
        self.number = 0  # of the member ids it has had
        self.disk: Disk
        self.voters: tuple[str, ...] = ()
        self.is_wanted = True  # its process shall run
        skews_ms = scenario.wall_skew_ms
        self.wall_skew_ms = skews_ms[index] if index < len(skews_ms) else 0  # at most one clock is wild: a minority
        self._stopping_life = -1  # the life that a graceful stop is about to end
        self.gate = SyncGate()
        self.is_syncing = False
        self.is_flushing = False
        self.transfer: object | None = None
        self.become_another()

    def become_another(self) -> None:
        """Begin anew with an empty disk, and the new member id that is made with it."""
        if self.id:
            self.gone.setdefault(self.id, self.disk.view)
        self.number += 1
        self.id = self._new_id()
        self.voters = ()
        kind = Memory if self.is_volatile else Disk
        self.disk = kind(
            self.scheduler.random(f"disk {self.name} {self.number}"),
            self.scheduler.random(f"rows {self.name} {self.number}"),
        )

    def _new_id(self) -> str:
        return f"{self.name}-{self.id_random.getrandbits(64):016x}"

    @property
    def settings(self) -> NodeSettings:
        scenario = self.scenario
        return NodeSettings(
            member_id=self.id,
            voters=self.voters,
            volatile=self.is_volatile,
            memory_bytes=scenario.bounds.memory_bytes,
            batch_bytes_max=scenario.bounds.batch_bytes,
            limits=limits_of(scenario.features, is_relaxed=scenario.bounds.is_relaxed),
            incarnation=f"{self.id}/{self.process}",
            nodes=scenario.members,
            mode=scenario.mode,
            hold_ms=scenario.hold_ms,
            broken_link_ms=scenario.broken_link_ms,
            log_kept_bytes=scenario.log_kept_bytes,
        )

    # --- life -----------------------------------------------------------------

    def start(self) -> None:
        if self.node is not None:
            return
        self.process += 1
        self._begin(self.disk.load())

    def _begin(self, loaded: Loaded) -> None:
        """Make and start a node over what was loaded: at the start of a process, and after an install."""
        self.life += 1
        self.trace.note("start", self.name, self.life)
        durable = loaded.durable
        self.gate = SyncGate()
        self.is_syncing, self.is_flushing, self.wake_us, self.transfer = False, False, None, None
        seed = f"{self.scenario.seed}/{self.id}/{self.life}".encode()
        node = self.node = Node(self.settings, durable, blake2b(seed, digest_size=32).digest(), loaded.rows)
        node.replica.tracker.in_flight_entries_max = self.scenario.bounds.in_flight_entries
        self.observer.judge.starting(self, durable.vote)
        self.network.mended()
        self.call(lambda node: node.start(self.boot_ms, self.wall_ms))
        if self.node is node:
            self.observer.judge.started(self, durable.vote)

    def snapshot(self, index: int) -> Copy | None:
        """Return a snapshot of what this member has committed, None if that does not reach ``index``."""
        node = self.node
        if node is None or not self.is_volatile:
            return self.disk.copy(index)
        if node.replica.commit_index < index:
            return None
        if node.journal.is_open or node.replica.commit_index != node.applied_index:
            return in_a_fork(lambda: copy_of_memory(*node.journal.committed_state()))
        return copy_of_memory(*node.journal.committed_state())

    def install(self, copy: Copy) -> None:
        """Put the copy in the place of what this member has; calls that wait at the old node are answered."""
        old = self.node
        assert old is not None
        self.observer.judge.installing(self, copy)
        held = old.retire(self.boot_ms)
        self.observer.judge.discarded(self, old.effects.discarded)
        replies = old.effects.replies.copy()
        for reply in replies:
            self._release(reply)
        linked = old.members.linked_peers
        self._begin(self.disk.install(copy, old.vote))
        for peer in linked:
            self.call(lambda node, peer=peer: node.met(peer, self.boot_ms))  # type: ignore[misc]
        self.call(lambda node: node.go_on_with(held, self.boot_ms))
        if self.node is not None:
            self.observer.judge.installed(self)

    def crash(self, *, reboots: bool = False, keeps_cache: bool = False) -> None:
        """The process is gone; unless only it died (``keeps_cache``), so is what was not synced.

        reboots: the machine's boot-time clock begins anew.
        """
        if self.node is None:
            return
        self.trace.note("crash", self.name, self.life)
        self.observer.judge.crashed(self)
        if self.is_volatile:
            self.gone[self.id] = self.disk.view
        self.disk.crash(keeps_cache=keeps_cache)
        self.node = None
        self.life += 1
        self.observer.ended(self)
        self.gate.clear()
        if reboots:
            self.boot_offset_us = self.clock_random.randrange(10**6, 10**8) - self.scheduler.now_us
        self._refuse_all()
        if self.is_volatile:
            self.become_another()

    def stop(self) -> None:
        """Stop gracefully: give the mastership away, then end the process; everything written is kept."""
        if self.node is not None and not self.is_paused:
            self._stopping_life = self.life
            self.call(lambda node: node.close_waiters(self.boot_ms))
            self.call(lambda node: void(node.hand_over(self.boot_ms)))
            self._stop_when_free(self.life, self.scheduler.now_us + HAND_OVER_US)

    @property
    def is_about_to_forget(self) -> bool:
        """Whether it lives in memory and is being stopped: it is still there, and what it knows is as good as lost."""
        return self.is_volatile and self.node is not None and self._stopping_life == self.life

    def _stop_when_free(self, life: int, until_us: int) -> None:
        node = self.node
        if node is None or self.life != life:
            return
        if node.replica.role == "master" and node.replica.others and self.scheduler.now_us < until_us:
            self.scheduler.schedule(HAND_OVER_STEP_US, lambda: self._stop_when_free(life, until_us))
        else:
            self.crash(keeps_cache=True)

    # --- what comes in ----------------------------------------------------------

    def _fail(self) -> None:
        self.crash()

    def receive(self, sender: str, data: bytes) -> None:
        self.call(lambda node: node.receive(data, self.boot_ms))

    def order(self, giver: OrderGiver, ticket: Ticket, order: Order) -> None:
        self.tickets[ticket] = giver
        self.call(lambda node: node.order(order, ticket, self.boot_ms))

    # --- what goes out ----------------------------------------------------------

    def _drain(self, node: Node) -> None:
        effects = node.effects
        if effects.records:
            records = effects.records.copy()
            effects.records.clear()
            self.disk.append(records, effects.token)
            self.observer.judge.recorded(self, records)
            self._begin_sync()
            if node.replica.role == "master" and any(type(record) is Entry for record in records):
                self.observer.appended_as_master(self)
                if self.node is not node:
                    return
        if effects.committed or effects.fetches:
            self._follow(node)
        if effects.frames:
            frames = effects.frames.copy()
            effects.frames.clear()
            for frame in frames:
                if frame.data[0] == REPLICATION and frame.data[TAG_AT] == VOTE_TAG:
                    self.observer.judge.decided(self, decode_vote(frame.data))
            self._transmit(self.gate.add(frames))
            if self.node is not node:
                return
        replies = effects.replies.copy()
        effects.replies.clear()
        for reply in replies:
            self._release(reply)
        effects.news.clear()
        if effects.discarded:
            self.observer.judge.discarded(self, effects.discarded)
            effects.discarded.clear()
        self.observer.judge.stepped(self)
        self.observer.stepped(self)
        if effects.wanted is not None and self.transfer is None:
            self.transfer = self.observer.wants_snapshot(self)
        self._arm(effects.wake_at_ms)

    def _follow(self, node: Node) -> None:
        """Give the rows on disk what is committed, and fetch the contents that the node asks for."""
        effects = node.effects
        for committed in effects.committed:
            self.disk.take(committed)
        effects.committed.clear()
        if effects.log_floor:
            self.disk.forget_log(effects.log_floor)
        life = self.life
        for fetch in effects.fetches:
            self.scheduler.schedule(self.disk.fetch_us(), partial(self._fetched, fetch, life))
        effects.fetches.clear()
        if not self.is_flushing and not self.is_volatile:
            self.is_flushing = True
            self.scheduler.schedule(self.disk.flush_us(), lambda: self._flush(life))

    def _fetched(self, fetch: Fetch, life: int) -> None:
        if self.node is not None and self.life == life:
            contents = self.disk.fetch(fetch)
            self.call(lambda node: node.fetched(fetch, contents, self.boot_ms))

    def _flush(self, life: int) -> None:
        if self.node is None or self.life != life:
            return
        batch = self.disk.begin_rows()
        if batch is None:
            self.is_flushing = False
            return
        self.scheduler.schedule(self.disk.store_us(), lambda: self._stored(batch, life))

    def _stored(self, batch: Batch, life: int) -> None:
        if self.node is None or self.life != life:
            return
        self.is_flushing = False
        index = self.disk.store_rows(batch)
        self.call(lambda node: node.stored(index, self.boot_ms))

    def _transmit(self, frames: list[Frame]) -> None:
        life = self.life
        for frame in frames:
            is_silent = frame.data[0] != REPLICATION or frame.data[TAG_AT] == APPEND_TAG
            message = None if is_silent else decode(frame.data)
            if message is not None:
                self.observer.judge.released(self, message)
            self.network.send(self.id, frame.to, frame.data)
            if type(message) is VoteReply and message.granted:
                self.observer.voted(self)
                if self.node is None or self.life != life:
                    return

    def _judge(self, reply: Reply, outcome: Result | SqsError) -> None:
        self.observer.judge.replied(self, reply, outcome)

    def _begin_sync(self) -> None:
        if self.is_syncing or not self.disk.unsynced:
            return
        self.is_syncing = True
        count, token, life = len(self.disk.unsynced), self.disk.token, self.life
        self.disk.write(count)
        self.scheduler.schedule(self.disk.sync_us(), lambda: self._end_sync(count, token, life))

    def _end_sync(self, count: int, token: int, life: int) -> None:
        if self.node is None or self.life != life:
            return
        if self.scenario.mode in ("async", "one"):
            self.observer.judge.synced(self, [record for record, _ in self.disk.unsynced[:count]])
        self.disk.sync(count)
        self.is_syncing = False
        self._begin_sync()
        self.call(lambda node: self._synced(node, token))

    def _synced(self, node: Node, token: int) -> None:
        node.synced(token, self.boot_ms)
        self._transmit(self.gate.synced(token))
