"""Behaviours of AWS that users of LocalStack, ElasticMQ, GoAWS and moto missed there, by the issues they opened.

Each test calls by boto3. Its docstring names the issues: LS is localstack/localstack, EMQ is softwaremill/elasticmq,
GA is Admiral-Piett/goaws, MO is getmoto/moto.
"""

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import pytest
from botocore.exceptions import ClientError

from elasticq.testing import ElasticQ

FIFO = {"FifoQueue": "true"}
BY_CONTENT = {**FIFO, "ContentBasedDeduplication": "true"}
TEXT = {"DataType": "String", "StringValue": "1"}


class World:
    """One server with clients of SQS and SNS, and new names for each test."""

    def __init__(self, server: ElasticQ) -> None:
        self.server = server
        self.sqs = server.client("sqs")
        self.sns = server.client("sns")
        self._count = 0

    def name(self, suffix: str = "") -> str:
        self._count += 1
        return f"missed-{self._count}{suffix}"

    def queue(self, **attributes: str) -> str:
        suffix = ".fifo" if "FifoQueue" in attributes else ""
        url: str = self.sqs.create_queue(QueueName=self.name(suffix), Attributes=attributes)["QueueUrl"]
        return url

    def arn(self, url: str) -> str:
        found: str = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        return found

    def topic(self, **attributes: str) -> str:
        suffix = ".fifo" if "FifoTopic" in attributes else ""
        found: str = self.sns.create_topic(Name=self.name(suffix), Attributes=attributes)["TopicArn"]
        return found

    def subscribed(self, topic: str, url: str = "", **attributes: str) -> tuple[str, str]:
        """Return the URL of a queue that is subscribed to the topic, and the ARN of its subscription."""
        url = url or self.queue()
        made = self.sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=self.arn(url), Attributes=attributes)
        return url, made["SubscriptionArn"]

    def receive(self, url: str, **more: Any) -> list[dict[str, Any]]:
        more = {"MaxNumberOfMessages": 10, "AttributeNames": ["All"], "MessageAttributeNames": ["All"], **more}
        found: list[dict[str, Any]] = self.sqs.receive_message(QueueUrl=url, **more).get("Messages", [])
        return found

    def bodies(self, url: str) -> list[str]:
        return [each["Body"] for each in self.receive(url)]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with ElasticQ() as server:
        yield World(server)


