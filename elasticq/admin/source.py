"""What the admin port wants to know of its member; the server gives it."""

from typing import Protocol

from elasticq.node.orders import Order, OrderOutcome
from elasticq.node.settings import LeaseStatus, NodeStatus


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

    async def order(self, order: Order) -> OrderOutcome:
        """What became of it. Raises RuntimeStopped when no answer can be given any more."""
