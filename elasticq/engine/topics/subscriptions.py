"""Subscribe, ConfirmSubscription, Unsubscribe, the lists of subscriptions, and their attributes."""

import json
from collections.abc import Iterable
from itertools import islice
from typing import Final

from msgspec.structs import replace

from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.filters.policy import MESSAGE_ATTRIBUTES
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import envelopes
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored import subscription_attributes as attributes
from elasticq.engine.stored.delivery_policies import InvalidDeliveryPolicy, members_in_force, without_nulls
from elasticq.engine.stored.identity import next_sequence
from elasticq.engine.stored.subscription_attributes import Endpoint
from elasticq.engine.stored.topic_attributes import MESSAGE_BYTES, RETRY_DEFAULTS, message_bytes_max
from elasticq.engine.stored.topic_index import (
    FILTER,
    FILTER_SCOPE,
    QUEUE_PROTOCOL,
    RAW,
    WEB_PROTOCOLS,
    Subscription,
    Topic,
)
from elasticq.engine.topics.arns import (
    arn_of,
    find_subscription,
    named_subscription,
    named_topic,
    subscription_arn,
)
from elasticq.engine.topics.paging import read_number, token_of
from elasticq.engine.topics.removal import removed
from elasticq.model import limits
from elasticq.model import topic_commands as t
from elasticq.model.commands import Call
from elasticq.model.errors import (
    AuthorizationError,
    InvalidParameter,
    InvalidToken,
    SubscriptionLimitExceeded,
    invalid_parameter,
)
from elasticq.model.names import ANONYMOUS, account_of, inner_owner, owner_in
from elasticq.model.topic_results import (
    ListedSubscription,
    SubscribeResult,
    SubscriptionsResult,
    TopicAttributesResult,
    TopicDone,
)

PENDING: Final = "pending confirmation"
LISTED_PENDING: Final = "PendingConfirmation"


def subscribe(state: State, call: Call, command: t.Subscribe, context: ExecutionContext) -> Outcome:
    """Subscribe an endpoint to a topic. If it is subscribed already, return the existing subscription.

    Raise InvalidParameter if the given attributes differ from those of the existing subscription.
    """
    topic = named_topic(state, call, command.topic_arn, context)
    assert topic.row is not None, "a topic found by its name or ARN has a row"
    to = Endpoint(command.protocol or "", call.account, topic.is_fifo, command.endpoint or "")
    attributes.check_endpoint(to)
    try:
        given = attributes.checked(command.attributes, {}, to)
    except InvalidParameter as error:
        raise invalid_parameter(f"Attributes Reason: {error.message.removeprefix(_ERROR_PREFIX)}") from None
    is_shown = (command.return_subscription_arn or "").lower() == "true"
    existing = _existing(topic, to)
    if existing is not None:
        _check_same(existing, command.attributes, given)
        return _subscribed(topic, existing.row, context, is_shown=is_shown), []
    _check_room(state, topic, to)
    number = context.next_number()
    row = m.SubscriptionSet(
        number=number,
        topic=topic.row.number,
        key=state.identity.subscription_key(number),
        account=call.account,
        protocol=to.protocol,
        endpoint=to.endpoint,
        attributes=given,
        principal=f"arn:aws:iam::{account_of(call.account)}:{_user(call.principal)}",
        queue_owner=_queue_owner(to, context),
        base_url=call.endpoint,
        created_ms=context.now_ms,
        is_pending=to.protocol in attributes.CONFIRMED_PROTOCOLS,
    )
    found: list[m.Mutation] = [row]
    if to.protocol != QUEUE_PROTOCOL:
        found += _inner_queue(state, topic, row, context)
    return _subscribed(topic, row, context, is_shown=is_shown), found


ATTRIBUTES_DIFFER: Final = "Attributes Reason: Subscription already exists with different attributes"
_ERROR_PREFIX: Final = "Invalid parameter: "


def _user(principal: str) -> str:
    return "root" if principal == ANONYMOUS else f"user/{principal}"


def _queue_owner(to: Endpoint, context: ExecutionContext) -> str:
    """Return the owner of the queue that gets the messages. Its region may differ from that of the topic."""
    if to.protocol != QUEUE_PROTOCOL:
        return inner_owner(to.account)
    region, account = to.endpoint.split(":")[3:5]
    is_own = context.has_one_region or not region or region == context.region
    return owner_in(account, "" if is_own else region)


def _existing(topic: Topic, to: Endpoint) -> Subscription | None:
    """Return the topic's subscription of this protocol and endpoint, or None."""
    number = topic.by_endpoint.get((to.protocol, to.endpoint))
    return None if number is None else topic.subscriptions[number]


def _check_same(existing: Subscription, named: Iterable[str], given: dict[str, str]) -> None:
    present = existing.row.attributes
    if any(given.get(name, "") != present.get(name, "") for name in named):
        raise invalid_parameter(ATTRIBUTES_DIFFER)