def refused(call: Callable[..., Any], **members: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(**members)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


# SQS


def test_content_based_deduplication_ignores_attributes(world: World) -> None:
    """LS 590, 3339, 6327."""
    url = world.queue(**BY_CONTENT)
    for attributes in ({"a": TEXT}, {"b": TEXT}):
        world.sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g", MessageAttributes=attributes)
    (message,) = world.receive(url)
    assert message["Attributes"]["MessageDeduplicationId"] == sha256(b"x").hexdigest()


def test_deduplication_covers_the_queue_and_deleted_messages(world: World) -> None:
    """LS 3615, 8146."""
    url = world.queue(**FIFO)
    sent = {"QueueUrl": url, "MessageDeduplicationId": "d"}
    first = world.sqs.send_message(**sent, MessageBody="x", MessageGroupId="g")
    (message,) = world.receive(url)
    world.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    again = world.sqs.send_message(**sent, MessageBody="y", MessageGroupId="other")
    assert (again["MessageId"], again["SequenceNumber"]) == (first["MessageId"], first["SequenceNumber"])
    assert world.bodies(url) == []


def test_fifo_messages_have_their_attributes(world: World) -> None:
    """LS 6674, EMQ 127: the sequence number has 20 digits, also with high throughput."""
    url = world.queue(**FIFO, DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    sent = world.sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g", MessageDeduplicationId="d")
    (message,) = world.receive(url)
    found = message["Attributes"]
    assert found["SequenceNumber"] == sent["SequenceNumber"]
    assert (len(found["SequenceNumber"]), found["MessageGroupId"], found["MessageDeduplicationId"]) == (20, "g", "d")
    assert {"SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp"} <= found.keys()


def test_fifo_order_survives_a_visibility_timeout(world: World) -> None:
    """LS 4287, 12600."""
    url = world.queue(**BY_CONTENT, VisibilityTimeout="10")
    for body in "abc":
        world.sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g")
    assert [each["Body"] for each in world.receive(url, MaxNumberOfMessages=1)] == ["a"]
    assert world.bodies(url) == []
    world.server.clock.advance(11)
    assert world.bodies(url) == ["a", "b", "c"]


def test_extended_message_blocks_those_behind_it(world: World) -> None:
    """LS 12457, 13386."""
    url = world.queue(**BY_CONTENT, VisibilityTimeout="10")
    for body in "abc":
        world.sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g")
    second = world.receive(url)[1]
    world.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=second["ReceiptHandle"], VisibilityTimeout=15)
    world.server.clock.advance(12)
    assert world.bodies(url) == ["a"]


def test_fifo_dead_letter_needs_no_deduplication_of_its_queue(world: World) -> None:
    """LS 6107: AWS gives a dead letter its MessageId as deduplication id, so that none is lost as a duplicate."""
    dead = world.queue(**FIFO)
    policy = json.dumps({"deadLetterTargetArn": world.arn(dead), "maxReceiveCount": "1"})
    url = world.queue(**BY_CONTENT, VisibilityTimeout="0", RedrivePolicy=policy)
    sent = world.sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g")
    assert (world.bodies(url), world.bodies(url)) == (["x"], [])
    (letter,) = world.receive(dead)
    assert letter["MessageId"] == letter["Attributes"]["MessageDeduplicationId"] == sent["MessageId"]
    assert letter["Attributes"]["DeadLetterQueueSourceArn"] == world.arn(url)


def test_fifo_message_may_have_a_delay_of_zero(world: World) -> None:
    """EMQ 273, LS 1503."""
    url = world.queue(**BY_CONTENT)
    world.sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g", DelaySeconds=0)
    code, text = refused(world.sqs.send_message, QueueUrl=url, MessageBody="y", MessageGroupId="g", DelaySeconds=1)
    assert code == "InvalidParameterValue"
    assert text == (
        "Value 1 for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid "
        "for this queue type."
    )


def test_delay_of_a_fifo_queue_applies(world: World) -> None:
    """EMQ 890."""
    url = world.queue(**BY_CONTENT, DelaySeconds="60")
    world.sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g")
    assert world.bodies(url) == []
    world.server.clock.advance(61)
    assert world.bodies(url) == ["x"]


def test_handle_that_is_none_is_refused(world: World) -> None:
    """EMQ 324: in a batch it fails alone."""
    url = world.queue()
    words = ("ReceiptHandleIsInvalid", 'The input receipt handle "fake" is not a valid receipt handle.')
    assert refused(world.sqs.delete_message, QueueUrl=url, ReceiptHandle="fake") == words
    answer = world.sqs.delete_message_batch(QueueUrl=url, Entries=[{"Id": "a", "ReceiptHandle": "fake"}])
    assert [(each["Id"], each["Code"], each["SenderFault"]) for each in answer["Failed"]] == [("a", words[0], True)]


def test_attributes_come_only_if_they_are_asked_for(world: World) -> None:
    """EMQ 97: and the digest covers what comes."""
    url = world.queue(VisibilityTimeout="0")
    names = ("foo.a", "foo.b", "bar")
    sent = world.sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=dict.fromkeys(names, TEXT))
    found = {}
    for asked in ((), ("All",), (".*",), ("foo.*",), ("bar", "none")):
        (message,) = world.receive(url, MessageAttributeNames=list(asked), AttributeNames=[])
        assert "Attributes" not in message
        found[asked] = sorted(message.get("MessageAttributes", ()))
        is_whole = message.get("MD5OfMessageAttributes") == sent["MD5OfMessageAttributes"]
        assert is_whole == (len(found[asked]) == 3)
    assert list(found.values()) == [[], sorted(names), sorted(names), ["foo.a", "foo.b"], ["bar"]]


