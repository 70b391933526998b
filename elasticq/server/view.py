"""Shows this process to the admin port."""

import asyncio
from collections.abc import Iterator
from functools import partial

from elasticq.admin import asking
from elasticq.engine.figures import QueueFigures, figures
from elasticq.http.context import ServerContext
from elasticq.model.errors import SqsError
from elasticq.model.histogram import Histogram
from elasticq.model.results import Result
from elasticq.node.orders import Order, OrderOutcome
from elasticq.node.settings import LeaseStatus, NodeStatus
from elasticq.peers.questions import Answer
from elasticq.runtime.meter import Meter
from elasticq.runtime.runtime import RuntimeStopped
from elasticq.server.linked import Linked
from elasticq.server.pushes import Pushes
from elasticq.server.settings import Settings


class View:
    """An AdminSource of this process. It must not be asked before ``open``."""

    def __init__(self, settings: Settings, health: str) -> None:
        self._settings = settings
        self._health = health
        self._member: Linked | None = None
        self._context: ServerContext | None = None
        self.stopping = False
        self.pushing: Pushes | None = None

    def open(self, member: Linked, context: ServerContext) -> None:
        self._member, self._context = member, context
        member.answer = partial(asking.answer, self)

    @property
    def node_name(self) -> str:
        return self._settings.node.id

    def health(self) -> str:
        return self._health

    def status(self) -> NodeStatus:
        assert self._member is not None
        return self._member.runtime.status()

    def leases(self, limit: int) -> list[LeaseStatus]:
        assert self._member is not None
        return self._member.runtime.leases(limit)

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
            "event_loop_lag_seconds": ("How late the loop came to a timer, looked at once a second.", self.meter().lag)
        }
        syncs = self._member.sync_times
        if syncs is not None:
            found["log_fsync_duration_seconds"] = ("How long a sync of the log took.", syncs)
        return found

    def pushes(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        counts = {} if self.pushing is None else self.pushing.counts
        return {key: (each.delivered, each.retried, each.failed) for key, each in counts.items()}

    def queues(self) -> Iterator[QueueFigures]:
        assert self._member is not None
        runtime = self._member.runtime
        for queue in list(runtime.node.state.queues.values()):
            yield figures(queue, runtime.time_ms())

    async def ask(self, member_id: str, kind: str, body: bytes, timeout_s: float) -> Answer:
        assert self._member is not None
        return await self._member.ask(member_id, kind, body, timeout_s)

    async def order(self, order: Order) -> OrderOutcome:
        assert self._member is not None
        ticket = _OrderTicket()
        self._member.runtime.order(order, ticket)
        return await ticket.outcome


class _OrderTicket:
    """A ticket with a future; it may be released after whoever awaits the future has cancelled it."""

    def __init__(self) -> None:
        self.outcome: asyncio.Future[OrderOutcome] = asyncio.get_running_loop().create_future()

    def release(self, outcome: OrderOutcome | Result | SqsError) -> None:
        if self.outcome.done():
            return
        if isinstance(outcome, (Result, SqsError)):
            self.outcome.set_exception(RuntimeStopped())
        else:
            self.outcome.set_result(outcome)
