"""Definitions of queues: what one server tells another one makes."""

import json

import pytest

from tests.admin.operator import JSON, Operator
from tests.server.process import Server

DEAD = "arn:aws:sqs:us-east-1:000000000000:dead"
POLICY = json.dumps({"deadLetterTargetArn": DEAD, "maxReceiveCount": 3})


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
        assert definitions["elasticq"] == 1

        assert load(other, definitions) == (200, '{"made":["dead","far","lanes.fifo","orders"],"changed":[]}')
        assert other.get("/api/definitions") == definitions

        definitions["queues"] = [each for each in definitions["queues"] if each["name"] == "orders"]
        definitions["queues"][0]["attributes"]["VisibilityTimeout"] = "9"
        assert load(other, definitions) == (200, '{"made":[],"changed":["orders"]}')
        _, told = other.act("GetQueueAttributes", {"QueueUrl": "orders", "AttributeNames": ["All"]})
        assert told["Attributes"]["VisibilityTimeout"] == "9"
        assert json.loads(told["Attributes"]["RedrivePolicy"])["deadLetterTargetArn"] == DEAD


@pytest.mark.parametrize(
    ("definitions", "told"),
    [
        ({}, "missing required field"),
        ({"elasticq": 2, "queues": []}, "format 1"),
        ({"elasticq": 1, "queues": [{"name": "bad name"}]}, "Can only include"),
        ({"elasticq": 1, "queues": [{"name": "x", "colour": "red"}]}, "unknown field"),
        ({"elasticq": 1, "queues": [{"name": "x", "account": "7"}]}, "12 digits"),
    ],
)
def test_what_are_no_definitions_is_refused(operator: Operator, definitions: object, told: str) -> None:
    status, text = load(operator, definitions)
    assert (status, told in text) == (400, True), text


def test_definitions_of_another_type_are_refused_as_a_web_page_could_send_them(operator: Operator) -> None:
    assert operator.ask("/api/definitions", b"{}", {"Content-Type": "text/plain"}, "PUT")[0] == 415
