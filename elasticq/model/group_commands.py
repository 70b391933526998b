"""What a client asks of consumer groups: one class per action. None of them is AWS's
(docs/adr/0031-consumer-groups.md).

A consumer group has a name, which is its owner's as the names of queues are. How much each member may hold stands in
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
    """Makes a group, or changes one; a member that is absent keeps what the group has, or the default of a new one.

    queue_names, queue_name_prefix, partitions_of: one of them; it says what the group shares out.
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
    """Renews a consumer's session.

    released: the tokens of what the consumer does not act on any more. known_version, wait_time_seconds: the call is
    answered as soon as the consumer's view has another version, at the end of the wait at the latest.
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
    """Asks for a hand-over of one resource to a consumer."""

    group_name: GroupName | None = None
    resource: Annotated[str, MEMBERS["Resource"]] | None = None
    consumer_id: ConsumerId | None = None


class ElasticqDrainConsumer(GroupCommand):
    """Takes everything from a consumer, which gets nothing more."""

    group_name: GroupName | None = None
    consumer_id: ConsumerId | None = None


class ElasticqDescribeGroups(GroupCommand):
    group_names: GroupNames = field(default_factory=list)
    max_results: Annotated[int, MEMBERS["MaxResults"]] | None = None
    next_token: NextToken | None = None