def _check_room(state: State, topic: Topic, to: Endpoint) -> None:
    assert topic.row is not None, "a topic found by its name or ARN has a row"
    if message_bytes_max(topic.row.attributes) > limits.TOPIC_MESSAGE_BYTES_DEFAULT and (
        len(topic.subscriptions) >= limits.LARGE_SUBSCRIPTIONS_MAX or to.protocol not in limits.LARGE_PROTOCOLS
    ):
        raise invalid_parameter(MESSAGE_BYTES)
    topic_max = limits.FIFO_SUBSCRIPTIONS_MAX if topic.is_fifo else limits.TOPIC_SUBSCRIPTIONS_MAX
    if len(topic.subscriptions) >= topic_max or state.topics.subscription_count >= limits.SUBSCRIPTIONS_MAX:
        raise SubscriptionLimitExceeded("Subscription limit exceeded")
    has_inner = to.protocol != QUEUE_PROTOCOL
    if has_inner and len(state.queues) + len(state.deleted_queues) >= limits.QUEUES_MAX:
        raise SubscriptionLimitExceeded("Subscription limit exceeded")


def _inner_queue(state: State, topic: Topic, row: m.SubscriptionSet, context: ExecutionContext) -> list[m.Mutation]:
    """Return the mutations that create the inner queue of a subscription whose endpoint is not a queue.

    If the subscription is pending, the queue gets the message that asks for confirmation. Its group marks it: no other
    message of the queue has this group.
    """
    queue_id = next_sequence(state.last_queue_id, context.term)
    created = m.QueueCreated(queue_id, row.queue_owner, row.key, {}, {}, context.now_ms)
    if not row.is_pending:
        return [created]
    sequence = next_sequence(0, context.term)
    body = envelopes.confirmation(
        message_id=state.identity.message_id(queue_id, sequence),
        token=state.identity.token(row.number),
        topic_arn=arn_of(topic, context),
        base_url=row.base_url,
        now_ms=context.now_ms,
        version=envelopes.signature_version(topic),
    )
    stored = m.MessageStored(
        queue_id, sequence, body, context.now_ms, envelopes.SENDER, group_id=envelopes.CONFIRMATION
    )
    return [created, stored]


def _subscribed(topic: Topic, row: m.SubscriptionSet, context: ExecutionContext, *, is_shown: bool) -> SubscribeResult:
    is_shown = is_shown or not row.is_pending
    arn = subscription_arn(topic, row.key, context) if is_shown else PENDING
    return SubscribeResult(arn, row.number, is_shown)


def confirm_subscription(
    state: State, call: Call, command: t.ConfirmSubscription, context: ExecutionContext
) -> Outcome:
    """Confirm the subscription of a token. The topic's name in the ARN need not be right, as on AWS."""
    parts = (command.topic_arn or "").split(":")
    if len(parts) < 6 or parts[2] != "sns" or not context.is_in_region(parts[3], call.account):
        raise invalid_parameter("Topic")
    token = command.token or ""
    is_signed = call.principal != ANONYMOUS
    if is_signed and (len(token) != limits.CONFIRMATION_TOKEN_CHARS or not token.isalnum()):
        raise InvalidToken("Invalid token")  # a web server that opens a wrong SubscribeURL gets the answer below
    number = state.identity.read_token(token)
    restored = state.identity.read_token(token, is_farewell=True) if number is None else None
    named = restored if number is None else number
    subscription = None if named is None else state.topics.subscription(named)
    topic = None if subscription is None else state.topics.by_number.get(subscription.row.topic)
    if subscription is None or topic is None:
        raise invalid_parameter("Token")
    row = subscription.row
    if row.is_left and restored is None:
        raise invalid_parameter("Token")  # only the token of the UnsubscribeConfirmation restores it
    if row.is_pending and context.now_ms > row.created_ms + limits.CONFIRMATION_TOKEN_MS:
        raise invalid_parameter("Token")
    needs = row.needs_authentication or (command.authenticate_on_unsubscribe or "").lower() == "true"
    if row.is_left and (row.protocol, row.endpoint) in topic.by_endpoint:
        raise invalid_parameter("Token")  # the endpoint has a newer subscription and would get each message twice
    confirmed = replace(row, is_pending=False, is_left=False, needs_authentication=needs)
    result = SubscribeResult(subscription_arn(topic, row.key, context), row.number)
    return result, [confirmed] if confirmed != row else []


def unsubscribe(state: State, call: Call, command: t.Unsubscribe, context: ExecutionContext) -> Outcome:
    """Delete a subscription. An unknown subscription is a success.

    Raise InvalidParameter if it is pending. Raise AuthorizationError if it requires an authenticated call.
    """
    found = find_subscription(state, call, command.subscription_arn, context)
    if found is None:
        return TopicDone(), []
    topic, subscription = found
    row = subscription.row
    if row.is_pending:
        raise invalid_parameter("SubscriptionArn Reason: the subscription is not confirmed")
    if row.needs_authentication and call.principal == ANONYMOUS:
        raise AuthorizationError("Only an authenticated call can delete this subscription")
    assert topic.row is not None, "it was found"
    counted = replace(topic.row, deleted=topic.row.deleted + 1)
    queue = state.names.get(subscription.target) if row.protocol in WEB_PROTOCOLS else None
    if queue is None:
        return TopicDone(), [*removed(state, subscription, context.now_ms), counted]
    return TopicDone(), [*_unsubscribed_web_server(state, topic, row, queue, context), counted]


