"""ARNs of topics and subscriptions: how they are parsed, resolved and written."""

from typing import Final

from elasticq.engine.context import ExecutionContext
from elasticq.engine.state import State
from elasticq.engine.stored.mutations import TopicSet
from elasticq.engine.stored.topic_index import Subscription, Topic
from elasticq.model.commands import Call
from elasticq.model.errors import TaggedResourceNotFound, TopicNotFound, invalid_parameter
from elasticq.model.names import ACCOUNT, neighbour, topic_arn

_PARTS: Final = 6  # arn:aws:sns:<region>:<account>:<topic>
NO_TOPIC: Final = "Topic does not exist"
NO_SUBSCRIPTION: Final = "Subscription does not exist"

Key = tuple[str, str]
"""Owner (model/names.py) and name of a topic."""


def _parts(arn: str, parameter: str) -> list[str]:
    parts = arn.split(":")
    if len(parts) < _PARTS:
        raise invalid_parameter(f"{parameter} Reason: An ARN must have at least {_PARTS} elements, not {len(parts)}")
    return parts


def topic_key(arn: str | None, call: Call, context: ExecutionContext, parameter: str = "TopicArn") -> Key:
    """Return owner and name of the topic that an ARN names. The topic need not exist.

    Raise InvalidParameter if the ARN is missing or malformed, or if its region is not that of the call.
    """
    if arn is None:
        raise invalid_parameter(f"{parameter} Reason: no value for required parameter")
    parts = _parts(arn, parameter)
    if len(parts) != _PARTS:
        raise invalid_parameter(parameter)
    return _topic_key(parts, call, context, parameter)


def _topic_key(parts: list[str], call: Call, context: ExecutionContext, parameter: str) -> Key:
    is_here = context.is_in_region(parts[3], call.account)
    if parts[2] != "sns" or not is_here or not ACCOUNT.match(parts[4]):
        raise invalid_parameter(parameter)
    return neighbour(parts[4], call.account), parts[5]


def named_topic(
    state: State, call: Call, arn: str | None, context: ExecutionContext, parameter: str = "TopicArn"
) -> Topic:
    """Return the topic of an ARN. Raise InvalidParameter or TopicNotFound."""
    topic = state.topics.names.get(topic_key(arn, call, context, parameter))
    if topic is None:
        raise TopicNotFound(NO_TOPIC)
    return topic


def named_resource(state: State, call: Call, arn: str | None, context: ExecutionContext) -> TopicSet:
    """Return the row of the topic that a ResourceArn names. Raise InvalidParameter or TaggedResourceNotFound."""
    topic = state.topics.names.get(topic_key(arn, call, context, "ResourceArn"))
    if topic is None or topic.row is None:
        raise TaggedResourceNotFound()
    return topic.row


def arn_of(topic: Topic, context: ExecutionContext) -> str:
    row = topic.row
    assert row is not None, "a deleted topic has no ARN"
    return topic_arn(context.region, row.account, row.name)


def subscription_arn(topic: Topic, key: str, context: ExecutionContext) -> str:
    return f"{arn_of(topic, context)}:{key}"


def find_subscription(
    state: State, call: Call, arn: str | None, context: ExecutionContext
) -> tuple[Topic, Subscription] | None:
    """Return a subscription and its topic; None if the subscription does not exist or its topic is deleted.

    Raise InvalidParameter if the ARN is missing or malformed.
    """
    if not arn:
        raise invalid_parameter("SubscriptionArn Reason: no value for required parameter")
    parts = _parts(arn, "SubscriptionArn")
    if len(parts) != _PARTS + 1:
        raise invalid_parameter("SubscriptionId")
    topic = state.topics.names.get(_topic_key(parts, call, context, "SubscriptionArn"))
    subscription = state.topics.by_key.get(parts[_PARTS])
    if topic is None or topic.row is None or subscription is None or subscription.row.topic != topic.row.number:
        return None
    return topic, subscription


def named_subscription(
    state: State, call: Call, arn: str | None, context: ExecutionContext
) -> tuple[Topic, Subscription]:
    """Return a subscription and its topic. Raise InvalidParameter or TopicNotFound."""
    found = find_subscription(state, call, arn, context)
    if found is None:
        raise TopicNotFound(NO_SUBSCRIPTION)
    return found