def test_groups_of_standard_queues_are_accepted(world: World) -> None:
    """EMQ 1137: fair queues. A deduplication id is not."""
    url = world.queue()
    world.sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="tenant")
    assert world.receive(url)[0]["Attributes"]["MessageGroupId"] == "tenant"
    code, text = refused(world.sqs.send_message, QueueUrl=url, MessageBody="x", MessageDeduplicationId="d")
    assert (code, "MessageDeduplicationId" in text) == ("InvalidParameterValue", True)


def test_every_attribute_of_a_queue_can_be_set(world: World) -> None:
    """EMQ 43: and one that does not exist is refused."""
    url = world.queue()
    given = {"MessageRetentionPeriod": "60", "MaximumMessageSize": "1024", "KmsMasterKeyId": "alias/aws/sqs"}
    world.sqs.set_queue_attributes(QueueUrl=url, Attributes=given)
    assert given.items() <= world.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"].items()
    unknown = {"QueueUrl": url, "Attributes": {"Colour": "red"}}
    assert refused(world.sqs.set_queue_attributes, **unknown) == ("InvalidAttributeName", "Unknown Attribute Colour.")
    words = ("InvalidAttributeName", "Unknown Attribute Colour.")
    assert refused(world.sqs.get_queue_attributes, QueueUrl=url, AttributeNames=["Colour"]) == words