def _unsubscribed_web_server(
    state: State, topic: Topic, row: m.SubscriptionSet, queue: Queue, context: ExecutionContext
) -> list[m.Mutation]:
    """Return the mutations that unsubscribe a web server.

    They purge its inner queue, then add a message that announces the end of the subscription. For some time the web
    server may restore the subscription with the token in this message; therefore the row stays as pending.
    """
    watermark = next_sequence(queue.last_sequence, context.term)
    sequence = next_sequence(watermark, context.term)
    body = envelopes.farewell(
        message_id=state.identity.message_id(queue.id, sequence),
        token=state.identity.token(row.number, is_farewell=True),
        topic_arn=arn_of(topic, context),
        key=row.key,
        base_url=row.base_url,
        now_ms=context.now_ms,
        version=envelopes.signature_version(topic),
    )
    return [
        m.QueuePurged(queue.id, watermark, context.now_ms),
        m.MessageStored(queue.id, sequence, body, context.now_ms, envelopes.SENDER, group_id=envelopes.FAREWELL),
        replace(row, is_pending=True, is_left=True, created_ms=context.now_ms),
    ]


# --- lists --------------------------------------------------------------------------------


def list_subscriptions(state: State, call: Call, command: t.ListSubscriptions, context: ExecutionContext) -> Outcome:
    """Return a page of up to 100 subscriptions of the caller, in the order of their creation."""
    return _page(state, state.topics.of_owner(call.account, read_number(command.next_token)), context), []


def list_subscriptions_by_topic(
    state: State, call: Call, command: t.ListSubscriptionsByTopic, context: ExecutionContext
) -> Outcome:
    topic = named_topic(state, call, command.topic_arn, context)
    after = read_number(command.next_token)
    numbers = sorted(topic.subscriptions)
    return _page(state, (topic.subscriptions[number] for number in numbers if number > after), context), []


def _page(state: State, subscriptions: Iterable[Subscription], context: ExecutionContext) -> SubscriptionsResult:
    size = limits.LISTED_TOPICS_MAX
    ahead = list(islice(subscriptions, size + 1))
    token = token_of(str(ahead[size - 1].row.number)) if len(ahead) > size else None
    return SubscriptionsResult([_listed(state, each, context) for each in ahead[:size]], token)


def _listed(state: State, subscription: Subscription, context: ExecutionContext) -> ListedSubscription:
    row, topic = subscription.row, state.topics.by_number[subscription.row.topic]
    arn = LISTED_PENDING if row.is_pending else subscription_arn(topic, row.key, context)
    return ListedSubscription(arn, account_of(row.account), row.protocol, row.endpoint, arn_of(topic, context))


# --- attributes ---------------------------------------------------------------------------


def get_subscription_attributes(
    state: State, call: Call, command: t.GetSubscriptionAttributes, context: ExecutionContext
) -> Outcome:
    topic, subscription = named_subscription(state, call, command.subscription_arn, context)
    row = subscription.row
    own = dict(row.attributes)
    shown = {
        "SubscriptionArn": subscription_arn(topic, row.key, context),
        "TopicArn": arn_of(topic, context),
        "Protocol": row.protocol,
        "Endpoint": row.endpoint,
        "Owner": account_of(row.account),
        "ConfirmationWasAuthenticated": "false" if row.is_pending else "true",
        "PendingConfirmation": "true" if row.is_pending else "false",
        "RawMessageDelivery": own.pop(RAW, "false"),
        "SubscriptionPrincipal": row.principal,
    }
    scope = own.pop(FILTER_SCOPE, MESSAGE_ATTRIBUTES)
    if FILTER in own:
        own[FILTER_SCOPE] = scope
    if row.protocol in WEB_PROTOCOLS:
        assert topic.row is not None, "a topic found by its name or ARN has a row"
        of_topic = topic.row.attributes.get(attributes.DELIVERY_POLICY, "")
        own["EffectiveDeliveryPolicy"] = _effective_delivery_policy(of_topic, own.get(attributes.DELIVERY_POLICY, ""))
    return TopicAttributesResult(shown | own), []


def _effective_delivery_policy(of_topic: str, own: str) -> str:
    try:
        members = members_in_force(of_topic, own)
    except InvalidDeliveryPolicy:  # stored by an older version that did not check it; the default applies
        members = members_in_force("", "")
    members["healthyRetryPolicy"] = RETRY_DEFAULTS | without_nulls(members["healthyRetryPolicy"])
    return json.dumps(members, separators=(",", ":"))


def set_subscription_attributes(
    state: State, call: Call, command: t.SetSubscriptionAttributes, context: ExecutionContext
) -> Outcome:
    topic, subscription = named_subscription(state, call, command.subscription_arn, context)
    row = subscription.row
    to = Endpoint(row.protocol, row.account, topic.is_fifo, row.endpoint)
    changed = attributes.checked({command.attribute_name or "": command.attribute_value or ""}, row.attributes, to)
    return TopicDone(), [replace(row, attributes=changed)] if changed != row.attributes else []
