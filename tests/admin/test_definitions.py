"""Definitions of queues: what one server tells another one makes."""

import asyncio
import gc
import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from elasticq.admin import definitions
from tests.admin.operator import JSON, Operator
from tests.server.process import Server

DEAD = "arn:aws:sqs:us-east-1:000000000000:dead"
POLICY = json.dumps({"deadLetterTargetArn": DEAD, "maxReceiveCount": 3})


TOPIC_POLICY = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "everybody",
                "Effect": "Allow",
                "Principal": "*",
                "Action": "SNS:Publish",
                "Resource": "arn:aws:sns:us-east-1:000000000000:news",
            }
        ],
    }
)


def done(**told: list[str]) -> str:
    """What the server answers."""
    names = ("made", "changed", "topics_made", "topics_changed")
    return json.dumps({name: told.get(name, []) for name in names}, separators=(",", ":"))


def load(operator: Operator, definitions: object) -> tuple[int, str]:
    status, text, _ = operator.ask("/api/definitions", json.dumps(definitions).encode(), JSON, "PUT")
    return status, text


def test_a_second_server_gets_the_queues_of_the_first() -> None:
    with Server() as first, Server() as second:
        one, other = Operator(first.admin()), Operator(second.admin())
        for name, attributes in (
            ("dead", {}),
            ("orders", {"VisibilityTimeout": "7", "RedrivePolicy": POLICY}),
            ("lanes.fifo", {"FifoQueue": "true", "ContentBasedDeduplication": "true"}),
        ):
            made = {"QueueName": name, "Attributes": attributes, "tags": {"team": name}}
            assert one.act("CreateQueue", made)[0] == 200
        assert one.act("CreateQueue", {"QueueName": "far"}, "?region=eu-west-1")[0] == 200
        definitions = one.get("/api/definitions")
        assert (definitions["elasticq"], "topics" in definitions) == (1, False)

        assert load(other, definitions) == (200, done(made=["dead", "far", "lanes.fifo", "orders"]))
        assert other.get("/api/definitions") == definitions

        definitions["queues"] = [each for each in definitions["queues"] if each["name"] == "orders"]
        definitions["queues"][0]["attributes"]["VisibilityTimeout"] = "9"
        assert load(other, definitions) == (200, done(changed=["orders"]))
        _, told = other.act("GetQueueAttributes", {"QueueUrl": "orders", "AttributeNames": ["All"]})
        assert told["Attributes"]["VisibilityTimeout"] == "9"
        assert json.loads(told["Attributes"]["RedrivePolicy"])["deadLetterTargetArn"] == DEAD


def make_topics(operator: Operator) -> None:
    """Two topics of one name in two regions, with queues, one of another account, and a subscription that waits."""
    operator.act("CreateQueue", {"QueueName": "all"})
    operator.act("CreateQueue", {"QueueName": "reds"}, "?account=111111111111")
    attributes = {"DisplayName": "News", "Policy": TOPIC_POLICY}
    made = {"Name": "news", "Attributes": attributes, "Tags": [{"Key": "team", "Value": "a"}]}
    arn = operator.act("CreateTopic", made)[1]["TopicArn"]
    operator.act("CreateTopic", {"Name": "news"}, "?region=eu-west-1")
    operator.act("CreateTopic", {"Name": "turns.fifo", "Attributes": {"FifoTopic": "true"}})
    body = {"FilterPolicyScope": "MessageBody", "FilterPolicy": '{"a": {"colour": ["red"]}}'}
    for account, queue, given in (
        ("000000000000", "all", {"RawMessageDelivery": "true"}),
        ("111111111111", "reds", body),
    ):
        endpoint = f"arn:aws:sqs:us-east-1:{account}:{queue}"
        asked = {"TopicArn": arn, "Protocol": "sqs", "Endpoint": endpoint, "Attributes": given}
        assert operator.act("Subscribe", asked, f"?account={account}")[0] == 200
    asked = {"TopicArn": arn, "Protocol": "http", "Endpoint": "http://127.0.0.1:9/never-confirmed"}
    assert operator.act("Subscribe", asked)[0] == 200


