"""What a consumer holds, and the messages that it received from that."""

from asyncio import to_thread
from collections.abc import Callable
from typing import Any

from elasticq.client.fencing import Fence, Fenced
from elasticq.client.group_state import Assignment

May = Callable[[int], bool]


class Held:
    """A resource that this consumer holds, or held: a queue, or a partition of one.

    resource: its name; partition: its number in a partitioned queue, else None; token: grows with each assignment in
    the whole cluster, so that another system can refuse the writes of a former holder; client: the group's client of
    SQS, whose calls about messages the server refuses when the resource is another's; fence: for clients of one's own.
    """

    def __init__(self, group: str, assignment: Assignment, client: Any, may_act: May, may_finish: May) -> None:
        self.resource, self.queue_url, self.partition, self.token = assignment
        self.fence = Fence(group, self.token, self.partition)
        self.client = Fenced(client, self.fence, self.queue_url)
        self._may_act, self._may_finish = may_act, may_finish

    def is_held(self) -> bool:
        """True while new work on the resource may begin. Asks nobody: it knows the clock and the last answer."""
        return self._may_act(self.token)

    def may_finish(self) -> bool:
        """True while work that has begun may end: also after a revocation, until on_revoked has returned."""
        return self._may_finish(self.token)

    def __repr__(self) -> str:
        return f"Held({self.resource!r}, token={self.token})"


class Received:
    """A message that an iteration gave out. members: as ReceiveMessage answers them; held: where it comes from."""

    def __init__(self, held: Held, members: dict[str, Any]) -> None:
        self.held = held
        self.members = members

    @property
    def body(self) -> str:
        """The text that was sent."""
        return str(self.members["Body"])

    @property
    def id(self) -> str:
        """The MessageId."""
        return str(self.members["MessageId"])

    @property
    def fence(self) -> int:
        """The token under which the message was received, to be passed to what is written for it elsewhere."""
        return self.held.token

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, {self.held!r})"


class Message(Received):
    """A message of a Group."""

    def delete(self) -> None:
        """Delete the message. Raises the client's error ElasticqNotHolder if its resource is another's by now."""
        self.held.client.delete_message(ReceiptHandle=self.members["ReceiptHandle"])

    def hide(self, timeout_s: int) -> None:
        """Let the message come again in so many seconds, unless it is deleted before; 0 gives it back at once."""
        handle = self.members["ReceiptHandle"]
        self.held.client.change_message_visibility(ReceiptHandle=handle, VisibilityTimeout=timeout_s)


class AsyncMessage(Received):
    """A message of an AsyncGroup: what is a method of Message is awaited."""

    async def delete(self) -> None:
        """As Message.delete."""
        await to_thread(Message(self.held, self.members).delete)

    async def hide(self, timeout_s: int) -> None:
        """As Message.hide."""
        await to_thread(Message(self.held, self.members).hide, timeout_s)
