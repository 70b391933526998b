"""The simulated operator of the cluster. It gives the orders of a scenario, and repeats each until it is done.

The operator gives an order to the master with the highest term. If the order is refused, lost or unanswered, the
operator repeats it after a while.
"""

from __future__ import annotations

from collections.abc import Callable

from elasticq.node.orders import Order, OrderDone, OrderOutcome
from elasticq.node.outputs import Ticket
from elasticq.sim.cluster import Cluster

AGAIN_US = (200_000, 700_000)
ANSWER_US = 4_000_000


class Task:
    """One order. It is repeated until it succeeds, or until ``is_void`` returns true: done already, or pointless.

    order: returns the order, which may depend on the state of the cluster. then: called at the end.
    """

    def __init__(
        self,
        operator: Operator,
        order: Callable[[], Order],
        is_void: Callable[[], bool],
        then: Callable[[], None],
        *,
        is_tried_once: bool = False,
    ) -> None:
        self.operator = operator
        self.cluster = operator.cluster
        self.scheduler = operator.scheduler
        self.trace = operator.cluster.trace
        self.order = order
        self.is_void = is_void
        self.then = then
        self.is_tried_once = is_tried_once
        self.attempt = 0
        self.is_over = False
        operator.given += 1
        self.number = operator.given

    def give(self) -> None:
        if self.is_over:
            return
        if self.is_void():
            self._end()
            return
        master = self.cluster.master
        self.attempt += 1
        attempt = self.attempt
        if master is not None and not master.is_paused:
            order = self.order()
            self.trace.note("order", master.name, order)
            master.order(self, ("operator", self.number, attempt), order)
        if not self.is_over and not self.is_tried_once:
            self.scheduler.schedule(ANSWER_US, lambda: self._unanswered(attempt))

    def _unanswered(self, attempt: int) -> None:
        if attempt == self.attempt:
            self.give()

    def ordered(self, ticket: Ticket, outcome: OrderOutcome) -> None:
        if self.is_over:
            return
        self.trace.note("ordered", "operator", outcome)
        if isinstance(outcome, OrderDone) or self.is_tried_once:
            self.operator.done += isinstance(outcome, OrderDone)
            self._end()
            return
        self.attempt += 1  # so the timeout of the answered attempt is ignored
        self.scheduler.schedule(self.operator.random.randint(*AGAIN_US), self.give)

    def refused(self, ticket: Ticket) -> None:
        """Handle the end of the member that had the order: repeat the order later."""
        if not self.is_over and not self.is_tried_once:
            self.attempt += 1
            self.scheduler.schedule(self.operator.random.randint(*AGAIN_US), self.give)

    def _end(self) -> None:
        self.is_over = True
        self.operator.tasks.remove(self)
        self.then()


class Operator:
    """The operator. tasks: the orders that are not done yet. done: the number of orders that succeeded."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.scheduler = cluster.scheduler
        self.random = self.scheduler.random("operator")
        self.tasks: list[Task] = []
        self.given = self.done = 0

    def want(
        self, order: Callable[[], Order], is_void: Callable[[], bool], then: Callable[[], None] = lambda: None
    ) -> None:
        task = Task(self, order, is_void, then)
        self.tasks.append(task)
        task.give()

    def try_once(self, order: Order) -> None:
        task = Task(self, lambda: order, lambda: False, lambda: None, is_tried_once=True)
        self.tasks.append(task)
        task.give()
        if not task.is_over:
            self.scheduler.schedule(ANSWER_US, lambda: None if task.is_over else task._end())
