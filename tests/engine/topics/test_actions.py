"""CreateTopic, DeleteTopic, ListTopics, attributes of topics and data protection: errors and texts as AWS has them."""

import json
from collections.abc import Callable

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.model import errors
from elasticq.model import topic_commands as t
from elasticq.model.commands import Command
from elasticq.model.errors import SqsError
from elasticq.model.extensions import DeleteAllQueues
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.model.topic_results import TopicsResult
from tests.engine.topic_desk import TopicDesk, arn


@pytest.fixture
def desk() -> TopicDesk:
    made = TopicDesk()
    made.topic()
    return made


def refused(desk: TopicDesk, command: Command) -> tuple[type[SqsError], str]:
    with pytest.raises(SqsError) as caught:
        desk.do(command)
    return type(caught.value), caught.value.message


def invalid(desk: TopicDesk, command: Command) -> str:
    kind, message = refused(desk, command)
    assert kind is errors.InvalidParameter
    return message.removeprefix("Invalid parameter: ")


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("", {}),
        ("x" * 257, {}),
        ("a b", {}),
        ("a.b", {}),
        ("x.fifo", {}),
        ("x.fifo", {"FifoTopic": "false"}),
        ("x", {"FifoTopic": "true"}),
        (".fifo", {"FifoTopic": "true"}),
    ],
)
def test_name_that_is_none_is_refused(desk: TopicDesk, name: str, attributes: dict[str, str]) -> None:
    assert invalid(desk, t.CreateTopic(name=name, attributes=attributes)) == "Topic Name"


def test_arn_names_region_account_and_topic(desk: TopicDesk) -> None:
    assert desk.topic("x" * 256) == f"arn:aws:sns:us-east-1:000000000000:{'x' * 256}"
    assert desk.topic("orders.fifo") == arn("orders.fifo")


def test_fresh_topic_shows_what_aws_shows(desk: TopicDesk) -> None:
    shown = desk.attributes()
    assert set(shown) == {
        "Policy", "Owner", "SubscriptionsPending", "TopicArn", "EffectiveDeliveryPolicy", "SubscriptionsConfirmed",
        "DisplayName", "SubscriptionsDeleted",
    }  # fmt: skip
    assert (shown["Owner"], shown["DisplayName"], shown["TopicArn"]) == (DEFAULT_ACCOUNT, "", arn())
    policy = json.loads(shown["Policy"])
    assert policy["Statement"][0]["Condition"] == {"StringEquals": {"AWS:SourceOwner": DEFAULT_ACCOUNT}}
    assert shown["EffectiveDeliveryPolicy"].startswith('{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":20,')


def test_fifo_topic_shows_its_two_attributes(desk: TopicDesk) -> None:
    desk.topic("orders.fifo")
    shown = desk.attributes("orders.fifo")
    assert (shown["FifoTopic"], shown["ContentBasedDeduplication"]) == ("true", "false")


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ({}, {}),
        ({"DisplayName": "d"}, {}),
        ({"DisplayName": "d"}, {"DisplayName": "d"}),
        ({"DisplayName": "d", "KmsMasterKeyId": "k"}, {"DisplayName": "d"}),
        ({}, {"FifoTopic": "false"}),
        ({}, {"DisplayName": ""}),
        ({"SignatureVersion": ""}, {"SignatureVersion": ""}),
    ],
)
def test_creating_again_is_no_error(first: dict[str, str], again: dict[str, str]) -> None:
    desk = TopicDesk()
    made = desk.topic(**first)
    assert desk.topic(**again) == made
    assert len(desk.state.topics.by_number) == 1


@pytest.mark.parametrize(("first", "again"), [({}, {"DisplayName": "d"}), ({"DisplayName": "d"}, {"DisplayName": "e"})])
def test_creating_again_with_other_attributes_is_refused(first: dict[str, str], again: dict[str, str]) -> None:
    desk = TopicDesk()
    desk.topic(**first)
    command = t.CreateTopic(name="news", attributes=again)
    assert invalid(desk, command) == "Attributes Reason: Topic already exists with different attributes"


def test_creating_again_with_other_tags_is_refused() -> None:
    desk = TopicDesk()
    desk.do(t.CreateTopic(name="news", tags=[t.Tag("a", "1"), t.Tag("b", "2")]))
    desk.do(t.CreateTopic(name="news", tags=[t.Tag("b", "2")]))
    for tags in ([t.Tag("c", "1")], [t.Tag("a", "2")]):
        command = t.CreateTopic(name="news", tags=tags)
        assert invalid(desk, command) == "Tags Reason: Topic already exists with different tags"


