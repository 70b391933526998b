"""A simulated member: the real Node with a simulated disk, sync gate and clocks. It can crash, pause and restart.

The member does for its node what runtime/ does in a server. It writes records to the disk, sends frames through the
sync gate, sends replies to their tickets, and calls tick when it is due. After a restart or the install of a snapshot
a new Node starts from the disk's contents. If the disk is lost, or the member is memory-only, it restarts as another
member with the same name.
"""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import Any, Protocol

from elasticq.model.errors import SqsError
from elasticq.model.results import Result
from elasticq.node.node import Node
from elasticq.node.orders import Order
from elasticq.node.outputs import Fetch, Frame, Ticket
from elasticq.node.reply import Reply
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

TAG_AT, VOTE_TAG, APPEND_TAG = 2, 4, 5  # a frame starts with version, array head, tag; no check needs Appends decoded
REPLICATION = 1  # the first byte of a Raft frame; forwarded calls have another one
HAND_OVER_US, HAND_OVER_STEP_US = 1_500_000, 20_000


def void(_: object) -> None:
    """Drop a call's result, because an action must return None."""


def decode_vote(data: bytes) -> VoteReply:
    message = decode(data)
    assert type(message) is VoteReply
    return message


class Judge(Protocol):
    """The checks of a run at each step. A member calls these methods to report what it does."""

    def starting(self, member: Member, vote: Vote) -> None:
        """Handle the creation of a node from a log whose newest vote is ``vote``."""

    def started(self, member: Member, vote: Vote) -> None:
        """Handle the start of that node."""

    def installing(self, member: Member, copy: Copy) -> None:
        """Handle a snapshot that is about to replace the member's log and rows."""

    def installed(self, member: Member) -> None:
        """Handle the start of a new node from the installed snapshot."""

    def crashed(self, member: Member) -> None:
        """Handle the end of the process."""

    def recorded(self, member: Member, records: list[Record]) -> None:
        """Handle records that were appended to the disk and are not synced."""

    def synced(self, member: Member, records: list[Record]) -> None:
        """Handle records that are about to be durable."""

    def decided(self, member: Member, vote: VoteReply) -> None:
        """Handle a vote that the node has decided. Its frame waits for the disk."""

    def released(self, member: Member, message: AnyMessage) -> None:
        """Handle a frame that the member sends."""

    def replied(self, member: Member, reply: Reply, outcome: Result | SqsError) -> None:
        """Handle a reply that the member sends to a client."""

    def passed_on(self, name: str, reply: Reply, outcome: Result | SqsError) -> None:
        """Handle a reply that a proxy sends to a client."""

    def discarded(self, member: Member, entries: list[Entry]) -> None:
        """Handle entries that were acknowledged before commit, and that the member reports as dropped.

        A newer master's entries replaced them.
        """

    def stepped(self, member: Member) -> None:
        """Handle the end of a step: all effects of one call of the node are done."""


class Observer(Protocol):
    """The immediate reactions to what a member does."""

    @property
    def judge(self) -> Judge:
        """Return the checks of the run."""

    def voted(self, member: Member) -> None:
        """Handle a granted vote that the member has sent."""

    def appended_as_master(self, member: Member) -> None:
        """Handle an entry that the member appended as master. No other member has it yet."""

    def stepped(self, member: Member) -> None:
        """Handle the end of a step: all effects of one call of the node are done and checked."""

    def ended(self, process: Process[Any]) -> None:
        """Handle the end of a member's or proxy's process."""

    def wants_snapshot(self, member: Member) -> object:
        """Start the transfer of a snapshot that the node wants. Return an object that represents the transfer."""


class Member(Process[Node]):
    """A member.

    gone: gets the contents of each lost disk, by member id. index: the number of the member in the run.
    transfer: the transfer of a snapshot to this member, None if there is none.
    """

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
        self.number = 0  # how many member ids it has had
        self.disk: Disk
        self.voters: tuple[str, ...] = ()
        self.is_wanted = True  # whether its process shall run
        skews_ms = scenario.wall_skew_ms
        self.wall_skew_ms = skews_ms[index] if index < len(skews_ms) else 0  # at most one is wrong by hours
        self._stopping_life = -1  # the life that a graceful stop is about to end
        self.gate = SyncGate()
        self.is_syncing = False
        self.is_flushing = False
        self.transfer: object | None = None
        self.become_another()

    def become_another(self) -> None:
        """Start again as a new member: with an empty disk and a new member id."""
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
        """Create and start a node from loaded data, after the start of a process or the install of a snapshot."""
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
        """Return a snapshot of this member's committed state, None if it does not reach ``index``."""
        node = self.node
        if node is None or not self.is_volatile:
            return self.disk.copy(index)
        if node.replica.commit_index < index:
            return None
        if node.journal.is_open or node.replica.commit_index != node.applied_index:
            return in_a_fork(lambda: copy_of_memory(*node.journal.committed_state()))
        return copy_of_memory(*node.journal.committed_state())

    def install(self, copy: Copy) -> None:
        """Replace this member's log and rows by a snapshot, and continue with a new node.

        The new node takes over the links and the calls that the old node held. Other waiting calls are answered.
        """
        old = self.core
        self.observer.judge.installing(self, copy)
        held = old.retire(self.boot_ms)
        self.observer.judge.discarded(self, old.effects.discarded)
        self._release_all(old.effects.replies)
        linked = old.members.linked_peers
        self._begin(self.disk.install(copy, old.vote))
        for peer in linked:
            self.call(lambda node, peer=peer: node.met(peer, self.boot_ms))  # type: ignore[misc]
        self.call(lambda node: node.go_on_with(held, self.boot_ms))
        if self.node is not None:
            self.observer.judge.installed(self)

    def crash(self, *, reboots: bool = False, keeps_cache: bool = False) -> None:
        """End the process, and lose unsynced records.

        keeps_cache: only the process dies, so written records are kept.
        reboots: the machine's boot-time clock restarts.
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
        """Stop gracefully: hand over the mastership, then end the process. All written records are kept."""
        if self.node is not None and not self.is_paused:
            self._stopping_life = self.life
            self.call(lambda node: node.close_waiters(self.boot_ms))
            self.call(lambda node: void(node.hand_over(self.boot_ms)))
            self._stop_when_free(self.life, self.scheduler.now_us + HAND_OVER_US)

    @property
    def is_about_to_forget(self) -> bool:
        """Return whether this is a memory-only member that is stopping. Its data counts as lost already."""
        return self.is_volatile and self.node is not None and self._stopping_life == self.life

    def _stop_when_free(self, life: int, until_us: int) -> None:
        node = self.node
        if node is None or self.life != life:
            return
        if node.replica.role == "master" and node.replica.others and self.scheduler.now_us < until_us:
            self.scheduler.schedule(HAND_OVER_STEP_US, lambda: self._stop_when_free(life, until_us))
        else:
            self.crash(keeps_cache=True)

    # --- inputs -----------------------------------------------------------------

    def _fail(self) -> None:
        self.crash()

    def receive(self, sender: str, data: bytes) -> None:
        self.call(lambda node: node.receive(data, self.boot_ms))

    def order(self, giver: OrderGiver, ticket: Ticket, order: Order) -> None:
        self.tickets[ticket] = giver
        self.call(lambda node: node.order(order, ticket, self.boot_ms))

    # --- effects ----------------------------------------------------------------

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
        self._release_all(effects.replies)
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
        """Pass committed entries to the rows on disk, and fetch the contents that the node asks for."""
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

    def _report_reply(self, reply: Reply, outcome: Result | SqsError) -> None:
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
