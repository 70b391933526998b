"""The check whether a caller may act on a queue. It runs only where callers are authenticated (auth = strict).

The owner's account may do everything that the queue's Policy does not deny. Some actions repair a Policy that locks
the owner out; the Policy cannot deny these to the owner. Another account may do only what the Policy allows. It may
never call the actions reserved for the owner. ``model/actions.py`` lists these, and the permission that each other
action needs. For a queue that does not exist, another account gets the same AccessDenied, so it cannot probe for names.
"""

from typing import Final

from elasticq.engine.context import ExecutionContext
from elasticq.engine.policies import evaluation as policy
from elasticq.engine.policies import queue_policies as policies
from elasticq.engine.redrive.move_actions import handle_of
from elasticq.engine.state import State
from elasticq.engine.topics import access as topic_access
from elasticq.model import commands as c
from elasticq.model.actions import BY_NAME, OWNER_ONLY
from elasticq.model.errors import AccessDenied
from elasticq.model.extensions import AdvanceClock, DeleteAllQueues
from elasticq.model.group_commands import GroupCommand
from elasticq.model.identity import GetCallerIdentity
from elasticq.model.names import account_of, neighbour, parse_queue_arn, queue_arn, queue_path
from elasticq.model.topic_commands import TopicCommand

_UNDENIABLE: Final = frozenset(
    ("AddPermission", "DeleteQueue", "GetQueueAttributes", "RemovePermission", "SetQueueAttributes")
)
_ACCOUNT_COMMANDS: Final = (c.CreateQueue, c.DeclareQueue, GetCallerIdentity, c.ListQueues)
_TEST_COMMANDS: Final = (AdvanceClock, DeleteAllQueues)

_Target = tuple[str, str, str]
"""The action to permit, and the owner and name of the queue that it acts on."""


def check(state: State, call: c.Call, context: ExecutionContext) -> None:
    """Raise AccessDenied unless the caller may execute the call.

    A request that names no queue passes: its handler raises the right error.
    """
    if isinstance(call.command, TopicCommand):
        topic_access.check(state, call, call.command, context)
        return
    for action, owner, name in _targets(state, call):
        _check(state, call, context, action, owner, name)


def _targets(state: State, call: c.Call) -> list[_Target]:
    command, own = call.command, call.account
    if isinstance(command, (*_ACCOUNT_COMMANDS, *_TEST_COMMANDS, GroupCommand)):
        return []
    if isinstance(command, c.GetQueueUrl):
        account = command.queue_owner_account_id or account_of(own)
        return [("GetQueueUrl", neighbour(account, own), command.queue_name or "")]
    if isinstance(command, c.StartMessageMoveTask):
        source = _targets_of_arn("StartMessageMoveTask", command.source_arn, own)
        return source + _targets_of_arn("SendMessage", command.destination_arn, own)
    if isinstance(command, c.ListMessageMoveTasks):
        return _targets_of_arn("ListMessageMoveTasks", command.source_arn, own)
    if isinstance(command, c.CancelMessageMoveTask):
        tasks = [task for task in state.move_tasks.values() if handle_of(task) == command.task_handle]
        return [
            target
            for task in tasks
            for target in _targets_of_arn("CancelMessageMoveTask", task.source_arn, task.account)
        ]
    queue_url: str | None = command.queue_url  # type: ignore[attr-defined]  # of all others
    permission = BY_NAME[type(command).__name__].permission
    return [(permission, *queue_path(queue_url, own))] if queue_url else []


def _targets_of_arn(action: str, arn: str | None, owner: str) -> list[_Target]:
    queue = parse_queue_arn(arn, owner)
    return [(action, *queue)] if queue is not None else []


def _check(state: State, call: c.Call, context: ExecutionContext, action: str, owner: str, name: str) -> None:
    is_owner = account_of(owner) == account_of(call.account)
    queue = state.names.get((owner, name))
    text = "" if queue is None else queue.attributes.get(policies.ATTRIBUTE, "")
    if is_owner and (not text or action in _UNDENIABLE):
        return
    verdict = policy.NEITHER
    request = _request(call, context, action, owner, name)
    if text:
        verdict = policy.evaluate(text, request)
    if verdict == policy.DENY:
        raise _denied(request, "with an explicit deny in a resource-based policy")
    if not is_owner and (verdict != policy.ALLOW or action in OWNER_ONLY):
        raise _denied(request, f"because no resource-based policy allows the sqs:{action.lower()} action")


def _request(call: c.Call, context: ExecutionContext, action: str, owner: str, name: str) -> policy.Request:
    assert call.origin is not None, "only authenticated callers are checked"
    return policy.Request(
        principal=call.principal,
        account=account_of(call.account),
        action=action,
        arn=queue_arn(context.region, owner, name),
        source_ip=call.origin.source_ip,
        is_secure=call.origin.is_secure,
        now_s=context.now_ms // 1_000,
        is_any_region=context.has_one_region,
    )


def _denied(request: policy.Request, why: str) -> AccessDenied:
    """Return the AccessDenied with the text that AWS uses."""
    return AccessDenied(
        f"User: {request.user_arn} is not authorized to perform: sqs:{request.action.lower()}"
        f" on resource: {request.arn} {why}"
    )
