"""The resources that a consumer of a group holds, and their messages."""

from asyncio import to_thread
from collections.abc import Callable
from typing import Any

from elasticq.client.fencing import Fence, Fenced
from elasticq.client.group_state import Assignment

May = Callable[[int], bool]


class Held:
    """A resource that this consumer holds or held: a queue, or a partition of one.

    resource: its name. partition: its number in a partitioned queue, else None. token: grows with each assignment in
    the whole cluster, so another system can refuse writes of a former holder. client: the group's client of SQS. The
    server refuses its calls about messages when another consumer has the resource. fence: to make such calls with
    another client.
    """

    def __init__(self, group: str, assignment: Assignment, client: Any, may_act: May, may_finish: May) -> None:
        self.resource, self.queue_url, self.partition, self.token = assignment
        self.fence = Fence(group, self.token, self.partition)
        self.client = Fenced(client, self.fence, self.queue_url)
        self._may_act, self._may_finish = may_act, may_finish

    def is_held(self) -> bool:
        """Return whether new work on the resource may begin, from the clock and the last answer, without a call."""
        return self._may_act(self.token)

    def may_finish(self) -> bool:
        """Return whether work that has begun may be finished: also after a revocation, until on_revoked returned."""
        return self._may_finish(self.token)

    def __repr__(self) -> str:
        return f"Held({self.resource!r}, token={self.token})"


class Received:
    """A message that an iteration yielded. members: as ReceiveMessage returns them; held: the resource it is from."""

    def __init__(self, held: Held, members: dict[str, Any]) -> None:
        self.held = held
        self.members = members

    @property
    def body(self) -> str:
        """Return the body of the message."""
        return str(self.members["Body"])

    @property
    def id(self) -> str:
        """Return the MessageId."""
        return str(self.members["MessageId"])

    @property
    def fence(self) -> int:
        """Return the token with which the message was received, for writes to other systems that check tokens."""
        return self.held.token

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, {self.held!r})"


class Message(Received):
    """A message of a Group."""

    def delete(self) -> None:
        """Delete the message. The client raises ElasticqNotHolder if another consumer has the resource."""
        self.held.client.delete_message(ReceiptHandle=self.members["ReceiptHandle"])

    def hide(self, timeout_s: int) -> None:
        """Make the message visible again in so many seconds, unless it is deleted before; 0 returns it at once."""
        handle = self.members["ReceiptHandle"]
        self.held.client.change_message_visibility(ReceiptHandle=handle, VisibilityTimeout=timeout_s)


class AsyncMessage(Received):
    """A message of an AsyncGroup. Its methods are coroutines."""

    async def delete(self) -> None:
        """Delete the message, as Message.delete does."""
        await to_thread(Message(self.held, self.members).delete)

    async def hide(self, timeout_s: int) -> None:
        """Change when the message is visible again, as Message.hide does."""
        await to_thread(Message(self.held, self.members).hide, timeout_s)
