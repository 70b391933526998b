"""What a Runtime drives: a member of a cluster (node.py), or a proxy that passes calls on to one (proxy.py)."""

from abc import ABC, abstractmethod

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
    """Pure: each input is a method, ``effects`` are drained after each. ``now_ms`` is the boot-time clock in ms."""

    effects: Effects
    clock: ClusterClock

    @abstractmethod
    def start(self, now_ms: int, wall_ms: int) -> None:
        """Begin; the first input."""

    @abstractmethod
    def submit(self, call: Call, ticket: Ticket, now_ms: int) -> None:
        """Take the call of a client; its answer comes out as a Reply, now or after a later input."""

    @abstractmethod
    def cancel(self, ticket: Ticket, now_ms: int) -> None:
        """The client of a waiting receive left; harmless for any other ticket."""

    @abstractmethod
    def undelivered(self, result: Result, now_ms: int) -> None:
        """The answer of a receive could not be written: its messages become visible again."""

    @abstractmethod
    def close_waiters(self, now_ms: int) -> None:
        """End all long polls, for a graceful stop."""

    @abstractmethod
    def receive_all(self, frames: list[tuple[str, bytes]], now_ms: int) -> list[tuple[str, FrameError]]:
        """Take frames that came together, each with the id that the other end of its link has proved.

        Returns refusals by link. Frames behind a refused one of the same link are not read, as it is about to be cut.
        """

    @abstractmethod
    def met(self, peer: Peer, now_ms: int) -> None:
        """Take the greeting of another member, its first or a renewed one."""

    @abstractmethod
    def lost(self, member_id: str, now_ms: int) -> None:
        """The link to another member broke."""

    @abstractmethod
    def introduce(self) -> Peer:
        """The greeting by which this process tells others what it is."""

    @abstractmethod
    def order(self, order: Order, ticket: Ticket, now_ms: int) -> None:
        """Carry out an order of the operator; the reply's outcome is an OrderDone or an OrderRefused."""

    @abstractmethod
    def hand_over(self, now_ms: int, to: str = "") -> bool:
        """Begin to give the mastership away; False if it cannot be given."""

    @abstractmethod
    def tick(self, now_ms: int) -> None:
        """Do what time made due."""

    @abstractmethod
    def status(self, now_ms: int, groups_max: int = 0) -> NodeStatus:
        """What ``/ready`` and ``/cluster`` tell of this process."""

    @abstractmethod
    def leases(self, now_ms: int, limit: int) -> list[LeaseStatus]:
        """Up to ``limit`` leases as they are known here: the living ones, and then those that ended last."""

    @property
    @abstractmethod
    def ignored_attributes(self) -> set[str]:
        """Unknown attributes of queues that calls gave and that were passed over here (limits = relaxed)."""
