"""Subscribe, ConfirmSubscription, Unsubscribe, lists and attributes of subscriptions: texts as AWS has them."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from elasticq.engine.execute import execute
from elasticq.engine.state import Queue
from elasticq.engine.stored import delivery_policies, envelopes
from elasticq.model import commands, errors, limits
from elasticq.model import topic_commands as t
from elasticq.model.commands import Call, Command
from elasticq.model.errors import QueueDoesNotExist
from elasticq.model.extensions import Peek
from elasticq.model.names import DEFAULT_ACCOUNT, INNER
from elasticq.model.topic_results import SubscribeResult, SubscriptionsResult
from tests.engine.desk import ENDPOINT
from tests.engine.topic_desk import TopicDesk, arn, arn_of_queue

INNER_OWNER = f"{DEFAULT_ACCOUNT}/{INNER}"


@pytest.fixture
def desk() -> TopicDesk:
    made = TopicDesk()
    made.create()
    made.topic()
    return made


def invalid(desk: TopicDesk, command: Command) -> str:
    with pytest.raises(errors.TopicError) as caught:
        desk.do(command)
    assert caught.value.code == "InvalidParameter"
    return caught.value.message.removeprefix("Invalid parameter: ")


def subscription(protocol: str, endpoint: str, topic: str = "news", **attributes: str) -> t.Subscribe:
    return t.Subscribe(arn(topic), protocol, endpoint, attributes)


@pytest.mark.parametrize(
    ("protocol", "endpoint", "text"),
    [
        ("pigeon", "x", "Amazon SNS does not support this protocol string: pigeon"),
        ("sqs", "http://localhost:9324/000000000000/jobs", "SQS endpoint ARN"),
        ("sqs", "jobs", "SQS endpoint ARN"),
        (
            "sqs",
            arn_of_queue("steps.fifo"),
            "Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be subscribed to standard SNS topics",
        ),
        ("http", "https://example.com", "Endpoint must match the specified protocol"),
        ("https", "https://", "Endpoint must match the specified protocol"),
        ("sms", "+15--551", "Invalid SMS endpoint: +15--551"),
        ("sms", "/1555", "Invalid SMS endpoint: /1555"),
        ("sms", "1555.", "Invalid SMS endpoint: 1555."),
        ("sms", "call me", "Invalid SMS endpoint: call me"),
        ("email", "nobody", "Email address"),
        ("lambda", "function", "Lambda endpoint ARN"),
    ],
)
def test_endpoint_that_is_none_is_refused(desk: TopicDesk, protocol: str, endpoint: str, text: str) -> None:
    assert invalid(desk, subscription(protocol, endpoint)) == text


def test_topic_is_looked_up_before_the_endpoint(desk: TopicDesk) -> None:
    with pytest.raises(errors.TopicNotFound):
        desk.do(subscription("pigeon", "x", topic="other"))


def test_fifo_topic_takes_queues_of_both_kinds_and_nothing_else(desk: TopicDesk) -> None:
    desk.topic("orders.fifo")
    desk.subscribe(topic="orders.fifo")
    desk.subscribe("steps.fifo", topic="orders.fifo")
    command = subscription("email", "a@example.com", topic="orders.fifo")
    assert invalid(desk, command) == "Invalid protocol type: email"


def test_queue_need_not_exist_and_may_be_of_another_region(desk: TopicDesk) -> None:
    desk.subscribe("not-there")
    command = subscription("sqs", "arn:aws:sqs:eu-west-1:000000000000:far")
    desk.do(command)
    (_, far) = desk.state.topics.names[DEFAULT_ACCOUNT, "news"].subscriptions.values()
    assert far.target == (f"{DEFAULT_ACCOUNT}/eu-west-1", "far")


@pytest.mark.parametrize(
    ("protocol", "endpoint", "is_pending"),
    [
        ("sqs", arn_of_queue("jobs"), False),
        ("sms", "+1 555-0100", False),
        ("lambda", "arn:aws:lambda:us-east-1:000000000000:function:f", False),
        ("firehose", "arn:aws:firehose:us-east-1:000000000000:deliverystream/s", False),
        ("http", "http://example.com/in", True),
        ("https", "https://example.com/in", True),
        ("email", "a@example.com", True),
        ("email-json", "a@example.com", True),
    ],
)
def test_who_must_confirm_is_pending(desk: TopicDesk, protocol: str, endpoint: str, is_pending: bool) -> None:
    result = desk.do(subscription(protocol, endpoint))
    assert isinstance(result, SubscribeResult)
    assert (result.subscription_arn == "pending confirmation") == is_pending
    shown = desk.do(t.Subscribe(arn(), protocol, endpoint, {}, "true"))
    assert isinstance(shown, SubscribeResult)
    assert shown.subscription_arn.startswith(f"{arn()}:")
    attributes = desk.attributes_of(shown.subscription_arn)
    assert attributes["PendingConfirmation"] == str(is_pending).lower()
    assert attributes["ConfirmationWasAuthenticated"] == str(not is_pending).lower()
    (listed,) = desk.do(t.ListSubscriptionsByTopic(arn())).subscriptions  # type: ignore[attr-defined]
    assert listed.subscription_arn == ("PendingConfirmation" if is_pending else shown.subscription_arn)
    counts = desk.attributes()
    assert (counts["SubscriptionsPending"], counts["SubscriptionsConfirmed"]) == (
        (str(int(is_pending)), str(int(not is_pending)))
    )


def waiting(desk: TopicDesk, subscription_arn: str) -> list[str]:
    """What waits for a subscription that is no queue."""
    queue = desk.state.queue(INNER_OWNER, subscription_arn.rpartition(":")[2])
    return [content.body for content in queue.contents.values()]


def test_endpoint_gets_a_token_that_confirms_again_and_again(desk: TopicDesk) -> None:
    made = desk.subscribe(protocol="http", endpoint="http://example.com/in")
    desk.publish("too early")
    (text,) = waiting(desk, made)
    asked = json.loads(text)
    assert list(asked) == [
        "Type", "MessageId", "Token", "TopicArn", "Message", "SubscribeURL", "Timestamp", "SignatureVersion",
        "Signature", "SigningCertURL",
    ]  # fmt: skip
    token = asked["Token"]
    assert asked["Type"] == envelopes.CONFIRMATION
    assert asked["SubscribeURL"] == f"{ENDPOINT}/?Action=ConfirmSubscription&TopicArn={arn()}&Token={token}"
    assert len(token) == limits.CONFIRMATION_TOKEN_CHARS
    for topic in (arn(), arn("another")):
        result = desk.do(t.ConfirmSubscription(topic, token))
        assert isinstance(result, SubscribeResult)
        assert result.subscription_arn == made
    desk.publish("in time")
    assert json.loads(waiting(desk, made)[1])["Message"] == "in time"


def test_wrong_token_confirms_nothing(desk: TopicDesk) -> None:
    made = desk.subscribe(protocol="http", endpoint="http://example.com/in")
    token = json.loads(waiting(desk, made)[0])["Token"]
    forged = f"{token[:-1]}{'0' if token[-1] != '0' else '1'}"
    assert invalid(desk, t.ConfirmSubscription(arn(), forged)) == "Token"
    assert invalid(desk, t.ConfirmSubscription(arn(), "f" * 288)) == "Token"
    assert invalid(desk, t.ConfirmSubscription(arn(), "x")) == "Token", "the answer to a wrong SubscribeURL"
    signed = Call(t.ConfirmSubscription(arn(), "x"), "AKID", DEFAULT_ACCOUNT, ENDPOINT)
    with pytest.raises(errors.InvalidToken, match=r"^Invalid token$"):
        execute(desk.state, signed, desk.context)
    assert invalid(desk, t.ConfirmSubscription(None, token)) == "Topic"
    assert invalid(desk, t.ConfirmSubscription(arn().replace("us-east-1", "eu-west-1"), token)) == "Topic"
    desk.wait(limits.CONFIRMATION_TOKEN_MS / 1_000 + 1)
    assert invalid(desk, t.ConfirmSubscription(arn(), token)) == "Token"


def test_subscription_that_nobody_confirms_lapses_with_its_queue(desk: TopicDesk) -> None:
    desk.subscribe(protocol="http", endpoint="http://example.com/in")
    desk.wait(limits.PENDING_SUBSCRIPTION_MS / 1_000 - 1)
    assert desk.deliver() == 0
    desk.wait(1)
    assert desk.deliver() == 1
    assert (desk.state.topics.subscription_count, len(desk.state.queues)) == (0, 1)


def test_unsubscribing_needs_authentication_if_the_confirmation_said_so(desk: TopicDesk) -> None:
    made = desk.subscribe(protocol="http", endpoint="http://example.com/in")
    token = json.loads(waiting(desk, made)[0])["Token"]
    desk.do(t.ConfirmSubscription(arn(), token, "true"))
    with pytest.raises(errors.AuthorizationError):
        desk.do(t.Unsubscribe(made))
    call = Call(t.Unsubscribe(made), "AKID", DEFAULT_ACCOUNT, ENDPOINT)
    desk.write(execute(desk.state, call, desk.context)[1])
    assert desk.do(t.ListSubscriptions()) == SubscriptionsResult([], None)


SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"RawMessageDelivery": "true"}, {}),
    ({"RawMessageDelivery": "true"}, {"RawMessageDelivery": "True"}),
    ({}, {"RawMessageDelivery": "false"}),
    ({}, {"FilterPolicyScope": "MessageAttributes"}),
    ({}, {"FilterPolicy": ""}),
    ({"FilterPolicy": '{"a": ["b"]}'}, {"FilterPolicy": '{"a": ["b"]}'}),
]
OTHER: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"RawMessageDelivery": "true"}),
    ({"RawMessageDelivery": "true"}, {"RawMessageDelivery": "false"}),
    ({"FilterPolicy": '{"a": ["b"]}'}, {"FilterPolicy": '{"a": ["c"]}'}),
    ({}, {"FilterPolicy": '{"a": ["b"]}'}),
]


@pytest.mark.parametrize(("first", "again"), SAME)
def test_subscribing_again_answers_the_same_arn(desk: TopicDesk, first: dict[str, Any], again: dict[str, Any]) -> None:
    assert desk.subscribe(**first) == desk.subscribe(**again)
    assert desk.state.topics.subscription_count == 1


@pytest.mark.parametrize(("first", "again"), OTHER)
def test_subscribing_again_with_other_attributes_is_refused(
    desk: TopicDesk, first: dict[str, Any], again: dict[str, Any]
) -> None:
    desk.subscribe(**first)
    text = invalid(desk, subscription("sqs", arn_of_queue("jobs"), **again))
    assert text == "Attributes Reason: Subscription already exists with different attributes"


def test_same_endpoint_of_another_protocol_or_topic_is_another_subscription(desk: TopicDesk) -> None:
    desk.topic("more")
    arns = {
        desk.subscribe(protocol="email", endpoint="a@example.com"),
        desk.subscribe(protocol="email-json", endpoint="a@example.com"),
        desk.subscribe(topic="more", protocol="email", endpoint="a@example.com"),
    }
    assert len(arns) == 3


REFUSED = [
    ("Nonsense", "1", "AttributeName"),
    ("RawMessageDelivery", "1", "RawMessageDelivery: Invalid value [1]. Must be true or false."),
    (
        "FilterPolicyScope",
        "Body",
        "FilterPolicyScope: Invalid value [Body]. Please use either MessageBody or MessageAttributes",
    ),
    ("RedrivePolicy", '{"deadLetterTargetArn": "x"}', "RedrivePolicy: deadLetterTargetArn is an invalid arn"),
    (
        "RedrivePolicy",
        '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:111122223333:q"}',
        "RedrivePolicy: deadLetterTargetArn is an invalid arn",
    ),
    ("FilterPolicy", '{"a": []}', "FilterPolicy: Empty arrays are not allowed"),
    (
        "FilterPolicy",
        '{"a": {"b": ["c"]}}',
        "Filter policy scope MessageAttributes does not support nested filter policy",
    ),
]


@pytest.mark.parametrize(("name", "value", "text"), REFUSED)
def test_attribute_that_is_none_is_refused(desk: TopicDesk, name: str, value: str, text: str) -> None:
    command = subscription("sqs", arn_of_queue("jobs"), **{name: value})
    assert invalid(desk, command).startswith(f"Attributes Reason: {text}")
    made = desk.subscribe()
    assert invalid(desk, t.SetSubscriptionAttributes(made, name, value)).startswith(text)


def test_redrive_policy_that_is_no_json_is_refused(desk: TopicDesk) -> None:
    made = desk.subscribe()
    text = invalid(desk, t.SetSubscriptionAttributes(made, "RedrivePolicy", "{"))
    assert text.startswith("RedrivePolicy: failed to parse JSON. ")


def test_raw_delivery_is_of_few_protocols(desk: TopicDesk) -> None:
    command = subscription("email", "a@example.com", RawMessageDelivery="false")
    assert invalid(desk, command) == (
        "Attributes Reason: Delivery protocol [email] does not support raw message delivery."
    )


def test_dead_letters_of_a_fifo_subscription_need_a_fifo_queue(desk: TopicDesk) -> None:
    desk.topic("orders.fifo")
    policy = {"deadLetterTargetArn": arn_of_queue("dead")}
    desk.subscribe(topic="orders.fifo", RedrivePolicy=policy)
    with pytest.raises(errors.InvalidParameter, match="must use a FIFO queue as DLQ"):
        desk.subscribe("steps.fifo", topic="orders.fifo", RedrivePolicy=policy)


def test_attributes_are_shown_as_aws_shows_them(desk: TopicDesk) -> None:
    made = desk.subscribe()
    assert set(desk.attributes_of(made)) == {
        "SubscriptionArn", "TopicArn", "Protocol", "Endpoint", "Owner", "ConfirmationWasAuthenticated",
        "PendingConfirmation", "RawMessageDelivery", "SubscriptionPrincipal",
    }  # fmt: skip
    desk.do(t.SetSubscriptionAttributes(made, "FilterPolicyScope", "MessageBody"))
    assert "FilterPolicyScope" not in desk.attributes_of(made)
    desk.do(t.SetSubscriptionAttributes(made, "FilterPolicy", '{ "a":["b"] }'))
    shown = desk.attributes_of(made)
    assert (shown["FilterPolicy"], shown["FilterPolicyScope"]) == ('{ "a":["b"] }', "MessageBody")
    desk.do(t.SetSubscriptionAttributes(made, "FilterPolicy", ""))
    assert "FilterPolicy" not in desk.attributes_of(made)
    desk.do(t.SetSubscriptionAttributes(made, "RawMessageDelivery", "TRUE"))
    assert desk.attributes_of(made)["RawMessageDelivery"] == "true"
    desk.do(t.SetSubscriptionAttributes(made, "RawMessageDelivery", "false"))
    assert desk.attributes_of(made)["RawMessageDelivery"] == "false"


def test_http_subscription_shows_its_effective_delivery_policy(desk: TopicDesk) -> None:
    made = desk.subscribe(
        protocol="http", endpoint="http://e", DeliveryPolicy={"healthyRetryPolicy": {"numRetries": 7}}
    )
    effective = json.loads(desk.attributes_of(made)["EffectiveDeliveryPolicy"])
    assert list(effective) == [
        "healthyRetryPolicy",
        "sicklyRetryPolicy",
        "throttlePolicy",
        "requestPolicy",
        "guaranteed",
    ]
    assert effective["healthyRetryPolicy"]["numRetries"] == 7


@pytest.mark.parametrize(("is_fixed", "retries", "per_second"), [(False, 7, 5), (True, 2, 9)])
def test_effective_delivery_policy_is_the_topics_where_the_subscription_says_nothing_or_may_not(
    desk: TopicDesk, is_fixed: bool, retries: int, per_second: int
) -> None:
    http = {
        "defaultHealthyRetryPolicy": {"numRetries": 2, "minDelayTarget": None},
        "defaultThrottlePolicy": {"maxReceivesPerSecond": 9},
        "defaultRequestPolicy": {"headerContentType": "text/html"},
        "disableSubscriptionOverrides": is_fixed,
    }
    desk.do(t.SetTopicAttributes(arn(), "DeliveryPolicy", json.dumps({"http": http})))
    plain = desk.subscribe(protocol="http", endpoint="http://plain")
    effective = json.loads(desk.attributes_of(plain)["EffectiveDeliveryPolicy"])
    assert effective["healthyRetryPolicy"]["numRetries"] == 2
    assert effective["healthyRetryPolicy"]["minDelayTarget"] == 20
    assert effective["throttlePolicy"] == {"maxReceivesPerSecond": 9}
    assert effective["requestPolicy"] == {"headerContentType": "text/html"}
    policy = {"healthyRetryPolicy": {"numRetries": 7}, "throttlePolicy": {"maxReceivesPerSecond": 5}}
    own = desk.subscribe(protocol="http", endpoint="http://own", DeliveryPolicy=policy)
    shown = desk.attributes_of(own)
    effective = json.loads(shown["EffectiveDeliveryPolicy"])
    assert effective["healthyRetryPolicy"]["numRetries"] == retries
    assert effective["throttlePolicy"] == {"maxReceivesPerSecond": per_second}
    in_force = delivery_policies.in_force(desk.attributes()["DeliveryPolicy"], shown["DeliveryPolicy"])
    assert (in_force.retries, in_force.per_second) == (retries, per_second)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, "SubscriptionArn Reason: no value for required parameter"),
        ("pending confirmation", "SubscriptionArn Reason: An ARN must have at least 6 elements, not 1"),
        (arn(), "SubscriptionId"),
    ],
)
def test_unsubscribing_from_what_is_no_subscription_is_refused(desk: TopicDesk, given: str | None, text: str) -> None:
    assert invalid(desk, t.Unsubscribe(given)) == text


def test_subscription_is_found_by_its_whole_arn(desk: TopicDesk) -> None:
    made = desk.subscribe()
    desk.topic("other")
    key = made.rpartition(":")[2]
    for wrong in (f"{arn('other')}:{key}", f"{arn('unknown')}:{key}", f"{arn()}:{key}x", f"{arn()}:"):
        with pytest.raises(errors.TopicNotFound):
            desk.do(t.GetSubscriptionAttributes(wrong))
    far = f"{arn().replace('000000000000', '000000000000/eu-west-1')}:{key}"
    assert invalid(desk, t.GetSubscriptionAttributes(far)) == "SubscriptionArn"


@pytest.mark.parametrize(
    "policy", ['{"healthyRetryPolicy": []}', "[]", '{"healthyRetryPolicy": {"numRetries": 101}}', "{"]
)
def test_delivery_policy_that_is_none_is_refused(desk: TopicDesk, policy: str) -> None:
    text = invalid(desk, subscription("http", "http://e", DeliveryPolicy=policy))
    assert text.startswith("Attributes Reason: DeliveryPolicy: ")


def test_delivery_policy_may_have_the_nulls_of_an_effective_one(desk: TopicDesk) -> None:
    policy = '{"healthyRetryPolicy": null, "throttlePolicy": null, "guaranteed": false}'
    made = desk.subscribe(protocol="http", endpoint="http://e", DeliveryPolicy=policy)
    shown = desk.do(t.GetSubscriptionAttributes(made)).attributes
    assert json.loads(shown["EffectiveDeliveryPolicy"])["healthyRetryPolicy"]["numRetries"] == 3


def test_unsubscribing_is_no_error_twice_and_is_counted(desk: TopicDesk) -> None:
    made = desk.subscribe()
    for _ in range(2):
        desk.do(t.Unsubscribe(made))
    assert desk.publish().counts.delivered == 0
    assert (desk.bodies(), desk.attributes()["SubscriptionsDeleted"]) == ([], "1")
    with pytest.raises(errors.TopicNotFound, match="Subscription does not exist"):
        desk.do(t.GetSubscriptionAttributes(made))
    assert desk.subscribe() != made


def test_subscriptions_are_listed_in_pages_and_nothing_is_left_out_between_two(desk: TopicDesk) -> None:
    arns = [desk.subscribe(f"q{number}") for number in range(205)]
    first = desk.do(t.ListSubscriptions())
    assert isinstance(first, SubscriptionsResult)
    desk.do(t.Unsubscribe(arns[99]))
    desk.do(t.Unsubscribe(arns[3]))
    found = [each.subscription_arn for each in first.subscriptions]
    token = first.next_token
    while token is not None:
        page = desk.do(t.ListSubscriptionsByTopic(arn(), token))
        assert isinstance(page, SubscriptionsResult)
        found += [each.subscription_arn for each in page.subscriptions]
        token = page.next_token
    assert found == arns
    assert invalid(desk, t.ListSubscriptions("bm8gbnVtYmVy")) == "NextToken"


def test_fifo_topic_has_a_hundred_subscriptions(desk: TopicDesk) -> None:
    desk.topic("orders.fifo")
    for number in range(limits.FIFO_SUBSCRIPTIONS_MAX):
        desk.subscribe(f"q{number}", topic="orders.fifo")
    with pytest.raises(errors.SubscriptionLimitExceeded):
        desk.subscribe("one-more", topic="orders.fifo")


def test_queue_of_a_subscription_is_not_shown(desk: TopicDesk) -> None:
    """Not even where a call has its owner: it holds the token that confirms the subscription."""
    desk.subscribe(protocol="http", endpoint="http://e")
    (key,) = desk.state.topics.by_key
    assert len(inner_bodies(desk, key)) == 1
    with pytest.raises(QueueDoesNotExist):
        desk.do(Peek(key), account=INNER_OWNER)


def web_subscription(desk: TopicDesk, topic: str = "news") -> str:
    """The ARN of one that was confirmed, and whose confirmation was posted."""
    made = desk.subscribe(topic=topic, protocol="http", endpoint="http://e", RawMessageDelivery="true")
    (key,) = desk.state.topics.by_key
    confirm(desk, desk.state.topics.by_key[key].row.number)
    desk.do(commands.PurgeQueue(key), account=INNER_OWNER)
    return made


def confirm(desk: TopicDesk, number: int) -> None:
    desk.do(t.ConfirmSubscription(arn(), desk.state.identity.token(number)))


def inner_bodies(desk: TopicDesk, key: str) -> list[str]:
    queue = desk.state.names[INNER_OWNER, key]
    return [stored.body for sequence, stored in sorted(queue.contents.items()) if sequence >= queue.watermark]


def groups_of(queue: Queue) -> list[str | None]:
    return [stored.group_id for sequence, stored in sorted(queue.contents.items()) if sequence >= queue.watermark]


def test_a_copy_says_for_good_whether_this_server_wrote_it(desk: TopicDesk) -> None:
    made = web_subscription(desk)
    key = made.rpartition(":")[2]
    for is_raw in ("true", "false", "true"):
        desk.do(t.SetSubscriptionAttributes(made, "RawMessageDelivery", is_raw))
        desk.publish("x", message_group_id=envelopes.NOTIFICATION)
    inner = desk.state.names[INNER_OWNER, key]
    assert groups_of(inner) == [None, envelopes.NOTIFICATION, None]
    desk.do(t.Unsubscribe(made))
    assert groups_of(inner) == [envelopes.FAREWELL]


def test_only_inner_queues_have_the_mark(desk: TopicDesk) -> None:
    made = web_subscription(desk)
    target = json.dumps({"deadLetterTargetArn": arn_of_queue("jobs")})
    desk.do(t.SetSubscriptionAttributes(made, "RawMessageDelivery", "false"))
    desk.do(t.SetSubscriptionAttributes(made, "RedrivePolicy", target))
    desk.do(commands.DeleteQueue(made.rpartition(":")[2]), account=INNER_OWNER)
    desk.subscribe("jobs")
    desk.publish("x")
    assert groups_of(desk.queue()) == [None, None]


def test_web_server_is_told_that_it_was_unsubscribed_and_nothing_more(desk: TopicDesk) -> None:
    made = web_subscription(desk)
    topic, _, key = made.rpartition(":")
    desk.publish("waits")
    desk.do(t.Unsubscribe(made))
    desk.publish("comes too late")
    (told,) = map(json.loads, inner_bodies(desk, key))
    assert (told["Type"], told["TopicArn"]) == ("UnsubscribeConfirmation", topic)
    assert told["Message"] == (
        f"You have chosen to deactivate subscription {made}.\n"
        "To cancel this operation and restore the subscription, visit the SubscribeURL included in this message."
    )
    shown = desk.attributes()
    counts = [shown[f"Subscriptions{each}"] for each in ("Confirmed", "Pending", "Deleted")]
    assert counts == ["0", "0", "1"]
    assert desk.do(t.ListSubscriptions()) == desk.do(t.ListSubscriptionsByTopic(arn())) == SubscriptionsResult([], None)
    with pytest.raises(errors.TopicNotFound):
        desk.attributes_of(made)
    desk.do(t.Unsubscribe(made))
    assert desk.attributes()["SubscriptionsDeleted"] == "1", "it is unsubscribed already"


def test_web_server_restores_its_subscription_by_the_link(desk: TopicDesk) -> None:
    made = web_subscription(desk)
    first = desk.state.identity.token(desk.state.topics.by_key[made.rpartition(":")[2]].row.number)
    desk.do(t.Unsubscribe(made))
    (told,) = map(json.loads, inner_bodies(desk, made.rpartition(":")[2]))
    assert told["Token"] != first
    assert told["SubscribeURL"].endswith(told["Token"])
    assert invalid(desk, t.ConfirmSubscription(arn(), first)) == "Token", "it confirmed, but does not restore"
    for _ in range(2):
        restored = desk.do(t.ConfirmSubscription(arn(), told["Token"]))
        assert isinstance(restored, SubscribeResult)
        assert restored.subscription_arn == made
    confirmed = desk.do(t.ConfirmSubscription(arn(), first))
    assert confirmed == restored
    desk.publish("again")
    assert inner_bodies(desk, made.rpartition(":")[2])[1:] == ["again"]


def test_subscription_is_not_restored_beside_a_newer_one_of_its_endpoint(desk: TopicDesk) -> None:
    made = web_subscription(desk)
    (number,) = [each.row.number for each in desk.state.topics.by_key.values()]
    desk.do(t.Unsubscribe(made))
    newer = desk.subscribe(protocol="http", endpoint="http://e")
    assert newer != made
    assert invalid(desk, t.ConfirmSubscription(arn(), desk.state.identity.token(number))) == "Token"


@pytest.mark.parametrize("is_deleted", [True, False], ids=["topic deleted", "not restored in time"])
def test_what_was_unsubscribed_goes_with_its_inner_queue(desk: TopicDesk, is_deleted: bool) -> None:
    desk.do(t.Unsubscribe(web_subscription(desk)))
    if is_deleted:
        desk.do(t.DeleteTopic(arn()))
    else:
        desk.wait(limits.PENDING_SUBSCRIPTION_MS / 1_000)
        desk.deliver()
    assert desk.state.topics.subscription_count == 0
    assert [queue.name for queue in desk.state.queues.values()] == ["jobs"]


def test_default_is_shown_where_an_older_version_let_in_a_policy_that_cannot_be_read(desk: TopicDesk) -> None:
    made = desk.subscribe(protocol="http", endpoint="http://e")
    topic = desk.state.topics.names[DEFAULT_ACCOUNT, "news"].row
    assert topic is not None
    desk.write([replace(topic, attributes={"DeliveryPolicy": '{"http":{"disableSubscriptionOverrides":"x"}}'})])
    effective = json.loads(desk.attributes_of(made)["EffectiveDeliveryPolicy"])
    assert effective["healthyRetryPolicy"]["numRetries"] == 3
