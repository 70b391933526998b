"""What the admin port asks of its member; the server provides it."""

from collections.abc import Iterator
from typing import Protocol

from elasticq.engine.figures import QueueFigures
from elasticq.model.histogram import Histogram
from elasticq.node.orders import Order, OrderOutcome
from elasticq.node.settings import LeaseStatus, NodeStatus
from elasticq.peers.questions import Answer
from elasticq.runtime.meter import Meter


class AdminSource(Protocol):
    """The member behind an admin port. Its methods are called in the loop; only ``order`` and ``ask`` may take time."""

    @property
    def node_name(self) -> str:
        """The ``--node-id``."""

    @property
    def stopping(self) -> bool:
        """Whether the member stops: it is not ready then, whatever ``status`` says."""

    def health(self) -> str:
        """Return one line: OK, the durability where that is not the full one, and whether the build is compiled."""

    def status(self) -> NodeStatus:
        """Return the node's status at this moment."""

    def leases(self, limit: int) -> list[LeaseStatus]:
        """Return at most ``limit`` leases as this member knows them at this moment."""

    def metrics(self) -> dict[str, float]:
        """Return more figures by name without ``elasticq_``; a name that ends in ``_total`` is a counter."""

    def histograms(self) -> dict[str, tuple[str, Histogram]]:
        """Return what took how many seconds: (meaning, figures) by name without ``elasticq_``."""

    def meter(self) -> Meter:
        """Return the counts of what clients asked of this member."""

    def pushes(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Return what became of notifications to web servers: delivered, tried again, given up, by owner and name of
        the topic."""

    def queues(self) -> Iterator[QueueFigures]:
        """Yield the figures of each queue as they are when it is its turn; the caller may take its time."""

    async def ask(self, member_id: str, kind: str, body: bytes, timeout_s: float) -> Answer:
        """Return what another member answers to a question, asked over the link to it. Raises NotAnswered."""

    async def order(self, order: Order) -> OrderOutcome:
        """Carry out an order and return what became of it. Raises RuntimeStopped if the runtime stops meanwhile."""
