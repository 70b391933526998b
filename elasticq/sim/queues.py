"""The queues that a scenario's clients work with. The scenario's ``features``, drawn by the swarm, decide which:

fifo, all_fifo   the second queue, or both, are FIFO; then also:
content_based    deduplication ids are made of the contents
group_scope      ids are deduplicated by message group
delay            the queue has a delay
attempts         receives have a ReceiveRequestAttemptId and are repeated
dead_letters     each queue has a dead-letter queue and a small maxReceiveCount
move_tasks       and now and then its dead letters are moved back
leases           readers take messages under leases, too
priorities       the first queue, unless it is FIFO, is a priority queue, and its messages' priorities are changed
schedules        messages of queues that are not FIFO may have a time of delivery of their own, and another one later,
                 or be cancelled
partitions       FIFO queues have partitions, from which is received one by one, too
shares           messages of standard queues have groups, which share by weights, each with few messages in flight

topics           besides, publishers publish to topics, see topics.py
groups           besides, consumers of a group share queues of their own, see groups.py
"""

import json
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from elasticq.checks.history import CreateQueue as QueueCreated
from elasticq.model.commands import CreateQueue
from elasticq.model.limits import RELAXED, STRICT, Limits
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn, queue_url

ENDPOINT = "http://sim:9324"
NAMES = ("orders", "invoices")
QUEUE_VISIBILITY_S = 4
RECEIVES_MAX = {"orders": 1, "invoices": 2}
FEATURES = (
    "fifo",
    "all_fifo",
    "content_based",
    "group_scope",
    "delay",
    "attempts",
    "dead_letters",
    "move_tasks",
    "leases",
)
"""Drawn from one stream; later features have streams of their own, so that old seeds stay as they are."""
PRIORITIES = "priorities"
PRIORITY = 3
SCHEDULES = "schedules"
PARTITIONS = "partitions"
PARTITIONS_OF_SOURCES, PARTITIONS_OF_TARGETS = 4, 2  # the groups are in three of the four, and in both of the two
SHARES = "shares"
SHARED = {
    "ElasticqFairness": "weighted",
    "ElasticqGroupWeights": '{"red": 3, "green": 2}',
    "ElasticqMaxInFlightPerGroup": "3",
}
TOPICS = "topics"
GROUPS = "groups"
COPIES_MAX = 3  # of one entry, where there are topics


class LoadQueue(Struct, frozen=True):
    """A queue. target: its dead-letter queue, empty without; source: the queue whose dead letters it takes."""

    name: str
    is_fifo: bool = False
    is_content_based: bool = False
    is_by_group: bool = False
    is_shared: bool = False
    delay_s: int = 0
    target: str = ""
    receives_max: int = 0
    source: str = ""
    has_priorities: bool = False
    partitions: int = 0

    @property
    def url(self) -> str:
        return queue_url(ENDPOINT, DEFAULT_ACCOUNT, self.name)

    def any_partition(self, random: Random) -> int | None:
        """Draw a partition to ask for; None is to ask the whole queue."""
        drawn = random.randint(-1, self.partitions - 1) if self.partitions else -1
        return drawn if drawn >= 0 else None

    def command(self) -> CreateQueue:
        attributes = {"VisibilityTimeout": str(QUEUE_VISIBILITY_S)}
        if self.is_fifo:
            attributes["FifoQueue"] = "true"
        if self.is_content_based:
            attributes["ContentBasedDeduplication"] = "true"
        if self.is_by_group:
            attributes["DeduplicationScope"] = "messageGroup"
            attributes["FifoThroughputLimit"] = "perMessageGroupId"
        if self.partitions:
            attributes["ElasticqPartitions"] = str(self.partitions)
        if self.is_shared:
            attributes.update(SHARED)
        if self.delay_s:
            attributes["DelaySeconds"] = str(self.delay_s)
        if self.has_priorities:
            attributes["ElasticqOrder"] = "priority"
            attributes["ElasticqDefaultPriority"] = str(PRIORITY)
        if self.target:
            policy = {"deadLetterTargetArn": arn(self.target), "maxReceiveCount": self.receives_max}
            attributes["RedrivePolicy"] = json.dumps(policy)
        return CreateQueue(queue_name=self.name, attributes=attributes)

    def event(self, client: str, now_us: int) -> QueueCreated:
        return QueueCreated(
            client=client,
            queue=self.name,
            invoke_us=now_us,
            is_fifo=self.is_fifo,
            is_deduplicated_by_group=self.is_by_group,
            dead_letter_queue=self.target,
            receives_max=self.receives_max,
            has_priorities=self.has_priorities,
            default_priority=PRIORITY if self.has_priorities else 0,
            partitions=self.partitions,
        )


def arn(name: str) -> str:
    return queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, name)


def queues_of(features: tuple[str, ...]) -> tuple[LoadQueue, ...]:
    """Return the queues in an order in which they can be created: dead-letter queues first."""
    fifo = {NAMES[1]} if "fifo" in features else set()
    fifo |= set(NAMES) if "all_fifo" in features else set()
    dead: list[LoadQueue] = []
    found: list[LoadQueue] = []
    for stem in NAMES:
        is_fifo = stem in fifo
        has_priorities = stem == NAMES[0] and not is_fifo and PRIORITIES in features
        suffix = ".fifo" if is_fifo else ""
        name, target = stem + suffix, f"{stem}-dead{suffix}" if "dead_letters" in features else ""
        if target:
            dead.append(
                LoadQueue(
                    target,
                    is_fifo,
                    source=name,
                    has_priorities=has_priorities,
                    partitions=PARTITIONS_OF_TARGETS if is_fifo and PARTITIONS in features else 0,
                )
            )
        found.append(
            LoadQueue(
                name,
                is_fifo,
                is_content_based=is_fifo and "content_based" in features,
                is_by_group=is_fifo and "group_scope" in features,
                is_shared=not is_fifo and not has_priorities and SHARES in features,
                delay_s=int(is_fifo and "delay" in features),
                target=target,
                receives_max=RECEIVES_MAX[stem] if target else 0,
                has_priorities=has_priorities,
                partitions=PARTITIONS_OF_SOURCES if is_fifo and PARTITIONS in features else 0,
            )
        )
    return (*dead, *found)


def limits_of(features: tuple[str, ...], *, is_relaxed: bool) -> Limits:
    """Return the limits of members: entries with few copies where the scenario has topics."""
    allowed = RELAXED if is_relaxed else STRICT
    return replace(allowed, copies=COPIES_MAX) if TOPICS in features else allowed
