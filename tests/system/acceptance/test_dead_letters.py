"""boto3 against a real process: tags, permissions, dead letters and move tasks as programs use them."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

PATIENCE_S = 20


def arn_of(sqs: Any, url: str) -> str:
    return str(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"])


def waiting_for(condition: Callable[[], Any]) -> Any:
    """What ``condition`` gives once it gives something true."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end_s, "it did not come"


def receive(sqs: Any, url: str, **options: Any) -> list[dict[str, Any]]:
    return list(sqs.receive_message(QueueUrl=url, **options).get("Messages", []))


def count(sqs: Any, url: str) -> int:
    names = ["ApproximateNumberOfMessages"]
    return int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"][names[0]])


@pytest.fixture(params=["", ".fifo"], ids=["standard", "fifo"])
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def queues(sqs: Any, queue_name: str, suffix: str) -> tuple[str, str]:
    """(source, dead-letter queue)."""
    type_ = {"FifoQueue": "true", "ContentBasedDeduplication": "true"} if suffix else {}
    dead = sqs.create_queue(QueueName=f"{queue_name}-dead{suffix}", Attributes=type_)["QueueUrl"]
    policy = json.dumps({"deadLetterTargetArn": arn_of(sqs, dead), "maxReceiveCount": 1})
    attributes = type_ | {"RedrivePolicy": policy, "VisibilityTimeout": "0"}
    source = sqs.create_queue(QueueName=f"{queue_name}{suffix}", Attributes=attributes)["QueueUrl"]
    return source, dead


def die(sqs: Any, source: str, bodies: list[str]) -> list[str]:
    """Messages become dead letters; their ids."""
    group = {"MessageGroupId": "g"} if source.endswith(".fifo") else {}
    sent = [sqs.send_message(QueueUrl=source, MessageBody=body, **group)["MessageId"] for body in bodies]
    for _ in bodies:
        receive(sqs, source, MaxNumberOfMessages=10)
    assert receive(sqs, source, MaxNumberOfMessages=10) == []
    return sent


def test_tags_round(sqs: Any, queue_url: str) -> None:
    assert "Tags" not in sqs.list_queue_tags(QueueUrl=queue_url)
    sqs.tag_queue(QueueUrl=queue_url, Tags={"team": "blue", "empty": ""})
    sqs.tag_queue(QueueUrl=queue_url, Tags={"team": "red"})
    assert sqs.list_queue_tags(QueueUrl=queue_url)["Tags"] == {"team": "red", "empty": ""}
    sqs.untag_queue(QueueUrl=queue_url, TagKeys=["empty", "unknown"])
    assert sqs.list_queue_tags(QueueUrl=queue_url)["Tags"] == {"team": "red"}


def test_permissions_round(sqs: Any, queue_url: str) -> None:
    sqs.add_permission(QueueUrl=queue_url, Label="a", AWSAccountIds=["111111111111"], Actions=["ReceiveMessage"])
    shown = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["Policy"])["Attributes"]["Policy"]
    arn = arn_of(sqs, queue_url)
    assert json.loads(shown) == {
        "Version": "2008-10-17",
        "Id": f"{arn}/SQSDefaultPolicy",
        "Statement": [
            {
                "Sid": "a",
                "Effect": "Allow",
                "Principal": {"AWS": "arn:aws:iam::111111111111:root"},
                "Action": "SQS:ReceiveMessage",
                "Resource": arn,
            }
        ],
    }
    sqs.remove_permission(QueueUrl=queue_url, Label="a")
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["Policy"])


def test_dead_letter_keeps_its_id_and_names_its_source(sqs: Any, queues: tuple[str, str]) -> None:
    source, dead = queues
    (message_id,) = die(sqs, source, ["bad"])
    (message,) = receive(sqs, dead, MessageSystemAttributeNames=["All"])
    assert (message["MessageId"], message["Body"]) == (message_id, "bad")
    assert message["Attributes"]["DeadLetterQueueSourceArn"] == arn_of(sqs, source)
    assert message["Attributes"]["ApproximateReceiveCount"] == "2"