def test_unknown_queue_is_one_error_for_each_action(world: World) -> None:
    """MO 21, 3261, 7827, 7939."""
    url = world.queue().replace("missed", "unknown")
    words = ("AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
    assert refused(world.sqs.get_queue_url, QueueName="unknown") == words
    for call, more in (
        (world.sqs.send_message, {"MessageBody": "x"}),
        (world.sqs.receive_message, {}),
        (world.sqs.purge_queue, {}),
        (world.sqs.delete_queue, {}),
        (world.sqs.list_queue_tags, {}),
        (world.sqs.tag_queue, {"Tags": {"a": "b"}}),
        (world.sqs.list_dead_letter_source_queues, {}),
        (world.sqs.delete_message_batch, {"Entries": [{"Id": "a", "ReceiptHandle": "x"}]}),
        (world.sqs.get_queue_attributes, {}),
    ):
        assert refused(call, QueueUrl=url, **more) == words


def test_queue_urls_name_the_server_that_was_called(world: World) -> None:
    """MO 626, LS 2877."""
    assert world.queue().startswith(f"{world.server.endpoint_url}/000000000000/")


def test_batches_are_checked_as_a_whole(world: World) -> None:
    """MO 1799, 2488."""
    url = world.queue()
    entry = {"Id": "a", "MessageBody": "x"}
    for entries, code in (
        ([], "EmptyBatchRequest"),
        ([{**entry, "Id": "a b"}], "InvalidBatchEntryId"),
        ([{**entry, "Id": "a" * 81}], "InvalidBatchEntryId"),
        ([entry, entry], "BatchEntryIdsNotDistinct"),
        ([{**entry, "Id": str(number)} for number in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": str(number), "MessageBody": "x" * 600_000} for number in range(2)], "BatchRequestTooLong"),
    ):
        found, _ = refused(world.sqs.send_message_batch, QueueUrl=url, Entries=entries)
        assert found == f"AWS.SimpleQueueService.{code}"
    assert world.bodies(url) == []


def test_tags_are_required_and_read_back(world: World) -> None:
    """MO 2488, GA 236."""
    url = world.queue()
    words = ("MissingParameter", "The request must contain the parameter Tags.")
    assert refused(world.sqs.tag_queue, QueueUrl=url, Tags={}) == words
    world.sqs.tag_queue(QueueUrl=url, Tags={"a": "b", "c": ""})
    world.sqs.untag_queue(QueueUrl=url, TagKeys=["a", "never"])
    assert world.sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"c": ""}


def test_queue_is_created_again_only_with_its_attributes(world: World) -> None:
    """LS 2096: FifoQueue may be repeated, other values not."""
    name = world.name(".fifo")
    url = world.sqs.create_queue(QueueName=name, Attributes=BY_CONTENT)["QueueUrl"]
    assert world.sqs.create_queue(QueueName=name, Attributes=BY_CONTENT)["QueueUrl"] == url
    assert world.sqs.create_queue(QueueName=name, Attributes=FIFO)["QueueUrl"] == url
    other = {**FIFO, "DelaySeconds": "3"}
    code, text = refused(world.sqs.create_queue, QueueName=name, Attributes=other)
    assert (code, text) == (
        "QueueAlreadyExists",
        "A queue already exists with the same name and a different value for attribute DelaySeconds",
    )


def test_ranges_of_visibility_are_checked_everywhere(world: World) -> None:
    """MO 3247: also the sum of a message's timeouts."""
    code, text = refused(world.sqs.create_queue, QueueName="x", Attributes={"VisibilityTimeout": "43201"})
    assert (code, text) == ("InvalidAttributeValue", "Invalid value for the parameter VisibilityTimeout.")
    url = world.queue()
    world.sqs.send_message(QueueUrl=url, MessageBody="x")
    handle = world.receive(url)[0]["ReceiptHandle"]
    change = world.sqs.change_message_visibility
    code, text = refused(change, QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=43201)
    assert code == "InvalidParameterValue"
    world.server.clock.advance(10)
    code, text = refused(change, QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=43200)
    assert (code, "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]" in text) == (
        "InvalidParameterValue",
        True,
    )


def test_pages_of_lists_have_tokens(world: World) -> None:
    """LS 9301, MO 3861: a token only if MaxResults was given."""
    names = [world.name("-page") for _ in range(3)]
    for name in names:
        world.sqs.create_queue(QueueName=name)
    whole = world.sqs.list_queues(QueueNamePrefix="missed-")
    assert "NextToken" not in whole
    first = world.sqs.list_queues(QueueNamePrefix=names[0][:-5], MaxResults=1)
    assert [url.rpartition("/")[2] for url in first["QueueUrls"]] == [names[0]]
    assert "QueueUrls" not in world.sqs.list_queues(QueueNamePrefix="nothing-begins-so")


# SNS


def test_envelope_holds_the_message_as_it_is(world: World) -> None:
    """MO 1060, GA 181: JSON in JSON, and attributes inside the envelope."""
    topic = world.topic()
    url, subscription = world.subscribed(topic)
    message = json.dumps({"a": 'quote " and \\ and ø'})
    sent = world.sns.publish(TopicArn=topic, Message=message, Subject="s", MessageAttributes={"n": TEXT})
    (received,) = world.receive(url)
    envelope = json.loads(received["Body"])
    assert "MessageAttributes" not in received
    assert (envelope["Message"], envelope["Subject"], envelope["MessageId"]) == (message, "s", sent["MessageId"])
    assert envelope["MessageAttributes"] == {"n": {"Type": "String", "Value": "1"}}
    assert envelope["UnsubscribeURL"].endswith(f"Action=Unsubscribe&SubscriptionArn={subscription}")


def test_raw_delivery_keeps_typed_attributes(world: World) -> None:
    """LS 655, 1651, 4594, MO 2331, 2830: RawMessageDelivery may be True."""
    topic = world.topic()
    url, subscription = world.subscribed(topic)
    world.sns.set_subscription_attributes(
        SubscriptionArn=subscription, AttributeName="RawMessageDelivery", AttributeValue="True"
    )
    attributes = {
        "text": TEXT,
        "number": {"DataType": "Number", "StringValue": "1.50"},
        "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
        "array": {"DataType": "String.Array", "StringValue": '["a", 1]'},
    }
    world.sns.publish(TopicArn=topic, Message="x", MessageAttributes=attributes)
    (received,) = world.receive(url)
    assert (received["Body"], received["MessageAttributes"]) == ("x", attributes)


def test_empty_filter_policy_is_none(world: World) -> None:
    """LS 10009: at Subscribe and later."""
    topic = world.topic()
    url, subscription = world.subscribed(topic, FilterPolicy="")
    assert "FilterPolicy" not in world.sns.get_subscription_attributes(SubscriptionArn=subscription)["Attributes"]
    world.sns.publish(TopicArn=topic, Message="x")
    assert len(world.bodies(url)) == 1


@pytest.mark.parametrize(
    ("policy", "matching", "others"),
    [
        (
            {"headers": {"route-to": ["q1"]}},
            ['{"headers": {"route-to": ["q1"]}}'],
            ['{"headers": {"route-to": ["q2"]}}'],
        ),
        ({"a": [{"exists": False}]}, ['{"b": 1}'], ['{"a": 1}', "no JSON"]),
        ({"a": {"b": [{"exists": True}]}}, ['{"a": {"b": 0}}', '{"a": [{"b": 1}, 2]}'], ['{"a": 1}']),
        ({"$or": [{"a": [1]}, {"b": [{"numeric": [">", 3]}]}]}, ['{"a": 1}', '{"b": 4}'], ['{"b": 3}']),
        ({"a": [{"anything-but": ["x", "z"]}]}, ['{"a": "y"}', '{"a": 2}'], ['{"a": "x"}', "{}"]),
        ({"a": [{"cidr": "10.0.0.0/24"}]}, ['{"a": "10.0.0.7"}'], ['{"a": "10.0.1.7"}']),
        ({"a": [{"equals-ignore-case": "tEsT"}]}, ['{"a": "TeSt"}'], ['{"a": "tests"}']),
        ({"a": [None]}, ['{"a": null}'], ['{"a": 0}', "{}"]),
    ],
)
def test_bodies_are_filtered_as_on_aws(
    world: World, policy: dict[str, Any], matching: list[str], others: list[str]
) -> None:
    """LS 7398, 10567, 4379, 10691, 684: the scope can be given at Subscribe."""
    topic = world.topic()
    more = {"RawMessageDelivery": "true", "FilterPolicyScope": "MessageBody", "FilterPolicy": json.dumps(policy)}
    url, _ = world.subscribed(topic, **more)
    for body in (*matching, *others):
        world.sns.publish(TopicArn=topic, Message=body)
    assert sorted(world.bodies(url)) == sorted(matching)


def test_attributes_are_filtered_as_on_aws(world: World) -> None:
    """LS 684, 674, 4379: arrays, and an attribute that must be absent."""
    topic = world.topic()
    url, _ = world.subscribed(topic, RawMessageDelivery="true", FilterPolicy='{"a": ["x"], "b": [{"exists": false}]}')
    array = {"DataType": "String.Array", "StringValue": '["w", "x"]'}
    for body, attributes in (("yes", {"a": array}), ("no", {"a": array, "b": TEXT}), ("nor", {"a": TEXT})):
        world.sns.publish(TopicArn=topic, Message=body, MessageAttributes=attributes)
    assert world.bodies(url) == ["yes"]


def test_fifo_topic_passes_groups_on(world: World) -> None:
    """LS 10088, MO 8957: to FIFO queues and to standard queues; a standard topic has no FIFO queues."""
    topic = world.topic(FifoTopic="true", ContentBasedDeduplication="true")
    ordered, _ = world.subscribed(topic, world.queue(**FIFO), RawMessageDelivery="true")
    plain, _ = world.subscribed(topic, RawMessageDelivery="true")
    for body in ("a", "b", "b"):
        sent = world.sns.publish(TopicArn=topic, Message=body, MessageGroupId="g")
        assert len(sent["SequenceNumber"]) == 20
    assert [(each["Body"], each["Attributes"]["MessageGroupId"]) for each in world.receive(ordered)] == [
        ("a", "g"),
        ("b", "g"),
    ]
    assert sorted(world.bodies(plain)) == ["a", "b"]
    subscribe = {"TopicArn": world.topic(), "Protocol": "sqs", "Endpoint": world.arn(ordered)}
    code, text = refused(world.sns.subscribe, **subscribe)
    assert (code, text) == (
        "InvalidParameter",
        "Invalid parameter: Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be subscribed to standard SNS "
        "topics",
    )


def test_endpoint_of_sqs_is_an_arn(world: World) -> None:
    """MO 8957."""
    subscribe = {"TopicArn": world.topic(), "Protocol": "sqs", "Endpoint": world.queue()}
    assert refused(world.sns.subscribe, **subscribe) == (
        "InvalidParameter",
        "Invalid parameter: SQS endpoint ARN",
    )


def test_endpoint_of_mobile_push_must_exist(world: World) -> None:
    """MO 7518: and none exists here."""
    endpoint = "arn:aws:sns:us-east-1:000000000000:endpoint/GCM/app/1"
    subscribe = {"TopicArn": world.topic(), "Protocol": "application", "Endpoint": endpoint}
    assert refused(world.sns.subscribe, **subscribe) == (
        "InvalidParameter",
        f"Invalid parameter: Endpoint Reason: Endpoint does not exist for endpoint {endpoint}",
    )


@pytest.mark.parametrize("subject", ["x" * 101, "", "a\nb"])
def test_subject_is_checked(world: World, subject: str) -> None:
    """MO 1276: 1 to 100 characters without line breaks."""
    call = {"TopicArn": world.topic(), "Message": "x", "Subject": subject}
    assert refused(world.sns.publish, **call) == ("InvalidParameter", "Invalid parameter: Subject")


def test_messages_for_each_protocol_have_a_default(world: World) -> None:
    """LS 8441, and what other servers were asked for: JSON that is none, JSON without default."""
    topic = world.topic()
    url, _ = world.subscribed(topic, RawMessageDelivery="true")
    call = {"TopicArn": topic, "MessageStructure": "json"}
    assert refused(world.sns.publish, **call, Message="no JSON") == (
        "InvalidParameter",
        "Invalid parameter: Message Structure - JSON message body failed to parse",
    )
    assert refused(world.sns.publish, **call, Message='{"sqs": "x"}') == (
        "InvalidParameter",
        "Invalid parameter: Message Structure - No default entry in JSON message body",
    )
    world.sns.publish(**call, Message='{"default": "all", "sqs": "queues"}')
    assert world.bodies(url) == ["queues"]


def test_topic_that_does_not_exist_is_not_found(world: World) -> None:
    """MO 979: anything that is no ARN is refused."""
    topic = world.topic()
    assert refused(world.sns.publish, TopicArn=f"{topic}-unknown", Message="x") == (
        "NotFound",
        "Topic does not exist",
    )
    code, text = refused(world.sns.publish, TopicArn="A:VERY:BAD:ARN", Message="x")
    assert (code, text.startswith("Invalid parameter: TopicArn")) == ("InvalidParameter", True)
    world.sns.delete_topic(TopicArn=topic)
    world.sns.delete_topic(TopicArn=topic)


def test_subscription_is_made_once(world: World) -> None:
    """LS 8415, 8458: attributes that differ are refused, SignatureVersion reads back."""
    topic = world.topic(SignatureVersion="2")
    assert world.sns.get_topic_attributes(TopicArn=topic)["Attributes"]["SignatureVersion"] == "2"
    url, first = world.subscribed(topic, RawMessageDelivery="true")
    assert world.subscribed(topic, url)[1] == world.subscribed(topic, url, RawMessageDelivery="true")[1] == first
    members = {"TopicArn": topic, "Protocol": "sqs", "Endpoint": world.arn(url)}
    assert refused(world.sns.subscribe, **members, Attributes={"RawMessageDelivery": "false"}) == (
        "InvalidParameter",
        "Invalid parameter: Attributes Reason: Subscription already exists with different attributes",
    )
    code, _ = refused(world.sns.subscribe, **members, Attributes={"Colour": "red"})
    assert code == "InvalidParameter"


def test_undeliverable_copy_goes_to_the_dead_letter_queue_of_its_subscription(world: World) -> None:
    """What users of several servers asked for: RedrivePolicy of a subscription."""
    topic, dead = world.topic(), world.queue()
    redrive = json.dumps({"deadLetterTargetArn": world.arn(dead)})
    url, _ = world.subscribed(topic, RawMessageDelivery="true", RedrivePolicy=redrive)
    world.sqs.delete_queue(QueueUrl=url)
    world.sns.publish(TopicArn=topic, Message="x")
    assert world.bodies(dead) == ["x"]
