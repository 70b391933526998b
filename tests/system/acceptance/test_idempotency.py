"""ElasticqIdempotencyWindow by both protocols on a real process."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.system.acceptance.raw import Endpoint

WINDOW = "ElasticqIdempotencyWindow"


def test_boto3_sends_once_by_its_id(sqs: Any, queue_name: str) -> None:
    url = sqs.create_queue(QueueName=queue_name, Attributes={WINDOW: "60"})["QueueUrl"]
    sent = [sqs.send_message(QueueUrl=url, MessageBody=body, MessageDeduplicationId="a") for body in "xy"]
    entries = [{"Id": each, "MessageBody": each, "MessageDeduplicationId": each} for each in "abc"]
    batch = sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]
    assert sent[0]["MessageId"] == sent[1]["MessageId"] == batch[0]["MessageId"]
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])["Messages"]
    assert [message["Body"] for message in messages] == ["x", "b", "c"]
    assert messages[0]["Attributes"]["MessageDeduplicationId"] == "a"
    assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"][WINDOW] == "60"


def test_query_protocol_has_window_and_id(endpoint: Endpoint, sqs: Any, queue_url: str) -> None:
    form = {"QueueUrl": queue_url, "Attribute.1.Name": WINDOW, "Attribute.1.Value": "60"}
    assert endpoint.query("SetQueueAttributes", form).status == 200
    send = {"QueueUrl": queue_url, "MessageBody": "x", "MessageDeduplicationId": "a"}
    first, again = (endpoint.query("SendMessage", send).xml["SendMessageResult"] for _ in range(2))
    assert first["MessageId"] == again["MessageId"]
    assert "SequenceNumber" not in first
    shown = endpoint.query("GetQueueAttributes", {"QueueUrl": queue_url, "AttributeName.1": WINDOW})
    assert shown.xml["GetQueueAttributesResult"]["Attribute"] == {"Name": WINDOW, "Value": "60"}
    assert sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["ApproximateNumberOfMessages"])[
        "Attributes"
    ] == {"ApproximateNumberOfMessages": "1"}


def test_without_the_window_the_error_is_awss(sqs: Any, queue_url: str) -> None:
    with pytest.raises(ClientError, match="The request includes a parameter that is not valid for this queue type"):
        sqs.send_message(QueueUrl=queue_url, MessageBody="x", MessageDeduplicationId="a")
    assert WINDOW not in sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])["Attributes"]
