"""The queues of a scenario. The scenario's ``features`` decide which queues there are and how clients use them.

fifo, all_fifo   the second queue is FIFO, or both are
content_based    FIFO queues derive deduplication ids from the contents
group_scope      FIFO queues deduplicate by message group
delay            FIFO queues have a delay
attempts         receives from FIFO queues have a ReceiveRequestAttemptId and are repeated
dead_letters     each queue has a dead-letter queue and a small maxReceiveCount
move_tasks       sometimes dead letters are moved back
leases           readers also receive messages under leases
priorities       the first queue, unless it is FIFO, is a priority queue, and priorities of its messages change
schedules        messages of queues that are not FIFO may have a delivery time, which may change, or be cancelled
partitions       FIFO queues have partitions, and some receives name one
shares           standard queues have weighted fair shares, and few messages of each group are in flight

topics           publishers also publish to topics, see topics.py
groups           a consumer group also uses queues of its own, see groups.py
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
"""The features drawn from one random stream. Later features have their own streams, so old seeds do not change."""
PRIORITIES = "priorities"
PRIORITY = 3
SCHEDULES = "schedules"
PARTITIONS = "partitions"
PARTITIONS_OF_SOURCES, PARTITIONS_OF_TARGETS = 4, 2  # the groups use three of the four, and both of the two
SHARES = "shares"
SHARED = {
    "ElasticqFairness": "weighted",
    "ElasticqGroupWeights": '{"red": 3, "green": 2}',
    "ElasticqMaxInFlightPerGroup": "3",
}
TOPICS = "topics"
GROUPS = "groups"
COPIES_MAX = 3  # the copies in one entry, in scenarios with topics


class LoadQueue(Struct, frozen=True):
    """A queue. target: its dead-letter queue, empty if none. source: the queue whose dead letters it gets."""

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
        """Return a random partition for a receive, or None for the whole queue."""
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
    """Return the queues in the order of their creation: dead-letter queues first."""
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
    """Return the limits of the members. In scenarios with topics an entry may have only few copies."""
    allowed = RELAXED if is_relaxed else STRICT
    return replace(allowed, copies=COPIES_MAX) if TOPICS in features else allowed
