"""The record of a group's consumers and its operator, in addition to the log, and the settings of the group."""

from __future__ import annotations

from random import Random
from typing import Final

from msgspec import Struct, field

from elasticq.checks.group_history import Event
from elasticq.engine.ordering.partitions import PARTITIONS
from elasticq.model.commands import CreateQueue
from elasticq.model.names import DEFAULT_ACCOUNT, queue_url
from elasticq.sim.group_log import PREFIX, GroupLog
from elasticq.sim.queues import ENDPOINT

GROUP: Final = "sharing"
SESSIONS_MS: Final = (2_000, 2_000, 4_000)
DELAYS_MS: Final = (0, 0, 400)
PARTITIONS_SHARE: Final = 0.3  # share of groups whose consumers divide partitions
STREAM: Final = f"{PREFIX}stream.fifo"


class GroupRecord(Struct):
    """The events of a run's group. drained: the consumers whose weight an operator set to 0."""

    log: GroupLog
    events: list[Event] = field(default_factory=list)
    drained: set[str] = field(default_factory=set)


class GroupPlan(Struct, frozen=True):
    """The group of a run, drawn from its seed. Its consumers divide several queues or the partitions of one queue.

    resources: the names of what consumers hold. weights: of the consumers. partitions: 0 for a group of queues.
    """

    queues: list[str]
    resources: list[str]
    weights: list[int]
    session_ms: int
    delay_ms: int
    max_per_consumer: int
    partitions: int

    def create(self, queue: str) -> CreateQueue:
        """Return the command that creates a queue of the group."""
        if not self.partitions:
            return CreateQueue(queue_name=queue)
        attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true", PARTITIONS: str(self.partitions)}
        return CreateQueue(queue_name=queue, attributes=attributes)

    @property
    def quiet_us(self) -> int:
        """Return the time after the last fault at which all resources must be assigned.

        It consists of two sessions, the rebalance delay, and 4 s for the grace and some calls.
        """
        return 1_000 * (2 * self.session_ms + self.delay_ms + 4_000)


def plan(seed: int) -> GroupPlan:
    """Return the group of a seed. The same seed always gives the same group."""
    random = Random(f"{seed}/group plan")
    consumers = random.randint(2, 4)
    weights = [1] * consumers
    if random.random() < 0.3:
        weights[0] = random.choice((2, 3))
    count = random.randint(3, 7)
    session_ms, delay_ms, bound = random.choice(SESSIONS_MS), random.choice(DELAYS_MS), random.choice((0, 0, 0, 2))
    queues = [f"{PREFIX}{number}" for number in range(count)]
    if random.random() < PARTITIONS_SHARE:
        resources = [f"{STREAM}/{partition}" for partition in range(count)]
        return GroupPlan([STREAM], resources, weights, session_ms, delay_ms, bound, count)
    return GroupPlan(queues, queues, weights, session_ms, delay_ms, bound, 0)


def url_of(queue: str) -> str:
    return queue_url(ENDPOINT, DEFAULT_ACCOUNT, queue)
