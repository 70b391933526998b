"""Topics in the settings: what they become, and what is refused."""

import json
from pathlib import Path

import pytest

from elasticq.model.topic_commands import CreateTopic, Subscribe, Tag
from elasticq.server.settings import declarations, load
from elasticq.testing import ElasticQ
from tests.server.refusal import refusal

FILE = """
[queues.jobs]
[queues.dead]

[topics.news]
tags = {team = "a"}
attributes = {DisplayName = "News"}

[[topics.news.subscriptions]]
queue = "jobs"
raw = true
filter = {kind = ["a", {prefix = "b"}]}
filter_body = true
dead_letter_queue = "dead"

[[topics.news.subscriptions]]
url = "http://127.0.0.1:9/hook"

[topics.ordered]
fifo = true
content_based_deduplication = true
"""
ARN = "arn:aws:sqs:us-east-1:000000000000"


def test_tables_become_commands(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text(FILE)
    topic = "arn:aws:sns:us-east-1:000000000000:news"
    attributes = {
        "RawMessageDelivery": "true",
        "FilterPolicyScope": "MessageBody",
        "FilterPolicy": '{"kind": ["a", {"prefix": "b"}]}',
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": f"{ARN}:dead"}),
    }
    assert declarations(load(file, {}, {}))[2:] == [
        CreateTopic("news", {"DisplayName": "News"}, [Tag("team", "a")]),
        Subscribe(topic, "sqs", f"{ARN}:jobs", attributes),
        Subscribe(topic, "http", "http://127.0.0.1:9/hook", {}),
        CreateTopic("ordered.fifo", {"FifoTopic": "true", "ContentBasedDeduplication": "true"}, []),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[topics.'a b']", "topics.a b: a name has 1 to 256 letters, digits, - or _"),
        ("[topics.a]\nattributes = {Colour = 'x'}", "topics.a: Invalid parameter: "),
        ("[[topics.a.subscriptions]]", "topics.a.subscriptions, number 1: set either queue or url"),
        ("[[topics.a.subscriptions]]\nurl = 'ftp://x'", "number 1: Invalid parameter: Amazon SNS does not support"),
        (
            "[[topics.a.subscriptions]]\nqueue = 'x'\nfilter = {a = 'x'}",
            "number 1: Invalid parameter: Attributes Reason: FilterPolicy: ",
        ),
        ("[topics.a]\ncolour = 1", "unknown setting topics.a.colour"),
    ],
)
def test_what_cannot_be_is_refused_at_the_start(tmp_path: Path, text: str, reason: str) -> None:
    assert reason in refusal(tmp_path / "e.toml", text)


def test_a_server_starts_with_its_topics_and_keeps_them(tmp_path: Path) -> None:
    settings = {
        "queues": {"jobs": {}},
        "topics": {"news": {"subscriptions": [{"queue": "jobs", "raw": True, "filter": {"kind": ["a"]}}]}},
    }
    for _ in range(2):  # the second time all of it is there
        with ElasticQ(data_dir=tmp_path, settings=settings) as server:
            topic = server.topic("news")
            kind = {"kind": {"DataType": "String", "StringValue": "a"}}
            topic.publish("x", MessageAttributes=kind)
            topic.publish("y")
            assert len(topic.subscriptions()) == 1
            assert {each["Body"] for each in server.queue("jobs").peek()} == {"x"}


def test_topic_and_subscription_that_exist_keep_what_clients_set(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A changed attribute must not end the next start."""
    subscription = {"queue": "jobs", "filter": {"kind": ["a"]}}
    settings = {
        "queues": {"jobs": {}},
        "topics": {"news": {"attributes": {"DisplayName": "News"}, "subscriptions": [subscription]}},
    }
    with ElasticQ(data_dir=tmp_path, settings=settings) as server:
        sns = server.client("sns")
        topic = server.topic("news")
        sns.set_topic_attributes(TopicArn=topic.arn, AttributeName="DisplayName", AttributeValue="Other")
        (made,) = topic.subscriptions()
        sns.set_subscription_attributes(
            SubscriptionArn=made["SubscriptionArn"], AttributeName="FilterPolicy", AttributeValue='{"kind": ["b"]}'
        )
    with ElasticQ(data_dir=tmp_path, settings=settings) as server:
        found = server.client("sns").get_topic_attributes(TopicArn=server.topic("news").arn)["Attributes"]
        assert found["DisplayName"] == "Other"
        assert len(server.topic("news").subscriptions()) == 1
    assert [record.message.split(":")[0] for record in caplog.records if "topic_kept" in record.message] == [
        "topic_kept news",
        "topic_kept arn",
    ]
