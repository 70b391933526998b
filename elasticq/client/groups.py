"""The actions of consumer groups, as methods of the light client; only elasticq has them.

Each takes the members of its action as keywords and returns the answer's. What they mean is in docs/groups.md.
"""

from typing import Any

from elasticq.client.calls import Client, Members


class GroupMethods(Client):
    """The part of a client of SQS that is about consumer groups."""

    def set_group(self, **members: Any) -> Members:
        """Make a group, or change it.

        Keywords: GroupName, one of QueueNames, QueueNamePrefix and PartitionsOf, SessionTimeoutMs, RebalanceDelayMs,
        MaxPerConsumer.
        """
        return self._call("ElasticqSetGroup", members)

    def delete_group(self, **members: Any) -> Members:
        """Delete a group. Keyword: GroupName."""
        return self._call("ElasticqDeleteGroup", members)

    def describe_groups(self, **members: Any) -> Members:
        """Tell of groups, their consumers and resources. Keywords: GroupNames, MaxResults, NextToken."""
        return self._call("ElasticqDescribeGroups", members)

    def move_resource(self, **members: Any) -> Members:
        """Hand a resource over to a consumer. Keywords: GroupName, Resource, ConsumerId."""
        return self._call("ElasticqMoveResource", members)

    def drain_consumer(self, **members: Any) -> Members:
        """Take everything from a consumer. Keywords: GroupName, ConsumerId."""
        return self._call("ElasticqDrainConsumer", members)

    def join_group(self, *, invocation_id: bytes = b"", **members: Any) -> Members:
        """Join a group. Keywords: GroupName, ConsumerName, Weight.

        invocation_id: of a try whose answer was lost; the server then answers as it did, and there is one consumer.
        """
        return self._call("ElasticqJoinGroup", members, invocation_id=invocation_id)

    def heartbeat(self, **members: Any) -> Members:
        """Prolong a session. Keywords: GroupName, ConsumerId, Released, KnownVersion, WaitTimeSeconds."""
        return self._call("ElasticqHeartbeat", members, wait_s=members.get("WaitTimeSeconds") or 0)

    def leave_group(self, **members: Any) -> Members:
        """End a session. Keywords: GroupName, ConsumerId."""
        return self._call("ElasticqLeaveGroup", members)