def test_a_second_server_gets_the_topics_of_the_first_with_their_subscriptions() -> None:
    with Server() as first, Server() as second:
        one, other = Operator(first.admin()), Operator(second.admin())
        make_topics(one)
        definitions = one.get("/api/definitions")
        assert [(each["name"], each["region"]) for each in definitions["topics"]] == [
            ("news", "eu-west-1"),
            ("news", "us-east-1"),
            ("turns.fifo", "us-east-1"),
        ]
        news = definitions["topics"][1]
        assert [each["endpoint"].rpartition(":")[2] for each in news["subscriptions"]] == ["all", "reds"]
        assert json.loads(news["attributes"]["Policy"]) == json.loads(TOPIC_POLICY)

        made = done(made=["all", "reds"], topics_made=["news", "news", "turns.fifo"])
        assert load(other, definitions) == (200, made)
        assert other.get("/api/definitions") == definitions
        arn = "arn:aws:sns:us-east-1:000000000000:news"
        for body in ('{"a": {"colour": "red"}}', '{"a": {"colour": "blue"}}'):
            assert other.act("Publish", {"TopicArn": arn, "Message": body})[0] == 200
        counts = {row["name"]: row["visible"] for row in other.get("/api/queues")["queues"]}
        assert counts == {"all": 2, "reds": 1}

        news["attributes"]["DisplayName"] = "Other news"
        news["tags"] = {"team": "b"}
        flat = {"FilterPolicyScope": "MessageAttributes", "FilterPolicy": '{"colour": ["red"]}'}
        news["subscriptions"][1]["attributes"] = flat
        del definitions["topics"][0], definitions["topics"][1]
        changed = done(changed=["all", "reds"], topics_changed=["news"])
        assert load(other, definitions) == (200, changed)
        again = other.get("/api/definitions")["topics"][1]
        assert (again["attributes"]["DisplayName"], again["tags"]) == ("Other news", {"team": "b"})
        assert again["subscriptions"][1]["attributes"] == flat

        assert load(other, one.get("/api/definitions"))[0] == 200
        assert other.get("/api/definitions") == one.get("/api/definitions")


@pytest.mark.parametrize(
    ("definitions", "told"),
    [
        ({}, "missing required field"),
        ({"elasticq": 2, "queues": []}, "format 1"),
        ({"elasticq": 1, "queues": [{"name": "bad name"}]}, "Can only include"),
        ({"elasticq": 1, "queues": [{"name": "x", "colour": "red"}]}, "unknown field"),
        ({"elasticq": 1, "queues": [{"name": "x", "account": "7"}]}, "12 digits"),
        ({"elasticq": 1, "queues": [], "topics": [{"name": "bad name"}]}, "Topic Name"),
        ({"elasticq": 1, "queues": [], "topics": [{"name": "x", "subscriptions": [{}]}]}, "missing required field"),
    ],
)
def test_what_are_no_definitions_is_refused(operator: Operator, definitions: object, told: str) -> None:
    status, text = load(operator, definitions)
    assert (status, told in text) == (400, True), text


def test_definitions_of_another_type_are_refused_as_a_web_page_could_send_them(operator: Operator) -> None:
    assert operator.ask("/api/definitions", b"{}", {"Content-Type": "text/plain"}, "PUT")[0] == 415


def test_a_definition_that_is_refused_ends_the_load_which_tells_how_far_it_got() -> None:
    with Server() as server:
        operator = Operator(server.admin())
        definitions = {
            "elasticq": 1,
            "queues": [{"name": "one"}, {"name": "not a name"}, {"name": "two"}],
            "topics": [{"name": "news"}],
        }
        status, text = load(operator, definitions)
        told = json.loads(text)
        assert status == 400
        error = told.pop("error")
        assert error.startswith("Queue not a name: Can only include")
        assert error.endswith("Before that 1 queues and 0 topics were created, 0 queues and 0 topics were updated.")
        assert told == json.loads(done(made=["one"]))
        assert [row["name"] for row in operator.get("/api/queues")["queues"]] == ["one"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"queues": [{"name": "one"}, {"nam": "two"}]},
        {"queues": [{"name": "one"}], "topics": [{"name": "news", "subscriptions": [{"protocol": "sqs"}]}]},
        {"queues": [{"name": "one"}], "more": []},
    ],
)
def test_what_is_no_definition_is_refused_before_anything_is_done(wrong: dict[str, object]) -> None:
    with Server() as server:
        operator = Operator(server.admin())
        status, text = load(operator, {"elasticq": 1, **wrong})
        assert status == 400
        assert "The definitions are malformed" in text
        assert operator.get("/api/queues")["queues"] == []


def test_what_is_exported_is_indented_json() -> None:
    with Server() as server:
        operator = Operator(server.admin())
        assert operator.ask("/api/definitions")[1] == '{\n  "elasticq": 1,\n  "queues": []\n}'
        make_topics(operator)
        text = operator.ask("/api/definitions")[1]
        assert text == json.dumps(json.loads(text), indent=2)


def test_export_keeps_few_objects_that_the_garbage_collector_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection visits them all in one turn of the loop."""
    counts: list[int] = []

    class Source:
        endpoint, region = "http://x", "us-east-1"

        def queues(self) -> Iterator[SimpleNamespace]:
            for at in range(2_000):
                if at in (0, 1_999):
                    gc.collect()
                    counts.append(len(gc.get_objects()))
                yield SimpleNamespace(account="0" * 12, name=f"q{at}")

        def topics(self) -> Iterator[object]:
            return iter(())

    async def ask(source: object, action: str, members: object, owner: str) -> dict[str, dict[str, str]]:
        return {"Attributes": {"DelaySeconds": action}, "Tags": {"team": action}}

    monkeypatch.setattr(definitions, "ask", ask)
    text = b"".join(asyncio.run(definitions.export(Source())))
    assert len(json.loads(text)["queues"]) == 2_000
    before, after = counts
    assert after - before < 1_000
