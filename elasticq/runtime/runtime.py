"""The driver of one Node, or one Proxy, in an asyncio loop: calls and time go in, effects come out.

Only the loop's thread enters this module. Each entry is one call of the node, followed by ``_drain``. That carries out
the effects in the order that effects.py demands: records to the storage, frames behind the sync gate, committed entries
and fetches to the rows, replies to their tickets, and the next wake-up. No request has a task or a future. A ticket is
an object whose ``release`` is called once with the outcome.

After a snapshot of another member was installed, ``replace`` puts a new node in the place of the old one.

A node that raises is broken, because its invariants are assertions. The runtime then stops for ever, answers nothing
and calls ``on_failure``, which ends the process. An exception while the node executes one command does not stop it. The
node answers that command with an InternalFailure, and the runtime logs the cause.
"""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from functools import partial
from logging import getLogger
from traceback import format_tb
from typing import Any, Protocol, TypeVar, cast

from msgspec.structs import replace

from elasticq.engine.stored.mutations import MessageStored
from elasticq.model.commands import Call
from elasticq.model.errors import SqsError
from elasticq.model.results import Result
from elasticq.node.call_holder import MOVED_AT_ONCE
from elasticq.node.digests import DAMAGED, DIGESTS_MAX
from elasticq.node.driven import Driven
from elasticq.node.membership.peer import Peer
from elasticq.node.node import Node
from elasticq.node.orders import Order
from elasticq.node.outputs import Fetch, Frame, HeldCall, News, Wanted
from elasticq.node.settings import LeaseStatus, NodeStatus
from elasticq.replication.messages import FrameError
from elasticq.replication.records import Entry
from elasticq.runtime.clock import Clock, boot_ms, wall_ms
from elasticq.storage.gate import SyncGate
from elasticq.storage.interface import Storage

NEVER_MS = 1 << 62
_Result = TypeVar("_Result")

_log = getLogger(__name__)


class Ticket(Protocol):
    """The receiver of the outcome of a call. It is hashed by identity and may be used again after its release."""

    def __hash__(self) -> int: ...

    def release(self, outcome: Result | SqsError) -> None:
        """Take the outcome, once. It must not raise, and must not enter the runtime before it returns."""


class RuntimeStopped(Exception):
    """The error that the node failed or was closed, so no answer can be given."""


def no_peers(frames: list[Frame]) -> None:
    """Assert that a cluster of one sends no frames."""
    assert not frames, "a frame for nobody"


def no_discarded(entries: list[Entry]) -> None:
    """Ignore discarded entries, which nobody asked to keep."""


def _no_obstacle() -> str:
    return ""


def no_news(news: list[News]) -> None:
    """Ignore the news of the cluster, which nobody logs."""


def nothing_wanted(wanted: Wanted) -> None:
    """Raise AssertionError, because a cluster of one never wants a snapshot."""
    raise AssertionError("a snapshot is wanted, and nobody fetches it")


