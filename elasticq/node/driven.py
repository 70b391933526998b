"""The interface that a Runtime drives: a member of a cluster (node.py), or a proxy that passes calls on (proxy.py)."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from elasticq.model.commands import Call
from elasticq.model.results import Result
from elasticq.node.clock import ClusterClock
from elasticq.node.effects import Effects
from elasticq.node.membership.peer import Peer
from elasticq.node.orders import Order
from elasticq.node.outputs import Ticket
from elasticq.node.settings import LeaseStatus, NodeStatus
from elasticq.replication.messages import FrameError


class Driven(ABC):
    """A pure object: each input is a method, and the caller drains ``effects`` after each input.

    ``now_ms`` is the boot clock in ms.

    passed_on: returns the ticket of the unanswered call that was passed on under a number; None if there is none.
    """

    effects: Effects
    clock: ClusterClock
    passed_on: Callable[[int], Ticket | None]

    @abstractmethod
    def start(self, now_ms: int, wall_ms: int) -> None:
        """Start. This is the first input."""

    @abstractmethod
    def submit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Handle the call of a client. Its answer comes as a Reply, at once or after a later input."""

    @abstractmethod
    def cancel(self, ticket: Ticket, now_ms: int) -> None:
        """Forget the waiting call of a client that disconnected. Any other ticket changes nothing."""

    @abstractmethod
    def undelivered(self, result: Result, now_ms: int) -> None:
        """Make the messages of a receive visible again, because its answer could not be written."""

    @abstractmethod
    def close_waiters(self, now_ms: int) -> None:
        """End all long polls, for a graceful stop."""

    @abstractmethod
    def receive_all(self, frames: list[tuple[str, bytes]], now_ms: int) -> list[tuple[str, FrameError]]:
        """Handle frames that arrived together, each with the id that the other end of its link has proved.

        Return the refusals, each with its link. Frames after a refused one of the same link are not read, because that
        link is about to be closed.
        """

    @abstractmethod
    def met(self, peer: Peer, now_ms: int) -> None:
        """Handle the greeting of another member, its first one or a renewed one."""

    @abstractmethod
    def lost(self, member_id: str, now_ms: int) -> None:
        """Handle the loss of the link to another member."""

    @abstractmethod
    def introduce(self) -> Peer:
        """Return the greeting by which this process describes itself to others."""

    @abstractmethod
    def order(self, order: Order, ticket: Ticket, now_ms: int) -> None:
        """Carry out an order of the operator. The outcome of its reply is an OrderDone or an OrderRefused."""

    @abstractmethod
    def hand_over(self, now_ms: int, to: str = "") -> bool:
        """Begin to hand over the mastership, to the member ``to`` if given. Return False if that is impossible."""

    @abstractmethod
    def tick(self, now_ms: int) -> None:
        """Do what is due at ``now_ms``."""

    @abstractmethod
    def status(self, now_ms: int, groups_max: int = 0) -> NodeStatus:
        """Return the status that ``/ready`` and ``/cluster`` show for this process."""

    @abstractmethod
    def leases(self, now_ms: int, limit: int) -> list[LeaseStatus]:
        """Return up to ``limit`` leases known here: first the active ones, then those that ended last."""

    @property
    @abstractmethod
    def ignored_attributes(self) -> set[str]:
        """Return the unknown queue attributes of calls that were ignored here (limits = relaxed)."""