def test_sources_of_a_dead_letter_queue_are_paged(sqs: Any, queues: tuple[str, str]) -> None:
    source, dead = queues
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [source]
    policy = sqs.get_queue_attributes(QueueUrl=source, AttributeNames=["RedrivePolicy"])["Attributes"]
    stem, dot, type_ = source.partition(".fifo")
    name = stem.rsplit("/", 1)[1]
    attributes = policy | ({"FifoQueue": "true"} if dot else {})
    more = [sqs.create_queue(QueueName=f"{name}-{n}{dot}{type_}", Attributes=attributes)["QueueUrl"] for n in range(4)]
    pages = sqs.get_paginator("list_dead_letter_source_queues").paginate(
        QueueUrl=dead, PaginationConfig={"PageSize": 2}
    )
    found = [page["queueUrls"] for page in pages]
    assert sorted(url for page in found for url in page) == sorted([source, *more])
    assert [len(page) for page in found] == [2, 2, 1]


def test_task_moves_dead_letters_back_to_their_source(sqs: Any, queues: tuple[str, str]) -> None:
    source, dead = queues
    bodies = [f"message {n}" for n in range(5)]
    die(sqs, source, bodies)
    assert count(sqs, dead) == 5
    sqs.set_queue_attributes(QueueUrl=source, Attributes={"VisibilityTimeout": "30"})
    arn = arn_of(sqs, dead)
    assert sqs.start_message_move_task(SourceArn=arn)["TaskHandle"]

    def ended() -> Any:
        (task,) = sqs.list_message_move_tasks(SourceArn=arn)["Results"]
        return task if task["Status"] != "RUNNING" else None

    task = waiting_for(ended)
    assert task["StartedTimestamp"] > 1_600_000_000_000
    del task["StartedTimestamp"]
    assert task == {
        "Status": "COMPLETED",
        "SourceArn": arn,
        "ApproximateNumberOfMessagesMoved": 5,
        "ApproximateNumberOfMessagesToMove": 5,
    }
    assert count(sqs, dead) == 0
    found = receive(sqs, source, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"])
    assert [message["Body"] for message in found] == bodies
    assert all("DeadLetterQueueSourceArn" not in message["Attributes"] for message in found)


def test_slow_task_is_shown_and_cancelled(sqs: Any, queues: tuple[str, str]) -> None:
    source, dead = queues
    die(sqs, source, [f"message {n}" for n in range(5)])
    arn = arn_of(sqs, dead)
    handle = sqs.start_message_move_task(
        SourceArn=arn, DestinationArn=arn_of(sqs, source), MaxNumberOfMessagesPerSecond=1
    )["TaskHandle"]
    (task,) = sqs.list_message_move_tasks(SourceArn=arn, MaxResults=10)["Results"]
    assert (task["TaskHandle"], task["Status"], task["MaxNumberOfMessagesPerSecond"]) == (handle, "RUNNING", 1)
    with pytest.raises(ClientError) as second:
        sqs.start_message_move_task(SourceArn=arn)
    assert second.value.response["Error"]["Code"] == "InvalidParameterValue"
    assert sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"] <= 2

    def is_cancelled() -> bool:
        (task,) = sqs.list_message_move_tasks(SourceArn=arn)["Results"]
        return bool(task["Status"] == "CANCELLED")

    waiting_for(is_cancelled)
    assert count(sqs, dead) >= 3


def test_missing_resources_are_404(sqs: Any, queue_url: str) -> None:
    arn = arn_of(sqs, queue_url) + "x"
    with pytest.raises(sqs.exceptions.ResourceNotFoundException) as caught:
        sqs.start_message_move_task(SourceArn=arn)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def test_redrive_policies_read_back_exactly(sqs: Any, queues: tuple[str, str]) -> None:
    source, dead = queues
    allow = json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [arn_of(sqs, source)]}, indent=2)
    policy = json.dumps({"maxReceiveCount": 3, "deadLetterTargetArn": arn_of(sqs, dead)}, indent=1)
    sqs.set_queue_attributes(QueueUrl=dead, Attributes={"RedriveAllowPolicy": allow})
    sqs.set_queue_attributes(QueueUrl=source, Attributes={"RedrivePolicy": policy})
    for url, name, value in ((dead, "RedriveAllowPolicy", allow), (source, "RedrivePolicy", policy)):
        assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"][name] == value
        sqs.set_queue_attributes(QueueUrl=url, Attributes={name: ""})
        assert name not in sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]


def test_queue_without_tasks_lists_none_of_them(sqs: Any, queues: tuple[str, str]) -> None:
    source, _ = queues
    arn = sqs.get_queue_attributes(QueueUrl=source, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    assert sqs.list_message_move_tasks(SourceArn=arn)["Results"] == []
