"""A member that is only what the test says of it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from msgspec.structs import replace

from elasticq.admin import asking
from elasticq.admin.attention.clients import ClientWatch
from elasticq.admin.attention.queues import QueueWatch
from elasticq.admin.history import History
from elasticq.admin.source import Event, FindSubscription, Links, PassedOn, Waiting
from elasticq.admin.subscriptions import SubscriptionCounts
from elasticq.engine.stored.mutations import SubscriptionSet, TopicSet
from elasticq.engine.views.condition import QueueCondition
from elasticq.engine.views.figures import QueueFigures
from elasticq.engine.views.in_flight import InFlight
from elasticq.engine.views.message_group_order import GroupOrder
from elasticq.model.commands import Command
from elasticq.model.errors import ServiceUnavailable
from elasticq.model.histogram import Histogram
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION
from elasticq.model.results import Result
from elasticq.model.topic_results import PublishCounts
from elasticq.node.orders import Order, OrderDone, OrderOutcome
from elasticq.node.reports.background import Task
from elasticq.node.settings import GroupStatus, LeaseStatus, MemberStatus, NodeStatus
from elasticq.peers.questions import Answer, NotAnswered
from elasticq.peers.transfer import Snapshot
from elasticq.runtime.meter import Meter
from elasticq.storage.snapshot import SnapshotRefused
from elasticq.wire.operations import OPERATIONS, SNS

IDS = {name: f"{name}-{digit * 16}" for name, digit in (("n1", "1"), ("n2", "2"), ("n3", "3"))}


def status_of(name: str, **changes: Any) -> NodeStatus:
    """Three members, n1 the master, as ``name`` sees them."""
    members = tuple(
        MemberStatus(
            id=member_id,
            name=other,
            role="master" if other == "n1" else "follower",
            voter=True,
            is_linked=True,
            lag=0 if other != "n3" else 4,
            address=f"10.0.0.{other[1]}:9326",
            http=f"http://10.0.0.{other[1]}:9324",
        )
        for other, member_id in IDS.items()
    )
    status = NodeStatus(
        member_id=IDS[name],
        role="master" if name == "n1" else "follower",
        master=IDS["n1"],
        term=7,
        commit_index=120,
        applied_index=119,
        last_index=121,
        ready=True,
        reason="",
        time_ms=1_800_000_000_000,
        voters=tuple(IDS.values()),
        match={},
        queues=2,
        waiters=1,
        contents_bytes=4_096,
        cluster_id="c" * 16,
        members=members,
        stale_ms=0 if name == "n1" else 4_000,
    )
    return replace(status, **changes)


class Member:
    """An AdminSource; ``outcome`` answers orders, ``orders`` keeps them."""

    def __init__(self, name: str = "n1", **changes: Any) -> None:
        self.node_name = name
        self.stopping = False
        self.seen = status_of(name, **changes)
        self.leased: list[LeaseStatus] = []
        self.known_groups: list[GroupStatus] = []
        self.more: dict[str, float] = {}
        self.times: dict[str, tuple[str, Histogram]] = {}
        self.counted = Meter([*OPERATIONS, *SNS.operations])
        self.queued: list[QueueFigures] = []
        self.queued_seen: Callable[[], None] = lambda: None  # called before each of them is given
        self.orders: list[Order] = []
        self.linked: dict[str, Member] = {}  # by member id
        self.asked: list[tuple[str, str]] = []
        self.outcome: Callable[[Order], Awaitable[OrderOutcome]] = self._done
        self.history = History(0)
        self.watch = QueueWatch(DEFAULT_REGION)
        self.clients = ClientWatch()
        self.started_ms = 1_800_000_000_000
        self.clock_ms = self.started_ms
        self.troubles = Links()
        self.receives: list[tuple[Waiting, PassedOn]] = []
        self.addresses: dict[int, str] = {}
        self.conditioned: list[QueueCondition] = []
        self.subscribed: list[SubscriptionCounts] = []
        self.outlived: dict[tuple[str, str], int] = {}
        self.awaited: dict[tuple[str, str], int] = {}
        self.told: list[Event] = []
        self.account, self.region, self.endpoint = DEFAULT_ACCOUNT, DEFAULT_REGION, "http://127.0.0.1:9324"
        self.is_read_only = False
        self.snapshot_at: Callable[[int], Awaitable[Snapshot]] = self._no_snapshot
        self.released: list[str] = []

    def wall_ms(self) -> int:
        return self.clock_ms

    def links(self) -> Links:
        return self.troubles

    def conditions(self) -> Iterator[QueueCondition]:
        yield from self.conditioned

    def health(self) -> str:
        return "OK durability=os"

    def status(self) -> NodeStatus:
        return self.seen

    def groups(self, limit: int) -> list[GroupStatus]:
        return self.known_groups[:limit]

    def leases(self, limit: int) -> list[LeaseStatus]:
        return self.leased[:limit]

    def metrics(self) -> dict[str, float]:
        return self.more

    def histograms(self) -> dict[str, tuple[str, Histogram]]:
        return self.times

    def meter(self) -> Meter:
        return self.counted

    def pushes(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        return {("000000000000", "news"): (3, 2, 1)}

    def delivered_in_steps(self) -> dict[tuple[str, str], PublishCounts]:
        return {("000000000000", "many"): PublishCounts(delivered=1_500, dead_lettered=2, failed=1)}

    def topics(self) -> Iterator[tuple[TopicSet, list[SubscriptionSet]]]:
        yield from ()

    def topic(self, owner: str, name: str) -> tuple[TopicSet, FindSubscription] | None:
        return None

    def subscriptions(self) -> Iterator[SubscriptionCounts]:
        yield from self.subscribed

    def subscription(self, key: str) -> SubscriptionCounts | None:
        return next((each for each in self.subscribed if each.key == key), None)

    def expired(self) -> dict[tuple[str, str], int]:
        return self.outlived

    def queues(self) -> Iterator[QueueFigures]:
        for figures in self.queued:
            self.queued_seen()
            yield figures

    def queue(self, owner: str, name: str) -> QueueFigures | None:
        return next((each for each in self.queued if (each.account, each.name) == (owner, name)), None)

    def in_flight(self, owner: str, name: str, limit: int) -> InFlight | None:
        return None

    def group_order(self, owner: str, name: str, wanted: str, groups_max: int, messages_max: int) -> GroupOrder | None:
        return None

    def consumers(self) -> dict[tuple[str, str], int]:
        return self.awaited

    def waiting(self, limit: int) -> list[tuple[Waiting, PassedOn]]:
        return self.receives[:limit]

    def address_of(self, number: int) -> str:
        return self.addresses.get(number, "")

    def tasks(self, limit: int) -> list[Task]:
        return []

    def events(self) -> list[Event]:
        return self.told

    async def execute(self, command: Command, owner: str) -> Result:
        raise ServiceUnavailable("It executes nothing: tests of that have a real server.")

    async def ask(self, member_id: str, kind: str, body: bytes, timeout_s: float) -> Answer:
        self.asked.append((member_id, kind))
        if member_id not in self.linked:
            raise NotAnswered("there is no link to it")
        return await asking.answer(self.linked[member_id], kind, body)

    async def open_snapshot(self, index: int) -> Snapshot:
        return await self.snapshot_at(index)

    def release_snapshot(self, snapshot: Snapshot) -> None:
        self.released.append(snapshot.id)

    async def _no_snapshot(self, index: int) -> Snapshot:
        raise SnapshotRefused(f"nothing is at {index}")

    async def order(self, order: Order) -> OrderOutcome:
        self.orders.append(order)
        return await self.outcome(order)

    async def _done(self, order: Order) -> OrderOutcome:
        await asyncio.sleep(0)
        return OrderDone(f"done: {type(order).__name__}")

    def with_members(self, **changes: dict[str, Any]) -> None:
        """Change what it sees of the members by name."""
        members = tuple(replace(member, **changes.get(member.name, {})) for member in self.seen.members)
        self.seen = replace(self.seen, members=members)


def trio() -> dict[str, Member]:
    """Three members with links to each other, by name."""
    members = {name: Member(name) for name in IDS}
    for name, member in members.items():
        member.linked = {IDS[other]: each for other, each in members.items() if other != name}
    return members
