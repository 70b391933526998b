"""The interface of a member to its admin port. The server implements it."""

from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec import Struct

from elasticq.admin.attention.clients import ClientWatch
from elasticq.admin.attention.queues import QueueWatch
from elasticq.admin.history import History
from elasticq.admin.subscriptions import SubscriptionCounts
from elasticq.engine.stored.mutations import SubscriptionSet, TopicSet
from elasticq.engine.views.condition import QueueCondition
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
from elasticq.peers.transfer import Snapshot
from elasticq.runtime.meter import Meter


class Waiting(Struct, frozen=True):
    """A receive that waits at a queue for messages.

    owner, queue: of the queue (model/names.py); left_ms: until its wait ends; member: the name of the member that its
    client called; address: the client's, empty if it called another member.
    """

    owner: str
    queue: str
    left_ms: int
    member: str
    address: str


class Event(Struct, frozen=True):
    """An event in the log: a change in the cluster, or the purge or deletion of a queue.

    time_ms: the member's wall clock, in ms since the epoch. member: the names of those that logged it; empty: this one.
    """

    time_ms: int
    level: str
    event: str
    text: str
    member: str = ""


class Links(Struct, frozen=True):
    """The troubles of this process's links.

    unreached: by address, why the last attempt to link a member failed. conflicts: links refused in the last 10 s.
    """

    unreached: dict[str, str] = {}
    conflicts: list[str] = []


PassedOn = tuple[str, int]
"""The process that passed a call on, and the number of the call there; ("", 0) if the client called this process."""

FindSubscription = Callable[[str, str], SubscriptionSet | None]
"""A function that returns the subscription with a protocol and an endpoint, None if there is none."""


class AdminSource(Protocol):
    """The member behind an admin port. Its methods run in the loop. Only the asynchronous ones may take time.

    started_ms: when the process started, by its wall clock. watch, clients: its watches over queues and clients.
    """

    started_ms: int
    watch: QueueWatch
    clients: ClientWatch

    @property
    def node_name(self) -> str:
        """Return the ``--node-id``."""

    @property
    def stopping(self) -> bool:
        """Return whether the member stops. If so, it is not ready, even if ``status`` has ``ready``."""

    def wall_ms(self) -> int:
        """Return the time of this process's wall clock."""

    def links(self) -> Links:
        """Return the troubles of its links."""

    def conditions(self) -> Iterator[QueueCondition]:
        """Yield the condition of each queue that has messages and that clients can see.

        It is read at the time of the step.
        """

    def health(self) -> str:
        """Return one line: OK, the durability if it is reduced, and whether the build is compiled."""

    def status(self) -> NodeStatus:
        """Return the node's current status."""

    def leases(self, limit: int) -> list[LeaseStatus]:
        """Return at most ``limit`` leases that this member knows."""

    def groups(self, limit: int) -> list[GroupStatus]:
        """Return at most ``limit`` consumer groups that this member knows."""

    def metrics(self) -> dict[str, float]:
        """Return more figures by name, without the prefix ``elasticq_``. Names of counters end in ``_total``."""

    def histograms(self) -> dict[str, tuple[str, Histogram]]:
        """Return histograms of durations in seconds: (help text, histogram) by name without ``elasticq_``."""

    def meter(self) -> Meter:
        """Return the counts and durations of clients' calls to this member."""

    def pushes(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Return counts of posts to web servers: (delivered, retried, failed) by owner and name of the topic."""

    def delivered_in_steps(self) -> dict[tuple[str, str], PublishCounts]:
        """Return counts of deliveries that this member, as the master, made after the publish was answered.

        They are by owner and name of the topic, and happen for publishes to more subscriptions than an entry holds.
        """

    def topics(self) -> Iterator[tuple[TopicSet, list[SubscriptionSet]]]:
        """Yield each topic with its subscriptions, read at the time of the step."""

    def topic(self, owner: str, name: str) -> tuple[TopicSet, FindSubscription] | None:
        """Return a topic and a function that finds its subscriptions, None if the topic does not exist."""

    def subscriptions(self) -> Iterator[SubscriptionCounts]:
        """Yield the counts of each subscription that has some, read at the time of the step."""

    def subscription(self, key: str) -> SubscriptionCounts | None:
        """Return the counts of one subscription, by the end of its ARN, None if it has none."""

    def expired(self) -> dict[tuple[str, str], int]:
        """Return how many expired messages this member, as the master, removed, by owner and name of the queue."""

    def queues(self) -> Iterator[QueueFigures]:
        """Yield the figures of each queue that clients can see, read at the time of the step.

        The caller may pause between steps.
        """

    def queue(self, owner: str, name: str) -> QueueFigures | None:
        """Return the figures of one queue, None if it does not exist. ``is_dead_letter_queue`` is always false."""

    def in_flight(self, owner: str, name: str, limit: int) -> InFlight | None:
        """Return what is in flight in a queue, with at most ``limit`` messages. Return None if it does not exist."""

    def group_order(self, owner: str, name: str, wanted: str, groups_max: int, messages_max: int) -> GroupOrder | None:
        """Return the order of messages in groups whose ids contain ``wanted``, None if the queue has no such order."""

    async def ask(self, member_id: str, kind: str, body: bytes, timeout_s: float) -> Answer:
        """Return another member's answer to a question, sent over the link to it. Raise NotAnswered without one."""

    async def open_snapshot(self, index: int) -> Snapshot:
        """Return a file with the committed state at ``index`` or later. Raise DataError if there is none now."""

    def release_snapshot(self, snapshot: Snapshot) -> None:
        """Release a file. Called once for each ``open_snapshot``."""

    async def order(self, order: Order) -> OrderOutcome:
        """Execute an order and return its outcome. Raise RuntimeStopped if the runtime stops meanwhile."""

    @property
    def history(self) -> History:
        """Return the history of queues, with the rates of messages through this member."""

    @property
    def account(self) -> str:
        """Return the ``node.account``, which is used if a request names no account."""

    @property
    def region(self) -> str:
        """Return the ``node.region``."""

    @property
    def endpoint(self) -> str:
        """Return scheme://host:port of the SQS port, for the QueueUrls of answers."""

    @property
    def is_read_only(self) -> bool:
        """Return whether the admin port is read-only (``admin.read_only``)."""

    async def execute(self, command: Command, owner: str) -> Result:
        """Execute a command of SQS for an owner (model/names.py), here or at the master.

        Raise SqsError if it fails, RuntimeStopped if the runtime stops meanwhile.
        """

    def consumers(self) -> dict[tuple[str, str], int]:
        """Return how many receives wait at each queue, by owner and name. The master counts those of all members."""

    def waiting(self, limit: int) -> list[tuple[Waiting, PassedOn]]:
        """Return at most ``limit`` receives that wait at this member. The master returns those of all members."""

    def address_of(self, number: int) -> str:
        """Return the address of the client whose call this process passed on under this number, empty if unknown."""

    def tasks(self, limit: int) -> list[Task]:
        """Return the work that is done in the background, with at most ``limit`` tasks of a kind."""

    def events(self) -> list[Event]:
        """Return the latest events of this process's log, the newest first."""
