"""The fence: a call that names a consumer group may act on a queue only if its token proves that it holds the queue."""

from elasticq.engine.context import ExecutionContext, named_queue
from elasticq.engine.state import Queue, State
from elasticq.engine.stored.consumer_group_index import Group
from elasticq.engine.stored.consumer_group_rows import WHOLE, ResourceAssigned
from elasticq.model.commands import Call, FencedCommand, ReceiveMessage
from elasticq.model.errors import ElasticqNotHolder, MissingParameter


def queue_of(
    state: State, call: Call, queue_url: str | None, command: FencedCommand, context: ExecutionContext
) -> Queue:
    """Return the queue of a command's URL.

    Raise the errors of ``named_queue``. If the command names a group, raise those of ``check`` as well.
    """
    queue = named_queue(state, call, queue_url)
    if command.elasticq_group is not None:
        check(state, call, queue, command, context.now_ms)
    return queue


def check(state: State, call: Call, queue: Queue, command: FencedCommand, now_ms: int) -> None:
    """Raise ElasticqNotHolder unless the token is that of the current assignment and its consumer's session lives.

    Do not call it for commands that name no group. A consumer that was asked to release the queue cannot receive, but
    may still delete and extend messages that it received before. Raise MissingParameter if there is no token.
    """
    token = command.elasticq_token
    if token is None:
        raise MissingParameter("The request must contain the parameter ElasticqToken.")
    group = state.groups.names.get((call.account, command.elasticq_group or ""))
    row = None if group is None or call.account != queue.account else _row(group, queue.name, command)
    if row is None or row.token != token or row.queue_id != queue.id:
        raise ElasticqNotHolder
    if row.is_revoked and isinstance(command, ReceiveMessage):
        raise ElasticqNotHolder("The consumer was asked to release this queue and cannot receive from it.")
    consumer = state.groups.consumers.get(row.consumer)
    if consumer is None or not consumer.lives(state.grace, now_ms):
        raise ElasticqNotHolder("The session of the consumer with this token is over.")


def _row(group: Group, name: str, command: FencedCommand) -> ResourceAssigned | None:
    """Return the assignment of the partition that the command names, or of the whole queue."""
    whole = group.by_resource.get((name, WHOLE))
    if command.elasticq_partition is None or whole is not None:
        return whole
    return group.by_resource.get((name, command.elasticq_partition))
