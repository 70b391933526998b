"""The admin port's API of queues, on a real server."""

import http.client
import json
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator

from elasticq.admin import openapi
from tests.admin.operator import JSON, Operator
from tests.admin.page.browser import page
from tests.system.cluster.cluster import until

API = openapi.document()


def described(path: str, status: str = "200", method: str = "get") -> Draft202012Validator:
    """Return a validator of a route's answers, by the schema that the OpenAPI document has for them."""
    content = API["paths"][path][method]["responses"][status]["content"]["application/json"]
    return Draft202012Validator({**content["schema"], "components": API["components"]})


def with_queue(operator: Operator, name: str, *bodies: str) -> str:
    url: str = operator.act("CreateQueue", {"QueueName": name})[1]["QueueUrl"]
    for body in bodies:
        assert operator.act("SendMessage", {"QueueUrl": url, "MessageBody": body})[0] == 200
    return url


def test_queues_are_listed_with_their_counts(operator: Operator) -> None:
    with_queue(operator, "listed-1", "a", "b")
    url = with_queue(operator, "listed-2", "c")
    operator.act("ReceiveMessage", {"QueueUrl": url})
    rows = operator.get("/api/queues?prefix=listed")["queues"]
    assert [(row["name"], row["visible"], row["in_flight"]) for row in rows] == [("listed-1", 2, 0), ("listed-2", 0, 1)]
    assert rows[0]["oldest_age_ms"] >= 0
    assert operator.get("/api/queues?prefix=no-such-queue") == {"queues": []}


def test_answers_are_valid_by_the_openapi_document(operator: Operator) -> None:
    with_queue(operator, "described", "a")
    operator.act("ReceiveMessage", {"QueueUrl": "described"})
    for path in ("/api/queues", "/api/history", "/api/waiting", "/api/tasks", "/api/definitions", "/cluster"):
        described(path).validate(operator.get(path))
    described("/cluster/events").validate(operator.get("/cluster/events"))
    for path in ("/api/in-flight", "/api/group-order"):
        described(path).validate(operator.get(f"{path}?queue=described"))
        for status, query in (("404", "queue=no-such-queue"), ("400", ""), ("400", "queue=described&account=1")):
            found, text, _ = operator.ask(f"{path}?{query}")
            assert str(found) == status
            described(path, status).validate(json.loads(text))
    described("/api/actions/{action}", "400", "post").validate(operator.act("PurgeQueue", {})[1])


def test_definitions_of_all_kinds_are_valid_by_the_openapi_document(operator: Operator) -> None:
    with_queue(operator, "defined")
    arn = operator.act("CreateTopic", {"Name": "defined"})[1]["TopicArn"]
    queue_arn = arn.replace(":sns:", ":sqs:")
    operator.act("Subscribe", {"TopicArn": arn, "Protocol": "sqs", "Endpoint": queue_arn})
    told = operator.get("/api/definitions")
    described("/api/definitions").validate(told)
    assert any(topic["subscriptions"] for topic in told["topics"])
    for item in (told["queues"][0], told["topics"][0], told["topics"][0]["subscriptions"][0]):
        item["unknown"] = ""
        assert not described("/api/definitions").is_valid(told)
        del item["unknown"]


def test_what_is_in_flight_is_told_with_its_times(operator: Operator) -> None:
    url = with_queue(operator, "in-flight", "a", "b")
    assert operator.get("/api/in-flight?queue=in-flight")["messages"] == []
    received = operator.act("ReceiveMessage", {"QueueUrl": url, "VisibilityTimeout": 60, "AttributeNames": ["All"]})[1]
    told = operator.get("/api/in-flight?queue=in-flight")
    (message,) = told["messages"]
    assert (told["in_flight"], told["looked_at"], message["receive_count"]) == (1, 1, 1)
    attributes = received["Messages"][0]["Attributes"]
    assert told["oldest_ms"] == message["received_ms"] == int(attributes["ApproximateFirstReceiveTimestamp"])
    assert told["next_ms"] == message["until_ms"] == message["received_ms"] + 60_000


def test_the_order_within_groups_is_told(operator: Operator) -> None:
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "60"}
    url = operator.act("CreateQueue", {"QueueName": "ordered.fifo", "Attributes": attributes})[1]["QueueUrl"]
    for body, group in (("1", "a"), ("2", "a"), ("3", "b")):
        operator.act("SendMessage", {"QueueUrl": url, "MessageBody": body, "MessageGroupId": group})
    operator.act("ReceiveMessage", {"QueueUrl": url})
    told = operator.get("/api/group-order?queue=ordered.fifo")
    described("/api/group-order").validate(told)
    (blocked, free) = told["groups"]
    assert [each["state"] for each in blocked["messages"]] == ["inflight", "waits"]
    assert blocked["blocked_by"] == blocked["messages"][0]["sequence"]
    assert 0 < blocked["blocked_until_ms"] - told["time_ms"] <= 60_000
    assert (free["group"], free["blocked_by"], told["count"]) == ("b", None, 2)
    (found,) = operator.get("/api/group-order?queue=ordered.fifo&group=b")["groups"]
    assert found == free
    with_queue(operator, "unordered", "x")
    assert operator.get("/api/group-order?queue=unordered")["groups"] == []


