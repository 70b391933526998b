"""The commands on consumer groups: one class per action. AWS has none of them (docs/adr/0031-consumer-groups.md).

A consumer group has a name, which is unique for its owner, as for queues. The bounds of all members are in
``limits.MEMBERS``.
"""

from typing import Annotated

from msgspec import field

from elasticq.model.commands import Command, NextToken
from elasticq.model.limits import MEMBERS

GroupName = Annotated[str, MEMBERS["GroupName"]]
ConsumerId = Annotated[str, MEMBERS["ConsumerId"]]
GroupNames = Annotated[list[Annotated[str, MEMBERS["GroupNames.item"]]], MEMBERS["GroupNames"]]
QueueNames = Annotated[list[Annotated[str, MEMBERS["QueueNames.item"]]], MEMBERS["QueueNames"]]


class GroupCommand(Command, rename="pascal", gc=False):
    """Base of the commands on consumer groups."""


class ElasticqSetGroup(GroupCommand):
    """The creation or change of a group. An absent member keeps its value, or gets the default in a new group.

    queue_names, queue_name_prefix, partitions_of: exactly one of them, which defines the resources of the group.
    """

    group_name: GroupName | None = None
    queue_names: QueueNames = field(default_factory=list)
    queue_name_prefix: Annotated[str, MEMBERS["QueueNamePrefix"]] | None = None
    partitions_of: Annotated[str, MEMBERS["PartitionsOf"]] | None = None
    session_timeout_ms: Annotated[int, MEMBERS["SessionTimeoutMs"]] | None = None
    rebalance_delay_ms: Annotated[int, MEMBERS["RebalanceDelayMs"]] | None = None
    max_per_consumer: Annotated[int, MEMBERS["MaxPerConsumer"]] | None = None


class ElasticqDeleteGroup(GroupCommand):
    group_name: GroupName | None = None


class ElasticqJoinGroup(GroupCommand):
    group_name: GroupName | None = None
    consumer_name: Annotated[str, MEMBERS["ConsumerName"]] | None = None
    weight: Annotated[int, MEMBERS["Weight"]] | None = None


class ElasticqHeartbeat(GroupCommand):
    """The renewal of a consumer's session.

    released: the tokens of the resources that the consumer has stopped using.
    known_version, wait_time_seconds: the answer comes when the version of the consumer's view differs, at the latest
        after the wait.
    """

    group_name: GroupName | None = None
    consumer_id: ConsumerId | None = None
    released: Annotated[list[Annotated[int, MEMBERS["Released.item"]]], MEMBERS["Released"]] = field(
        default_factory=list
    )
    known_version: Annotated[int, MEMBERS["KnownVersion"]] | None = None
    wait_time_seconds: Annotated[int, MEMBERS["WaitTimeSeconds"]] | None = None


class ElasticqLeaveGroup(GroupCommand):
    group_name: GroupName | None = None
    consumer_id: ConsumerId | None = None


class ElasticqMoveResource(GroupCommand):
    """A request to move one resource to a consumer."""

    group_name: GroupName | None = None
    resource: Annotated[str, MEMBERS["Resource"]] | None = None
    consumer_id: ConsumerId | None = None


class ElasticqDrainConsumer(GroupCommand):
    """A request to take all resources from a consumer. It gets no new ones."""

    group_name: GroupName | None = None
    consumer_id: ConsumerId | None = None


class ElasticqDescribeGroups(GroupCommand):
    group_names: GroupNames = field(default_factory=list)
    max_results: Annotated[int, MEMBERS["MaxResults"]] | None = None
    next_token: NextToken | None = None
