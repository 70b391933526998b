"""Groups that share a queue, set and changed through boto3 on a real process."""

import json
from collections import Counter
from typing import Any

import pytest
from botocore.exceptions import ClientError

SHARED = {"ElasticqFairness": "weighted", "ElasticqGroupWeights": '{"a": 3}'}


@pytest.fixture
def url(sqs: Any, queue_name: str) -> str:
    made: str = sqs.create_queue(QueueName=queue_name, Attributes=SHARED)["QueueUrl"]
    for group in ("a", "b"):
        entries = [{"Id": str(at), "MessageBody": group, "MessageGroupId": group} for at in range(10)]
        sqs.send_message_batch(QueueUrl=made, Entries=entries)
    return made


def test_groups_get_their_shares_and_limits_hold(sqs: Any, url: str) -> None:
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=8)["Messages"]
    assert Counter(message["Body"] for message in received) == {"a": 6, "b": 2}
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"ElasticqMaxInFlightPerGroup": "4"})
    more = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert Counter(message["Body"] for message in more) == {"b": 2}
    for message in received:
        handle = message["ReceiptHandle"]
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    again = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert Counter(message["Body"] for message in again) == {"a": 4, "b": 2}
    shown = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert {name: shown[name] for name in SHARED} == SHARED


@pytest.mark.parametrize(
    "wrong",
    [{"ElasticqFairness": "lottery"}, {"ElasticqGroupWeights": json.dumps({"a": -1})}, {"ElasticqGroupWeights": "3:1"}],
)
def test_wrong_attributes_are_errors_of_aws(sqs: Any, url: str, wrong: dict[str, str]) -> None:
    with pytest.raises(ClientError, match=next(iter(wrong))) as caught:
        sqs.set_queue_attributes(QueueUrl=url, Attributes=wrong)
    assert caught.value.response["Error"]["Code"] == "InvalidAttributeValue"