ATTRIBUTES: list[tuple[str, str, str]] = [
    ("DisplayName", "d", "d"),
    ("SignatureVersion", "2", "2"),
    ("TracingConfig", "Active", "Active"),
    ("KmsMasterKeyId", "alias/k", "alias/k"),
    ("MaximumMessageSize", "1024", "1024"),
    ("SQSSuccessFeedbackSampleRate", "100", "100"),
    ("HTTPFailureFeedbackRoleArn", "arn:role", "arn:role"),
    (
        "DeliveryPolicy",
        '{"http": {"defaultHealthyRetryPolicy": {"numRetries": 1}, "defaultThrottlePolicy": null}}',
        '{"http":{"defaultHealthyRetryPolicy":{"numRetries":1},"disableSubscriptionOverrides":false}}',
    ),
]


@pytest.mark.parametrize(("name", "value", "shown"), ATTRIBUTES, ids=[name for name, _, _ in ATTRIBUTES])
def test_attribute_is_shown_once_set_and_goes_with_an_empty_value(
    desk: TopicDesk, name: str, value: str, shown: str
) -> None:
    desk.do(t.SetTopicAttributes(arn(), name, value))
    assert desk.attributes()[name] == shown
    if name not in ("SQSSuccessFeedbackSampleRate",):
        desk.do(t.SetTopicAttributes(arn(), name, ""))
        assert desk.attributes().get(name, "") == ""


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("Nonsense", "1", "AttributeName"),
        ("FifoTopic", "true", "AttributeName"),
        ("ContentBasedDeduplication", "true", "AttributeName"),
        ("ArchivePolicy", "{}", "AttributeName"),
        ("DisplayName", "x" * 101, "DisplayName"),
        ("SignatureVersion", "3", "SignatureVersion"),
        ("TracingConfig", "Off", "TracingConfig"),
        ("MaximumMessageSize", "1023", "MaximumMessageSize"),
        ("MaximumMessageSize", "1048577", "MaximumMessageSize"),
        ("SQSSuccessFeedbackSampleRate", "101", "SQSSuccessFeedbackSampleRate"),
        ("Policy", "{", "Policy Error: null"),
        (
            "Policy",
            '{"Statement": {"Effect": "Allow", "Principal": {"AWS": "nobody"}, "Action": "SNS:Publish"}}',
            "Policy Error: PrincipalNotFound",
        ),
        ("DeliveryPolicy", "[]", "DeliveryPolicy: Unexpected JSON member"),
        ("DeliveryPolicy", '{"http": []}', "DeliveryPolicy: Unexpected JSON member"),
        (
            "DeliveryPolicy",
            '{"http": {"defaultHealthyRetryPolicy": []}}',
            "DeliveryPolicy: http.defaultHealthyRetryPolicy must be an object",
        ),
        (
            "DeliveryPolicy",
            '{"http": {"defaultHealthyRetryPolicy": {"numRetries": "x"}}}',
            "DeliveryPolicy: numRetries must be a number from 0 to 100, not x",
        ),
        (
            "DeliveryPolicy",
            '{"http": {"defaultThrottlePolicy": {"maxReceivesPerSecond": 0}}}',
            "DeliveryPolicy: maxReceivesPerSecond must be a number from 1 to 3600, not 0",
        ),
        (
            "DeliveryPolicy",
            '{"http": {"disableSubscriptionOverrides": "yes"}}',
            "DeliveryPolicy: http.disableSubscriptionOverrides must be true or false",
        ),
    ],
)
def test_attribute_that_is_none_is_refused(desk: TopicDesk, name: str, value: str, text: str) -> None:
    assert invalid(desk, t.SetTopicAttributes(arn(), name, value)) == text


def test_content_based_deduplication_can_be_switched_on_a_fifo_topic(desk: TopicDesk) -> None:
    desk.topic("orders.fifo")
    desk.do(t.SetTopicAttributes(arn("orders.fifo"), "ContentBasedDeduplication", "True"))
    assert desk.attributes("orders.fifo")["ContentBasedDeduplication"] == "true"


OF_A_TOPIC: list[Callable[[str | None], Command]] = [
    lambda given: t.GetTopicAttributes(given),
    lambda given: t.SetTopicAttributes(given, "DisplayName", "d"),
    lambda given: t.Subscribe(given, "sqs", "arn:aws:sqs:us-east-1:000000000000:jobs"),
    lambda given: t.ListSubscriptionsByTopic(given),
    lambda given: t.Publish(topic_arn=given, message="m"),
    lambda given: t.PublishBatch(given, [t.PublishBatchRequestEntry("a", "m")]),
    lambda given: t.AddTopicPermission(given, "l", ["111122223333"], ["Publish"]),
]


