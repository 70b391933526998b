"""The actions of consumer groups, as methods of the light client. Only elasticq has these actions.

Each method has the members of its action as keywords, and returns those of the answer. docs/groups.md describes them.
"""

from typing import Any

from elasticq.client.calls import Client, Members


class GroupMethods(Client):
    """The methods of a client of SQS for consumer groups."""

    def set_group(self, **members: Any) -> Members:
        """Create a group, or change it.

        Keywords: GroupName, one of QueueNames, QueueNamePrefix and PartitionsOf, SessionTimeoutMs, RebalanceDelayMs,
        MaxPerConsumer.
        """
        return self._call("ElasticqSetGroup", members)

    def delete_group(self, **members: Any) -> Members:
        """Delete a group. Keyword: GroupName."""
        return self._call("ElasticqDeleteGroup", members)

    def describe_groups(self, **members: Any) -> Members:
        """Describe groups, their consumers and resources. Keywords: GroupNames, MaxResults, NextToken."""
        return self._call("ElasticqDescribeGroups", members)

    def move_resource(self, **members: Any) -> Members:
        """Move a resource to a consumer. Keywords: GroupName, Resource, ConsumerId."""
        return self._call("ElasticqMoveResource", members)

    def drain_consumer(self, **members: Any) -> Members:
        """Move all resources of a consumer to others. Keywords: GroupName, ConsumerId."""
        return self._call("ElasticqDrainConsumer", members)

    def join_group(self, *, invocation_id: bytes = b"", **members: Any) -> Members:
        """Join a group. Keywords: GroupName, ConsumerName, Weight.

        invocation_id: that of a try whose answer was lost. The server then repeats its answer, and makes no second
        consumer.
        """
        return self._call("ElasticqJoinGroup", members, invocation_id=invocation_id)

    def heartbeat(self, **members: Any) -> Members:
        """Prolong a session. Keywords: GroupName, ConsumerId, Released, KnownVersion, WaitTimeSeconds."""
        return self._call("ElasticqHeartbeat", members, wait_s=members.get("WaitTimeSeconds") or 0)

    def leave_group(self, **members: Any) -> Members:
        """End a session. Keywords: GroupName, ConsumerId."""
        return self._call("ElasticqLeaveGroup", members)
