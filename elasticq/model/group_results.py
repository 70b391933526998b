"""The results of commands on consumer groups. Times are cluster time in ms, durations are in ms."""

from msgspec import Struct, field

from elasticq.model.results import Result

FREE, HELD, REVOKING = "free", "held", "revoking"
"""The states of a group's resource. REVOKING: a consumer holds it, and was asked to release it."""


class GroupChangedResult(Result):
    """The result of ElasticqSetGroup, ElasticqMoveResource and ElasticqDrainConsumer."""

    group_name: str
    generation: int


class HeldResource(Struct, rename="pascal", omit_defaults=True, gc=False):
    """A resource that a consumer holds. ``resource``: the name of a queue, or NAME/K for its partition K."""

    resource: str
    queue_url: str
    token: int
    partition: int | None = None


class GroupViewResult(Result):
    """The result of ElasticqHeartbeat: the view of a consumer.

    version: grows with each change of ``assigned`` or ``revoking``. hold_ms: how long the consumer may use its
    resources, by its own clock, from when it sent its last answered call. heartbeat_ms: after this time from an answer,
    the next call is due.
    """

    group_name: str
    consumer_id: str
    version: int
    generation: int
    session_timeout_ms: int
    hold_ms: int
    heartbeat_ms: int
    assigned: list[HeldResource]
    revoking: list[HeldResource]


class GroupJoinedResult(GroupViewResult):
    """The result of ElasticqJoinGroup: the view of the new consumer."""


class ConsumerShown(Struct, rename="pascal", omit_defaults=True, gc=False):
    consumer_id: str
    consumer_name: str
    weight: int
    joined_ms: int
    deadline_ms: int
    address: str | None = None


class ResourceShown(Struct, rename="pascal", omit_defaults=True, gc=False):
    """A resource in the result of ElasticqDescribeGroups. ``state``: FREE, HELD or REVOKING."""

    resource: str
    queue_url: str
    state: str
    partition: int | None = None
    consumer_id: str | None = None
    token: int | None = None


class GroupShown(Struct, rename="pascal", omit_defaults=True, gc=False):
    """A group in the result of ElasticqDescribeGroups.

    moves: how many resources were ever taken from one consumer for another one. rebalanced_ms: how long the last
    rebalance took.
    """

    group_name: str
    generation: int
    session_timeout_ms: int
    rebalance_delay_ms: int
    max_per_consumer: int
    moves: int
    rebalanced_ms: int
    consumers: list[ConsumerShown]
    resources: list[ResourceShown]
    queue_names: list[str] = field(default_factory=list)
    queue_name_prefix: str | None = None
    partitions_of: str | None = None


class GroupsResult(Result):
    """The result of ElasticqDescribeGroups."""

    groups: list[GroupShown]
    next_token: str | None = None