class Runtime:
    """One member's node, or a proxy, with its storage, timer and tickets. A proxy stores nothing."""

    def __init__(
        self,
        node: Driven,
        storage: Storage,
        loop: AbstractEventLoop,
        on_failure: Callable[[BaseException], None],
        *,
        send: Callable[[list[Frame]], None] = no_peers,
        on_wanted: Callable[[Wanted], None] = nothing_wanted,
        on_discarded: Callable[[list[Entry]], None] = no_discarded,
        on_news: Callable[[list[News]], None] = no_news,
        clock: Clock = boot_ms,
        wall_clock: Clock = wall_ms,
    ) -> None:
        self._node = node
        self._effects = node.effects
        self._storage = storage
        self._is_volatile = storage.volatile
        self._gate = SyncGate()
        self._forgotten_index = 0
        self._loop = loop
        self._on_failure = on_failure
        self._on_ready: Callable[[], None] | None = None
        self._send = send
        self._on_wanted = on_wanted
        self._on_discarded = on_discarded
        self._on_news = on_news
        self._wanted: Wanted | None = None
        self._moved: list[HeldCall] = []  # calls of a replaced node that wait for their turn
        self._clock = clock
        self._wall_clock = wall_clock
        self._timer: TimerHandle | None = None
        self._armed_at_ms = NEVER_MS
        # log index -> whether the rows are undamaged; None while they are being checked
        self._row_checks: dict[int, bool | None] = {}
        self.obstacle: Callable[[], str] = _no_obstacle
        self.stopped = False

    def start(self) -> None:
        """Start the node. A cluster of one in memory is master when this returns."""
        self._call(lambda now_ms: self._node.start(now_ms, self._wall_clock()))

    def when_ready(self, on_ready: Callable[[], None]) -> None:
        """Call ``on_ready`` once as soon as commands can be executed.

        A member of a cluster of one can execute them when its first records are durable.
        """
        self._on_ready = on_ready
        self._check_ready()

    def submit(self, call: Call, ticket: Ticket) -> None:
        """Execute ``call``. ``ticket.release`` is called now or, after a wait or a sync, later.

        This does the work of _call inline, because it is the hot path and there is nearly always just one
        reply.
        """
        if self.stopped:
            raise RuntimeStopped
        try:
            self._node.submit(call, ticket, self._clock())
        except Exception as failure:
            self.fail(failure)
            raise RuntimeStopped from failure
        effects = self._effects
        replies = effects.replies
        if effects.failures:
            self._log_failures()
        if len(replies) == 1 and not (effects.records or effects.frames or effects.committed or effects.fetches):
            reply = replies.pop()
            reply.ticket.release(reply.outcome)  # type: ignore[attr-defined]
        elif replies or effects.records or effects.frames or effects.committed or effects.fetches:
            self._drain()
            return
        wake_at_ms = effects.wake_at_ms
        if wake_at_ms is not None and wake_at_ms < self._armed_at_ms:
            self._arm(wake_at_ms)

    def cancel(self, ticket: Ticket) -> None:
        """End the wait of a receive whose client disconnected. Do nothing if the answer was already given."""
        if self._moved:
            self._moved = [held for held in self._moved if held.ticket != ticket]
        self._call(self._node.cancel, ticket)

    def undelivered(self, result: Result) -> None:
        """Make the messages of a receive visible again, because its result could not be written."""
        self._call(self._node.undelivered, result)

    def close_waiters(self) -> None:
        """End every long poll, for a graceful stop."""
        self._call(self._node.close_waiters)

    def receive(self, frames: list[tuple[str, bytes]]) -> list[tuple[str, FrameError]]:
        """Pass frames of other members to the node in order, each with the link that it came over.

        Return the links whose frames the node refused, each with the reason.
        """
        return self._call(self._node.receive_all, frames) or []

    def met(self, peer: Peer) -> None:
        """Pass the greeting of another member to the node."""
        self._call(self._node.met, peer)

    def lost(self, member_id: str) -> None:
        """Report to the node that the link to another member broke."""
        self._call(self._node.lost, member_id)

    def introduce(self) -> Peer:
        return self._node.introduce()

    def order(self, order: Order, ticket: Ticket) -> None:
        """Pass an operator's order to the node. The ticket is released with an OrderDone or an OrderRefused."""
        if self.stopped:
            raise RuntimeStopped
        self._call(self._node.order, order, ticket)

    def hand_over(self) -> bool:
        """Begin to hand over the mastership. Return False if this member is not master, or no other member can take
        it."""
        return bool(self._call(self._node.hand_over))

    @property
    def node(self) -> Node:
        """Return the member's node; a proxy has none."""
        return cast(Node, self._node)

    @property
    def wanted(self) -> Wanted | None:
        """Return the snapshot that the node wants; None without one."""
        return self._effects.wanted

    def replace(self, node: Node) -> None:
        """Continue with ``node``, which was made over an installed snapshot, and with the calls that waited."""
        if self.stopped:
            return
        self._moved = [*self._enter(self.node.retire), *self._moved]
        if self._effects.frames:
            self._transmit()
        self._release()
        self._report_wanted_and_discarded()
        self._on_news(self._effects.news)
        node.journal.discarded = self.node.journal.discarded
        linked = self.node.members.linked_peers
        self._node, self._effects = node, node.effects
        self._gate = SyncGate()
        self._forgotten_index, self._wanted = 0, None
        self._armed_at_ms = NEVER_MS
        self.start()
        for peer in linked:
            self.met(peer)
        _go_on(self)

    def set_full(self, reason: str | None) -> None:
        """Refuse sends with ``reason``, because the disk is full. None ends that."""
        self._call(self.node.set_full, reason)

    def damaged(self, queue_id: int, sequences: list[int]) -> bool:
        """Report to the node that the contents of these messages on disk are lost.

        Return False if the storage must write new rows of the remaining data.
        """
        return self._call(self.node.damaged, queue_id, sequences) is not False

    def fail(self, failure: BaseException) -> None:
        """Stop for ever, because a part that the member depends on is broken. No call is answered after this."""
        if not self.stopped:
            self._stop()
            self._on_failure(failure)

    def status(self, groups_max: int = 0) -> NodeStatus:
        status = self._node.status(self._clock(), groups_max)
        if not status.ready and (obstacle := self.obstacle()):
            status = replace(status, reason=f"{status.reason}; {obstacle}")
        if status.digests or self._row_checks:
            status = replace(status, digests=self._checked(status.digests))
        return status

    def _checked(self, digests: dict[int, str]) -> dict[int, str]:
        """Return the digests at which this member has also read its whole disk without finding damage.

        A digest is made from memory, so it does not cover the disk.
        """
        for index in digests:
            if index not in self._row_checks:
                self._row_checks[index] = None
                self._storage.check(partial(self._row_checks.__setitem__, index))
        for index in sorted(self._row_checks)[:-DIGESTS_MAX]:
            del self._row_checks[index]
        damaged = {index: DAMAGED for index, is_whole in self._row_checks.items() if is_whole is False}
        return {index: digest for index, digest in digests.items() if self._row_checks.get(index)} | damaged

    def time_ms(self) -> int:
        """Return cluster time."""
        return self._node.clock.time_ms(self._clock())

    def leases(self, limit: int) -> list[LeaseStatus]:
        return self._node.leases(self._clock(), limit)

    def ignored_attributes(self) -> set[str]:
        return self._node.ignored_attributes

    def close(self) -> None:
        """Stop without a failure. No call may enter after this."""
        self._stop()
        self._storage.close()

    def _enter(self, method: Callable[..., _Result], *arguments: Any) -> _Result:
        """Call a method of the node with the time as its last argument.

        If it raises, stop the member, and raise RuntimeStopped.
        """
        assert not self.stopped, "a stopped node is never called"
        try:
            return method(*arguments, self._clock())
        except BaseException as failure:
            self.fail(failure)
            raise RuntimeStopped from failure

    def _call(self, method: Callable[..., _Result], *arguments: Any) -> _Result | None:
        """Enter the node and carry out the effects. After a stop do nothing, and return None."""
        if self.stopped:
            return None
        result = self._enter(method, *arguments)
        self._drain()
        return result

    def _drain(self) -> None:
        """Carry out the effects of the node."""
        effects = self._effects
        if effects.failures:
            self._log_failures()
        if effects.news:  # before committed entries reach the rows, which may forget who the voters were
            self._on_news(effects.news)
            effects.news.clear()
        if effects.records:
            if not self._is_volatile:
                self._storage.append(effects.records, effects.token, self._synced)
            effects.records.clear()
        if effects.committed or effects.fetches:
            self._store()
        if effects.log_floor > self._forgotten_index:
            self._forgotten_index = effects.log_floor
            self._storage.forget_log(effects.log_floor)
        if effects.frames:
            self._transmit()
        if effects.replies:
            self._release()
        if effects.wanted is not self._wanted or effects.discarded:
            self._report_wanted_and_discarded()
        wake_at_ms = effects.wake_at_ms
        if wake_at_ms is not None and wake_at_ms < self._armed_at_ms:
            self._arm(wake_at_ms)

    def _log_failures(self) -> None:
        """Log the type and place of failed commands.

        The texts of the exceptions may quote a request, so they are not logged.
        """
        failures = self._effects.failures
        for failure in failures:
            cause = failure.cause
            where = "".join(format_tb(cause.__traceback__))
            _log.error("command_failed %s %s\n%s", failure.action, type(cause).__name__, where)
        failures.clear()

    def _report_wanted_and_discarded(self) -> None:
        effects = self._effects
        if effects.discarded:
            self._on_discarded(effects.discarded.copy())
            effects.discarded.clear()
        if effects.wanted is not self._wanted:
            self._wanted = effects.wanted
            if effects.wanted is not None:
                self._on_wanted(effects.wanted)

    def _store(self) -> None:
        effects = self._effects
        if effects.committed:
            if not self._is_volatile:
                self._storage.rows(effects.committed, self._stored)
            effects.committed.clear()
        if effects.fetches:
            wanted = effects.fetches.copy()
            effects.fetches.clear()
            for fetch in wanted:
                self._storage.fetch(fetch, self._fetched)

    def _transmit(self) -> None:
        frames = self._effects.frames.copy()
        self._effects.frames.clear()
        due = frames if self._is_volatile else self._gate.add(frames)
        if due:
            self._send(due)

    def _release(self) -> None:
        """Give the replies to their tickets. The list is emptied first, because a release may call this again."""
        replies = self._effects.replies
        due = replies.copy()
        replies.clear()
        for reply in due:
            cast(Any, reply.ticket).release(reply.outcome)

    def _synced(self, token: int) -> None:
        if not self.stopped:
            self._enter(self.node.synced, token)
            due = self._gate.synced(token)
            if due:
                self._send(due)
            self._drain()
            if self._on_ready is not None:
                self._check_ready()

    def _stored(self, index: int) -> None:
        self._call(self.node.stored, index)

    def _fetched(self, fetch: Fetch, contents: list[MessageStored]) -> None:
        self._call(self.node.fetched, fetch, contents)

    def _check_ready(self) -> None:
        on_ready = self._on_ready
        if on_ready is not None and self.status().ready:
            self._on_ready = None
            on_ready()

    def _arm(self, wake_at_ms: int) -> None:
        """Set the timer. ``_wake`` checks the time, so a timer that fires too early does no harm."""
        if self._timer is not None:
            self._timer.cancel()
        self._armed_at_ms = wake_at_ms
        delay_ms = max(0, wake_at_ms - self._clock())
        self._timer = self._loop.call_later(delay_ms / 1_000, self._wake)

    def _wake(self) -> None:
        self._armed_at_ms = NEVER_MS
        wake_at_ms = self._effects.wake_at_ms
        if self.stopped or wake_at_ms is None:
            return
        if self._clock() >= wake_at_ms:
            self._enter(self._node.tick)
        self._drain()

    def _stop(self) -> None:
        self.stopped = True
        if self._timer is not None:
            self._timer.cancel()


def _go_on(runtime: Runtime) -> None:
    """Pass MOVED_AT_ONCE calls of the replaced node to the node; later turns of the loop pass the others."""
    moved = runtime._moved
    if not moved or runtime.stopped:
        return
    some, runtime._moved = moved[:MOVED_AT_ONCE], moved[MOVED_AT_ONCE:]
    runtime._call(runtime.node.go_on_with, some)
    runtime._loop.call_soon(_go_on, runtime)
