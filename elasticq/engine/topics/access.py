"""The check whether a caller may act on a topic, and whether a queue accepts a topic's messages.

It runs only where callers are authenticated (auth = strict). The rules are those of queues (engine/access.py). The
owner's account may do everything that the topic's Policy does not deny. Another account may do what the Policy allows.
A subscription belongs to the account that created it. A queue accepts messages of a topic if the queue's Policy allows
the service sns.amazonaws.com to send messages of this topic.
"""

from typing import Final

from elasticq.engine.context import ExecutionContext
from elasticq.engine.policies import evaluation as policy
from elasticq.engine.policies import queue_policies as policies
from elasticq.engine.state import Queue, State
from elasticq.engine.stored.topic_attributes import POLICY
from elasticq.engine.stored.topic_index import Topic
from elasticq.engine.topics.arns import arn_of, find_subscription, topic_key
from elasticq.model import topic_commands as t
from elasticq.model.actions import BY_NAME
from elasticq.model.commands import Call
from elasticq.model.errors import AuthorizationError, TopicError
from elasticq.model.names import ANONYMOUS, account_of, queue_arn, topic_arn

SERVICE: Final = "sns.amazonaws.com"
_UNDENIABLE: Final = frozenset(
    ("AddPermission", "DeleteTopic", "GetTopicAttributes", "RemovePermission", "SetTopicAttributes")
)
_ACCOUNT_COMMANDS: Final = (t.CreateTopic, t.ListTopics, t.ListSubscriptions, t.NothingThere)
_TOKEN_COMMANDS: Final = (t.ConfirmSubscription,)
_SUBSCRIPTION_COMMANDS: Final = (t.Unsubscribe, t.GetSubscriptionAttributes, t.SetSubscriptionAttributes)
_RESOURCE_COMMANDS: Final = (
    t.TagResource,
    t.UntagResource,
    t.ListTagsForResource,
    t.GetDataProtectionPolicy,
    t.PutDataProtectionPolicy,
)


def check(state: State, call: Call, command: t.TopicCommand, context: ExecutionContext) -> None:
    """Raise AuthorizationError unless the caller may execute the command.

    A malformed ARN passes: the handler raises the right error.
    """
    if isinstance(command, (*_ACCOUNT_COMMANDS, *_TOKEN_COMMANDS)):
        return
    action = BY_NAME[type(command).__name__]
    try:
        if isinstance(command, _SUBSCRIPTION_COMMANDS):
            _check_subscription(state, call, command, context, action.permission)
            return
        arn: str | None
        if isinstance(command, _RESOURCE_COMMANDS):
            arn = command.resource_arn
        elif isinstance(command, t.Publish):
            arn = command.topic_arn or command.target_arn
        else:
            arn = command.topic_arn  # type: ignore[attr-defined]  # of all others
        owner, name = topic_key(arn, call, context)
    except AuthorizationError:
        raise
    except TopicError:
        return
    _check_topic(state, call, context, action.permission, (owner, name), is_owner_only=action.is_owner_only)


def _check_subscription(
    state: State,
    call: Call,
    command: t.Unsubscribe | t.GetSubscriptionAttributes | t.SetSubscriptionAttributes,
    context: ExecutionContext,
    action: str,
) -> None:
    """Raise AuthorizationError unless the caller owns the subscription.

    The owner of the topic may unsubscribe, too, and so may an anonymous caller that follows an unsubscribe link.
    """
    if isinstance(command, t.Unsubscribe) and call.principal == ANONYMOUS:
        return
    found = find_subscription(state, call, command.subscription_arn, context)
    if found is None:
        return
    topic, subscription = found
    owners = {account_of(subscription.row.account)}
    if isinstance(command, t.Unsubscribe) and topic.row is not None:
        owners.add(account_of(topic.row.account))
    if account_of(call.account) not in owners:
        request = _request(call, context, action, command.subscription_arn or "")
        raise _denied(request, f"because no resource-based policy allows the SNS:{action} action")


def _check_topic(
    state: State, call: Call, context: ExecutionContext, action: str, key: tuple[str, str], *, is_owner_only: bool
) -> None:
    is_owner = account_of(key[0]) == account_of(call.account)
    topic = state.topics.names.get(key)
    text = "" if topic is None or topic.row is None else topic.row.attributes.get(POLICY, "")
    if is_owner and (not text or action in _UNDENIABLE):
        return
    request = _request(call, context, action, topic_arn(context.region, *key))
    verdict = policy.evaluate(text, request) if text else policy.NEITHER
    if verdict == policy.DENY:
        raise _denied(request, "with an explicit deny in a resource-based policy")
    if not is_owner and (verdict != policy.ALLOW or is_owner_only):
        raise _denied(request, f"because no resource-based policy allows the SNS:{action} action")


def _request(call: Call, context: ExecutionContext, action: str, arn: str) -> policy.Request:
    assert call.origin is not None, "only authenticated callers are checked"
    account = account_of(call.account)
    return policy.Request(
        principal=call.principal,
        account=account,
        action=action,
        arn=arn,
        source_ip=call.origin.source_ip,
        is_secure=call.origin.is_secure,
        now_s=context.now_ms // 1_000,
        is_any_region=context.has_one_region,
        service="sns",
        source_owner=account,
    )


def _denied(request: policy.Request, why: str) -> AuthorizationError:
    return AuthorizationError(
        f"User: {request.user_arn} is not authorized to perform: SNS:{request.action} on resource: {request.arn} {why}"
    )


def takes(queue: Queue, topic: Topic, context: ExecutionContext) -> bool:
    """Return whether the queue's Policy allows the topic to send to it."""
    text = queue.attributes.get(policies.ATTRIBUTE, "")
    row = topic.row
    if not text or row is None:
        return False
    owner = account_of(row.account)
    request = policy.Request(
        principal="",
        account="",
        action="SendMessage",
        arn=queue_arn(context.region, queue.account, queue.name),
        source_ip="",
        is_secure=True,
        now_s=context.now_ms // 1_000,
        is_any_region=context.has_one_region,
        caller=SERVICE,
        source_arn=arn_of(topic, context),
        source_owner=owner,
    )
    return policy.evaluate(text, request) == policy.ALLOW
