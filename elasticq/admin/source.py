"""What the admin port asks of its member; the server provides it."""

from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec import Struct

from elasticq.admin.rates import Rates
from elasticq.engine.stored.mutations import SubscriptionSet, TopicSet
from elasticq.engine.views.figures import QueueFigures
from elasticq.engine.views.in_flight import InFlight
from elasticq.engine.views.message_group_order import GroupOrder
from elasticq.model.commands import Command
from elasticq.model.histogram import Histogram
from elasticq.model.results import Result
from elasticq.model.topic_results import PublishCounts
from elasticq.node.orders import Order, OrderOutcome
from elasticq.node.reports.background import Task
from elasticq.node.settings import GroupStatus, LeaseStatus, NodeStatus
from elasticq.peers.questions import Answer
from elasticq.runtime.meter import Meter


class Waiting(Struct, frozen=True):
    """A receive that waits at a queue for messages.

    owner, queue: of the queue (model/names.py); left_ms: how long it still waits at most; member: the name of the
    member that its client asked; address: of the client, empty where it asked another member.
    """

    owner: str
    queue: str
    left_ms: int
    member: str
    address: str


class Event(Struct, frozen=True):
    """Something that the log tells once: what happened to the cluster, or which queue was purged or deleted by whom.

    time_ms: wall-clock ms since the epoch, of this member.
    """

    time_ms: int
    level: str
    event: str
    text: str


class SubscriptionCounts(Struct, frozen=True):
    """What this member, as the master, did for a subscription since its process began.

    topic: owner and name; key: the end of the subscription's ARN; queue: the name of the queue that it is, empty for
    a web server; delivered: copies that its queue took, or posts that its web server took; retried: posts that
    failed and are tried again; failed: copies that were refused, and posts that were given up, which its dead-letter
    queue has instead, if there is one.
    """

    topic: tuple[str, str]
    key: str
    protocol: str
    queue: str
    delivered: int
    retried: int
    failed: int


FindSubscription = Callable[[str, str], SubscriptionSet | None]
"""Called with a protocol and an endpoint; returns the subscription of that endpoint, None where there is none."""


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

    def groups(self, limit: int) -> list[GroupStatus]:
        """Return at most ``limit`` consumer groups as this member knows them at this moment."""

    def metrics(self) -> dict[str, float]:
        """Return more figures by name without ``elasticq_``; a name that ends in ``_total`` is a counter."""

    def histograms(self) -> dict[str, tuple[str, Histogram]]:
        """Return what took how many seconds: (meaning, figures) by name without ``elasticq_``."""

    def meter(self) -> Meter:
        """Return the counts of what clients asked of this member."""

    def pushes(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Return what became of notifications to web servers: delivered, tried again, given up, by owner and name of
        the topic."""

    def delivered_in_steps(self) -> dict[tuple[str, str], PublishCounts]:
        """Return what this member stored, as the master, of publishes to more subscriptions than an entry holds, by
        owner and name of the topic."""

    def topics(self) -> Iterator[tuple[TopicSet, list[SubscriptionSet]]]:
        """Yield each topic with its subscriptions, as they are when it is its turn."""

    def topic(self, owner: str, name: str) -> tuple[TopicSet, FindSubscription] | None:
        """Return one topic, and what finds a subscription of it; None where there is no such topic."""

    def subscriptions(self) -> Iterator[SubscriptionCounts]:
        """Yield the counts of each subscription for which something was done, as they are when it is its turn."""

    def subscription(self, key: str) -> SubscriptionCounts | None:
        """Return the counts of one subscription, by the end of its ARN; None where nothing was done for it."""

    def expired(self) -> dict[tuple[str, str], int]:
        """Return how many messages this member, as the master, removed as expired, by owner and name of the queue."""

    def queues(self) -> Iterator[QueueFigures]:
        """Yield the figures of each queue as they are when it is its turn; the caller may take its time."""

    def queue(self, owner: str, name: str) -> QueueFigures | None:
        """Return the figures of one queue, None where there is none; ``is_dead_letter_queue`` is not told."""

    def in_flight(self, owner: str, name: str, limit: int) -> InFlight | None:
        """Return what is in flight in a queue, with at most ``limit`` messages; None where there is no such queue."""

    def group_order(self, owner: str, name: str, wanted: str, groups_max: int, messages_max: int) -> GroupOrder | None:
        """Return how messages stand in groups whose ids contain ``wanted``; None where a queue has no groups."""

    async def ask(self, member_id: str, kind: str, body: bytes, timeout_s: float) -> Answer:
        """Return what another member answers to a question, asked over the link to it. Raises NotAnswered."""

    async def order(self, order: Order) -> OrderOutcome:
        """Carry out an order and return what became of it. Raises RuntimeStopped if the runtime stops meanwhile."""

    @property
    def rates(self) -> Rates:
        """How many messages went in and out through this member."""

    @property
    def account(self) -> str:
        """The ``node.account``, whose queues are shown where no other account is named."""

    @property
    def region(self) -> str:
        """The ``node.region``."""

    @property
    def endpoint(self) -> str:
        """scheme://host:port of the SQS port, for the QueueUrls of answers."""

    @property
    def is_read_only(self) -> bool:
        """Whether the admin port may change nothing (``admin.read_only``)."""

    async def execute(self, command: Command, owner: str) -> Result:
        """Execute a command of SQS for an owner (model/names.py), here or at the master.

        Raises SqsError, or RuntimeStopped if the runtime stops meanwhile.
        """

    def consumers(self) -> dict[tuple[str, str], int]:
        """Return how many receives wait at each queue with some, by owner and name: of all members at the master."""

    def waiting(self, limit: int) -> list[Waiting]:
        """Return at most ``limit`` receives that wait at this member: all of the cluster's at the master."""

    def tasks(self, limit: int) -> list[Task]:
        """Return what goes on in the background, with ``limit`` of a kind at most."""

    def events(self) -> list[Event]:
        """Return what the log told last, the newest first."""