def test_a_move_is_a_task_until_it_is_over(operator: Operator) -> None:
    with_queue(operator, "tasks-dead", "1", "2", "3")
    with_queue(operator, "tasks-to")
    prefix = "arn:aws:sqs:us-east-1:000000000000:"
    policy = json.dumps({"deadLetterTargetArn": f"{prefix}tasks-dead", "maxReceiveCount": "1"})
    operator.act("CreateQueue", {"QueueName": "tasks-source", "Attributes": {"RedrivePolicy": policy}})
    given = {"SourceArn": f"{prefix}tasks-dead", "DestinationArn": f"{prefix}tasks-to"}
    handle = operator.act("StartMessageMoveTask", {**given, "MaxNumberOfMessagesPerSecond": 1})[1]["TaskHandle"]

    def moves() -> list[dict[str, Any]]:
        told = operator.get("/api/tasks")
        described("/api/tasks").validate(told)
        return [each for each in told["tasks"] if each["name"] == "tasks-dead"]

    (task,) = moves()
    assert (task["kind"], task["to"], task["rate"]) == ("move", f"{prefix}tasks-to", 1)
    assert task["done"] + task["left"] == 3
    text = page(operator, "/cluster")
    assert ">tasks-dead</a> move to arn:aws:sqs:us-east-1:000000000000:tasks-to, 1 a second at most" in text
    assert re.search(r"\d of 3 moved <progress max=\"3\" value=\"\d\"", text)
    operator.act("CancelMessageMoveTask", {"TaskHandle": handle})
    until(lambda: not moves(), "a move that is over")


def test_rates_follow_what_is_sent(operator: Operator) -> None:
    url = with_queue(operator, "moving")

    def moved() -> bool:
        operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "again"})
        return sum(operator.get("/api/history?queue=moving&window_s=60")["sent"]) > 0

    until(moved, "a chart that moves")
    assert operator.get("/api/queues?prefix=moving")["queues"][0]["sent_per_s"] > 0


@pytest.mark.parametrize(
    "query",
    ["window_s=61", "window_s=x", "window_s=-60", "queue=a&account=x", "region=UPPER", "window_s=" + "9" * 99],
)
def test_rates_of_no_window_are_refused(operator: Operator, query: str) -> None:
    assert operator.ask(f"/api/history?{query}")[0] == 400


def test_a_stream_tells_the_counts_again_and_again(operator: Operator) -> None:
    url = with_queue(operator, "streamed", "a")
    parts = urlsplit(operator.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request("GET", "/api/live?queue=streamed")
    answer = connection.getresponse()
    assert answer.headers["Content-Type"] == "text/event-stream"

    def event() -> dict[str, Any]:
        line = answer.readline()
        while not line.startswith(b"data: "):
            line = answer.readline()
        told: dict[str, Any] = json.loads(line[6:])
        return told

    assert event()["visible"] == 1
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "b"})
    assert event()["visible"] == 2
    connection.close()


def test_purges_and_deletes_are_events(operator: Operator) -> None:
    url = with_queue(operator, "purged", "a")
    operator.act("PurgeQueue", {"QueueUrl": url})
    operator.act("DeleteQueue", {"QueueUrl": url})
    told = [each for each in operator.get("/cluster/events")["events"] if "purged was" in each["text"]]
    assert [each["event"] for each in told][:2] == ["queue_deleted", "queue_purged"]
    assert "by operator" in told[0]["text"]


def test_a_body_beyond_the_bound_is_refused_before_it_is_read(operator: Operator) -> None:
    status, _, _ = operator.ask("/api/actions/SendMessage", b"x" * 100, {**JSON, "Content-Length": str(5 * 1_048_576)})
    assert status == 413


def test_the_longest_message_can_be_sent(operator: Operator) -> None:
    url = with_queue(operator, "long")
    status, sent = operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "x" * 1_048_576})
    assert status == 200, sent


def test_one_queue_is_told_apart_from_one_of_the_same_name_in_another_region(operator: Operator) -> None:
    for region in ("", "eu-west-1"):
        query = f"?region={region}" if region else ""
        url = operator.act("CreateQueue", {"QueueName": "same-name"}, query)[1]["QueueUrl"]
    operator.act("SendMessage", {"QueueUrl": url, "MessageBody": "far"}, "?region=eu-west-1")
    far = operator.ask("/queues/000000000000/same-name?region=eu-west-1")[1]
    near = operator.ask("/queues/000000000000/same-name")[1]
    assert ("<div><dt>visible</dt><dd>1</dd>" in far, "<div><dt>visible</dt><dd>0</dd>" in near) == (True, True)
    assert operator.ask("/queues/000000000001/same-name")[0] == 404


def test_head_of_a_stream_is_refused(operator: Operator) -> None:
    """A stream has no end, so its head would keep the connection and a place for ever."""
    assert operator.ask("/api/live", method="HEAD")[0] == 405
