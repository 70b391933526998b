"""The AWS command line, unmodified, against a real process."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.system.aws import run_aws

Aws = Callable[..., Any]


@pytest.fixture
def aws(server: str, tmp_path: Path) -> Aws:
    """Runs ``aws sqs …`` with an empty home; gives its JSON answer, or {} when it prints nothing."""
    return partial(run_aws, tmp_path, server, "sqs")


def test_create_send_receive_and_delete(aws: Aws, queue_name: str) -> None:
    url = aws("create-queue", "--queue-name", queue_name)["QueueUrl"]
    assert aws("get-queue-url", "--queue-name", queue_name)["QueueUrl"] == url
    attribute = "colour={DataType=String,StringValue=green}"
    sent = aws(
        "send-message", "--queue-url", url, "--message-body", "from the shell", "--message-attributes", attribute
    )
    answer = aws("receive-message", "--queue-url", url, "--wait-time-seconds", "5", "--message-attribute-names", "All")
    (message,) = answer["Messages"]
    assert (message["MessageId"], message["Body"]) == (sent["MessageId"], "from the shell")
    assert message["MessageAttributes"] == {"colour": {"DataType": "String", "StringValue": "green"}}
    handle = ("--receipt-handle", message["ReceiptHandle"])
    assert aws("change-message-visibility", "--queue-url", url, *handle, "--visibility-timeout", "60") == {}
    assert aws("delete-message", "--queue-url", url, *handle) == {}
    counters = aws("get-queue-attributes", "--queue-url", url, "--attribute-names", "All")["Attributes"]
    assert counters["ApproximateNumberOfMessages"] == counters["ApproximateNumberOfMessagesNotVisible"] == "0"
    assert aws("delete-queue", "--queue-url", url) == {}


def test_batch_and_purge(aws: Aws, queue_name: str) -> None:
    url = aws("create-queue", "--queue-name", queue_name, "--attributes", "VisibilityTimeout=5")["QueueUrl"]
    entries = json.dumps([{"Id": str(number), "MessageBody": f"body {number}"} for number in range(3)])
    assert len(aws("send-message-batch", "--queue-url", url, "--entries", entries)["Successful"]) == 3
    assert aws("purge-queue", "--queue-url", url) == {}
    assert aws("receive-message", "--queue-url", url) == {}
    assert url in aws("list-queues", "--queue-name-prefix", queue_name)["QueueUrls"]
