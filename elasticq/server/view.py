"""The implementation of ``AdminSource``: this process as the admin port sees it."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Final

from elasticq.admin import asking
from elasticq.admin.attention.clients import ClientWatch
from elasticq.admin.attention.queues import QueueWatch
from elasticq.admin.history import PERIOD_S, History
from elasticq.admin.source import Event, Links, PassedOn, Waiting
from elasticq.engine.state import Queue
from elasticq.engine.views.condition import QueueCondition, condition
from elasticq.engine.views.figures import QueueFigures, figures
from elasticq.engine.views.in_flight import InFlight, in_flight
from elasticq.engine.views.message_group_order import GroupOrder, group_order
from elasticq.http.admission import audit
from elasticq.http.context import ServerContext
from elasticq.model.commands import Call, Command
from elasticq.model.errors import SqsError
from elasticq.model.histogram import Histogram
from elasticq.model.names import is_inner
from elasticq.model.results import Result, StaleResult
from elasticq.node.membership.members import name_of
from elasticq.node.node import Node
from elasticq.node.orders import Order, OrderOutcome
from elasticq.node.proxy import PROXY
from elasticq.node.reports.background import Task, of_member, of_state
from elasticq.node.settings import GroupStatus, LeaseStatus, NodeStatus
from elasticq.node.waits.pending_calls import Remote
from elasticq.peers.questions import Answer
from elasticq.peers.transfer import Snapshot
from elasticq.runtime.clock import boot_ms, wall_ms
from elasticq.runtime.meter import Meter
from elasticq.runtime.runtime import RuntimeStopped
from elasticq.runtime.ticket import Awaited
from elasticq.server.cluster_process import ClusterProcess
from elasticq.server.events import EventKeeper
from elasticq.server.settings import Settings
from elasticq.server.view_of_topics import ViewOfTopics

SOURCES_MAX: Final = 3
"""The number of queues that a dead-letter queue's finding names."""
PRINCIPAL: Final = "operator"
"""The caller of the admin port's commands, in the log and in the SenderId of messages."""


