"""What commands on consumer groups answer. Times are ms of the cluster's clock, spans ms."""

from msgspec import Struct, field

from elasticq.model.results import Result

FREE, HELD, REVOKING = "free", "held", "revoking"
"""What a resource of a group is: nobody's, a consumer's, or one's that was asked to give it back."""


class GroupChangedResult(Result):
    """ElasticqSetGroup, ElasticqMoveResource, ElasticqDrainConsumer."""

    group_name: str
    generation: int


class HeldResource(Struct, rename="pascal", omit_defaults=True, gc=False):
    """A resource in a consumer's hands; ``resource``: the queue's name, or NAME/K for a partition K of it."""

    resource: str
    queue_url: str
    token: int
    partition: int | None = None


class GroupViewResult(Result):
    """ElasticqHeartbeat: what a consumer has to do.

    version: larger whenever ``assigned`` or ``revoking`` differ from what they were. hold_ms: for so
    long after it sent the last call that was answered the consumer may act, by its own clock. heartbeat_ms: how long
    after an answer the next call is due.
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
    """ElasticqJoinGroup: the view of the new consumer."""


class ConsumerShown(Struct, rename="pascal", omit_defaults=True, gc=False):
    consumer_id: str
    consumer_name: str
    weight: int
    joined_ms: int
    deadline_ms: int
    address: str | None = None


class ResourceShown(Struct, rename="pascal", omit_defaults=True, gc=False):
    """``state``: FREE, HELD or REVOKING."""

    resource: str
    queue_url: str
    state: str
    partition: int | None = None
    consumer_id: str | None = None
    token: int | None = None


class GroupShown(Struct, rename="pascal", omit_defaults=True, gc=False):
    """A group of ElasticqDescribeGroups.

    moves: how many resources were taken from a consumer, so that another one gets them, ever. rebalanced_ms: how long
    the last rebalance took.
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
    """ElasticqDescribeGroups."""

    groups: list[GroupShown]
    next_token: str | None = None
