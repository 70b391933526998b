"""What the admin port wants to know of its member; the server gives it."""

from collections.abc import Iterator
from typing import Protocol

from elasticq.engine.figures import QueueFigures
from elasticq.model.histogram import Histogram
from elasticq.node.orders import Order, OrderOutcome
from elasticq.node.settings import LeaseStatus, NodeStatus
from elasticq.runtime.meter import Meter


class AdminSource(Protocol):
    """The member behind an admin port. Called in the loop; only ``order`` may take time."""

    @property
    def node_name(self) -> str:
        """The ``--node-id``."""

    @property
    def stopping(self) -> bool:
        """No longer ready, whatever the status says."""

    def health(self) -> str:
        """One line: OK, and how durable."""

    def status(self) -> NodeStatus:
        """As of now."""

    def leases(self, limit: int) -> list[LeaseStatus]:
        """As of now, on this member."""

    def metrics(self) -> dict[str, float]:
        """More figures by name without ``elasticq_``; a name that ends in ``_total`` is a counter."""

    def histograms(self) -> dict[str, tuple[str, Histogram]]:
        """What took how many seconds: (meaning, figures) by name without ``elasticq_``."""

    def meter(self) -> Meter:
        """What clients asked of this member."""

    def queues(self) -> Iterator[QueueFigures]:
        """Of each queue as it is when it is asked for; may be asked slowly."""

    async def order(self, order: Order) -> OrderOutcome:
        """What became of it. Raises RuntimeStopped when no answer can be given any more."""