class View(ViewOfTopics):
    """An AdminSource of this process. Call ``open`` before any other method.

    endpoint: scheme://host:port of the SQS port.
    """

    def __init__(self, settings: Settings, health: str, endpoint: str, events: EventKeeper) -> None:
        self._settings = settings
        self._health = health
        self.endpoint = endpoint
        self._events = events
        self.history = History(int(wall_ms() // (PERIOD_S * 1_000)))
        self.watch = QueueWatch(settings.node.region)
        self.clients = ClientWatch()
        self.started_ms = wall_ms()
        self._member: ClusterProcess | None = None
        self._context: ServerContext | None = None
        self.stopping = False

    def open(self, member: ClusterProcess, context: ServerContext) -> None:
        self._member, self._context = member, context
        member.answer = partial(asking.answer, self)

    @property
    def node_name(self) -> str:
        return self._settings.node.id

    def wall_ms(self) -> int:
        return wall_ms()

    def links(self) -> Links:
        assert self._member is not None
        return self._member.links()

    def health(self) -> str:
        return self._health

    def count(self) -> None:
        """Add the requests and messages since the last call to the history and to the watch over clients."""
        assert self._context is not None
        self.history.update(self.watch.depths, self.meter().by_queue(), lambda key: self._queue(*key) is not None)
        self.clients.look(self._context.clients(), self._time_ms())

    def status(self) -> NodeStatus:
        assert self._member is not None
        return self._member.runtime.status()

    def leases(self, limit: int) -> list[LeaseStatus]:
        assert self._member is not None
        return self._member.runtime.leases(limit)

    def groups(self, limit: int) -> list[GroupStatus]:
        assert self._member is not None
        return list(self._member.runtime.status(limit).groups)

    def metrics(self) -> dict[str, float]:
        assert self._member is not None
        assert self._context is not None
        context = self._context
        return {
            "http_connections": len(context.connections),
            "http_hot_requests_total": context.hot_requests,
            "http_slow_requests_total": context.slow_requests,
            **self._member.metrics(),
        }

    def meter(self) -> Meter:
        assert self._context is not None
        return self._context.meter

    def histograms(self) -> dict[str, tuple[str, Histogram]]:
        assert self._member is not None
        found = {
            "event_loop_lag_seconds": ("Delay of a timer of the event loop, measured once a second.", self.meter().lag)
        }
        syncs = self._member.sync_times
        if syncs is not None:
            found["log_fsync_duration_seconds"] = ("Duration of a sync of the log.", syncs)
        return found

    def expired(self) -> dict[tuple[str, str], int]:
        return {} if self._is_proxy else self._by_name(self._tally.expired)

    def _by_name(self, counts: dict[int, int]) -> dict[tuple[str, str], int]:
        """Return the counts of queues that clients can see, by owner and name instead of by id."""
        queues = self._node.state.queues
        found = {(queues[key].account, queues[key].name): count for key, count in counts.items() if key in queues}
        return {key: count for key, count in found.items() if not is_inner(key[0])}

    @property
    def _is_proxy(self) -> bool:
        """Return whether this process is a proxy, which has no state."""
        return self._settings.cluster.role == PROXY

    @property
    def _node(self) -> Node:
        """Return the node. The process must not be a proxy."""
        assert self._member is not None
        node = self._member.runtime.node
        assert type(node) is Node
        return node

    def queues(self) -> Iterator[QueueFigures]:
        assert self._member is not None
        runtime = self._member.runtime
        if self._is_proxy:
            return
        sources = runtime.node.state.sources
        for queue in self._visible():
            row = figures(queue, runtime.time_ms())
            row.is_dead_letter_queue = sources.has((queue.account, queue.name))
            yield row

    def conditions(self) -> Iterator[QueueCondition]:
        if self._is_proxy:
            return
        state, tally, waiting = self._node.state, self._tally, self._node.waiters.counts()
        for queue in self._visible():
            if queue.count:
                found = condition(queue, state.grace, self._time_ms(), list(tally.often.get(queue.id, ())))
                found.fetched_ms, found.consumers = tally.fetched.get(queue.id), waiting.get(queue.id, 0)
                found.sources = list(islice(state.sources.of((queue.account, queue.name)), SOURCES_MAX))
                found.figures.is_dead_letter_queue = bool(found.sources)
                yield found

    def _visible(self) -> list[Queue]:
        """Return the queues that clients can see. Everything that lists or counts queues uses this list."""
        return [queue for queue in self._node.state.queues.values() if not is_inner(queue.account)]

    def queue(self, owner: str, name: str) -> QueueFigures | None:
        found = self._queue(owner, name)
        return None if found is None else figures(found, self._time_ms())

    def in_flight(self, owner: str, name: str, limit: int) -> InFlight | None:
        found = self._queue(owner, name)
        return None if found is None else in_flight(found, self._node.state.grace, self._time_ms(), limit)

    def group_order(self, owner: str, name: str, wanted: str, groups_max: int, messages_max: int) -> GroupOrder | None:
        found = self._queue(owner, name)
        return None if found is None else group_order(found, self._time_ms(), wanted, groups_max, messages_max)

    def _time_ms(self) -> int:
        assert self._member is not None
        return self._member.runtime.time_ms()

    @property
    def account(self) -> str:
        return self._settings.node.account

    @property
    def region(self) -> str:
        return self._settings.node.region

    @property
    def is_read_only(self) -> bool:
        return self._settings.admin.read_only

    def events(self) -> list[Event]:
        return self._events.newest_first()

    def consumers(self) -> dict[tuple[str, str], int]:
        return {} if self._is_proxy else self._by_name(self._node.waiters.counts())

    def waiting(self, limit: int) -> list[tuple[Waiting, PassedOn]]:
        if self._is_proxy:
            return []
        node, now_ms, found = self._node, boot_ms(), list[tuple[Waiting, PassedOn]]()
        for waiter in node.waiters.all():
            queue = node.state.queues.get(waiter.queue_id)
            if queue is None or is_inner(queue.account):
                continue
            if len(found) == limit:
                break
            ticket, left_ms = waiter.ticket, max(0, waiter.deadline_ms - now_ms)
            member, call = self.node_name, ("", 0)
            if isinstance(ticket, Remote):
                member, call = name_of(ticket.sender), (ticket.sender, ticket.number)
            found.append((Waiting(queue.account, queue.name, left_ms, member, _address_of(ticket)), call))
        return found

    def address_of(self, number: int) -> str:
        assert self._member is not None
        return _address_of(self._member.runtime.node.passed_on(number))

    def tasks(self, limit: int) -> list[Task]:
        if self._is_proxy:
            return []
        node, status = self._node, self.status()
        replica, is_master = node.replica, status.master == status.member_id
        own = of_member(
            replica.followers if is_master else {},
            replica.commit_index,
            None if replica.wanted is None else replica.wanted[0],
            is_sweep_behind=is_master and node.housekeeping.is_sweep_behind,
        )
        return of_state(node.state, limit) + own

    async def execute(self, command: Command, owner: str) -> Result:
        assert self._member is not None
        assert self._context is not None
        ticket, began_s, action = Awaited(), perf_counter(), type(command).__name__
        self._member.runtime.submit(Call(command, PRINCIPAL, owner, self.endpoint), ticket)
        result = await ticket.outcome
        if isinstance(result, SqsError):
            raise result
        counted = self._context.meter.counts.get(action)
        if counted is not None and not isinstance(result, StaleResult):
            counted(command, owner, result, began_s)
        if action in audit.LOGGED:
            audit.tell(action, command, PRINCIPAL, owner, None)
        return result

    async def ask(self, member_id: str, kind: str, body: bytes, timeout_s: float) -> Answer:
        assert self._member is not None
        return await self._member.ask(member_id, kind, body, timeout_s)

    async def open_snapshot(self, index: int) -> Snapshot:
        assert self._member is not None
        return await self._member.open(index)

    def release_snapshot(self, snapshot: Snapshot) -> None:
        assert self._member is not None
        self._member.release(snapshot)

    async def order(self, order: Order) -> OrderOutcome:
        assert self._member is not None
        ticket = Awaited()
        self._member.runtime.order(order, ticket)
        outcome: OrderOutcome | Result | SqsError = await ticket.outcome
        if isinstance(outcome, (Result, SqsError)):
            raise RuntimeStopped
        return outcome


def _address_of(ticket: object) -> str:
    """Return the address of the client that waits for this ticket; empty on the slow path, and for other members."""
    return str(getattr(ticket, "address", ""))
