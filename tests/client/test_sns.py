"""The light client of SNS: forms and answers by a script, and boto3's answers of a real server."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import pytest

from elasticq.client import Sns, SqsError, Unreachable
from elasticq.testing import ElasticQ
from tests.client.scripted import KEY, Scripted, answer, headers


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticQ]:
    with ElasticQ() as server:
        yield server


def test_a_call_is_a_signed_form() -> None:
    body = b"<PublishResponse xmlns='x'><PublishResult><MessageId>m</MessageId></PublishResult></PublishResponse>"
    with Scripted(answer(body)) as script, Sns(script.endpoint, "us-east-1", KEY) as sns:
        result = sns.publish(
            TopicArn="t",
            Message="a&b",
            MessageAttributes={"k": {"DataType": "Binary", "BinaryValue": b"\x00"}},
        )
        assert result["MessageId"] == "m"
        request = script.requests[0]
    assert "/us-east-1/sns/aws4_request" in headers(request)["authorization"]
    assert parse_qsl(request.partition(b"\r\n\r\n")[2].decode()) == [
        ("Action", "Publish"),
        ("Version", "2010-03-31"),
        ("TopicArn", "t"),
        ("Message", "a&b"),
        ("MessageAttributes.entry.1.Name", "k"),
        ("MessageAttributes.entry.1.Value.DataType", "Binary"),
        ("MessageAttributes.entry.1.Value.BinaryValue", "AA=="),
    ]


def without_metadata(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name != "ResponseMetadata"}


def test_answers_are_those_of_boto3(server: ElasticQ) -> None:
    queue = server.queue("jobs").create()
    boto = server.client("sns")
    with Sns(server.endpoint_url, server.region, (server.account, "test")) as light:
        topic = light.create_topic(Name="t", Attributes={"DisplayName": "d"}, Tags=[{"Key": "k", "Value": ""}])[
            "TopicArn"
        ]
        light.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue.arn, ReturnSubscriptionArn=True)
        sent = light.publish_batch(
            TopicArn=topic, PublishBatchRequestEntries=[{"Id": "1", "Message": "x"}, {"Id": "2", "Message": "y"}]
        )
        assert [each["Id"] for each in sent["Successful"]] == ["1", "2"]
        assert sent["Failed"] == []
        assert len(queue.peek()) == 2
        for action, members in (
            ("list_topics", {}),
            ("get_topic_attributes", {"TopicArn": topic}),
            ("list_subscriptions_by_topic", {"TopicArn": topic}),
            ("list_tags_for_resource", {"ResourceArn": topic}),
        ):
            answers = [without_metadata(getattr(client, action)(**members)) for client in (light, boto)]
            assert answers[0] == answers[1]


def test_a_refusal_has_its_code(server: ElasticQ) -> None:
    with Sns(server.endpoint_url, server.region, (server.account, "test")) as light, pytest.raises(SqsError) as raised:
        light.publish(TopicArn=f"arn:aws:sns:{server.region}:{server.account}:none", Message="x")
    error = raised.value
    assert (error.code, error.status, error.message) == ("NotFound", 404, "Topic does not exist")
    assert error.sender_fault


def test_what_is_no_xml_comes_from_something_else() -> None:
    with (
        Scripted(answer(b"hello")) as script,
        Sns(script.endpoint, "us-east-1", KEY, retry_s=0) as sns,
        pytest.raises(Unreachable, match="no XML"),
    ):
        sns.list_topics()


def test_who_only_sends_and_receives_loads_no_xml() -> None:
    program = "import sys; from elasticq.client import Sqs; assert 'xml' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