@pytest.mark.parametrize("command", OF_A_TOPIC, ids=lambda make: type(make("")).__name__)
def test_arn_of_no_topic_is_refused_in_awss_words(desk: TopicDesk, command: Callable[[str | None], Command]) -> None:
    assert refused(desk, command(arn("other"))) == (errors.TopicNotFound, "Topic does not exist")
    assert invalid(desk, command("")) == "TopicArn Reason: An ARN must have at least 6 elements, not 1"
    assert invalid(desk, command("arn:aws:sns")) == "TopicArn Reason: An ARN must have at least 6 elements, not 3"
    assert invalid(desk, command(arn().replace("us-east-1", "eu-west-1"))) == "TopicArn"
    assert invalid(desk, command(arn().replace(":sns:", ":sqs:"))) == "TopicArn"
    assert invalid(desk, command(arn().replace("000000000000", "000000000000/eu-west-1"))) == "TopicArn"


def test_deleting_takes_the_subscriptions_and_is_no_error_twice(desk: TopicDesk) -> None:
    desk.create()
    desk.subscribe()
    desk.subscribe(protocol="email", endpoint="a@example.com")
    for _ in range(2):
        desk.do(t.DeleteTopic(arn()))
    assert (desk.state.topics.by_key, desk.state.topics.orphans, list(desk.state.queues)) == (
        {},
        {},
        [desk.queue().id],
    ), "with the queue in which its messages waited"
    desk.topic()
    assert desk.attributes()["SubscriptionsConfirmed"] == "0"
    assert desk.publish().counts.delivered == 0


def test_a_topic_with_more_subscriptions_than_an_entry_takes_goes_in_steps(desk: TopicDesk) -> None:
    topic = next(iter(desk.state.topics.by_number))
    desk.write([_subscription(topic, number) for number in range(1, 2_502)])
    desk.do(t.DeleteTopic(arn()))
    assert len(desk.steps[-1]) == 1_001
    assert desk.do(t.ListSubscriptions()).subscriptions == []  # type: ignore[attr-defined]
    assert desk.deliver() == 4
    assert (desk.state.topics.subscription_count, desk.state.topics.orphans) == (0, {})


def _subscription(topic: int, number: int) -> m.SubscriptionSet:
    endpoint = f"arn:aws:sqs:us-east-1:000000000000:q{number}"
    return m.SubscriptionSet(
        number, topic, f"k{number}", DEFAULT_ACCOUNT, "sqs", endpoint, {}, "", DEFAULT_ACCOUNT, "", 1
    )


def test_topics_are_listed_in_pages(desk: TopicDesk) -> None:
    names = [f"t{number:03}" for number in range(205)]
    for name in names:
        desk.topic(name)
    desk.do(t.DeleteTopic(arn()))
    found: list[str] = []
    token: str | None = None
    sizes = []
    while True:
        page = desk.do(t.ListTopics(token))
        assert isinstance(page, TopicsResult)
        found += [topic.topic_arn for topic in page.topics]
        sizes.append(len(page.topics))
        token = page.next_token
        if token is None:
            break
    assert (found, sizes) == ([arn(name) for name in names], [100, 100, 5])
    assert invalid(desk, t.ListTopics("no token")) == "NextToken"


def test_data_protection_policy_is_kept_as_it_is(desk: TopicDesk) -> None:
    assert desk.do(t.GetDataProtectionPolicy(arn())).data_protection_policy == ""  # type: ignore[attr-defined]
    desk.do(t.PutDataProtectionPolicy(arn(), '{ "Name": "p" }'))
    found = desk.do(t.GetDataProtectionPolicy(arn())).data_protection_policy  # type: ignore[attr-defined]
    assert found == '{ "Name": "p" }'
    assert "DataProtectionPolicy" not in desk.attributes()
    assert refused(desk, t.GetDataProtectionPolicy(arn("other"))) == (
        errors.TaggedResourceNotFound,
        "Resource does not exist",
    )
    assert invalid(desk, t.PutDataProtectionPolicy(arn(), "[")).startswith("DataProtectionPolicy")


def test_large_messages_need_few_subscriptions_of_few_protocols(desk: TopicDesk) -> None:
    desk.create()
    desk.subscribe()
    desk.do(t.SetTopicAttributes(arn(), "MaximumMessageSize", "262145"))
    with pytest.raises(errors.InvalidParameter, match="MaximumMessageSize"):
        desk.subscribe(protocol="email", endpoint="a@example.com")
    desk.do(t.SetTopicAttributes(arn(), "MaximumMessageSize", ""))
    desk.subscribe(protocol="email", endpoint="a@example.com")
    assert invalid(desk, t.SetTopicAttributes(arn(), "MaximumMessageSize", "262145")) == "MaximumMessageSize"


def test_reset_of_an_account_takes_its_topics_and_no_others(desk: TopicDesk) -> None:
    desk.do(t.CreateTopic(name="theirs"), account="111122223333")
    desk.create()
    desk.subscribe()
    desk.do(DeleteAllQueues(DEFAULT_ACCOUNT))
    desk.deliver()
    assert [name for _, name in desk.state.topics.names] == ["theirs"]
    assert desk.state.topics.subscription_count == 0
    desk.do(DeleteAllQueues())
    assert not desk.state.topics.by_number
