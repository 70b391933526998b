"""ElasticqOrder = priority by both protocols on a real process: boto3 passes all of it on unchecked."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from elasticq.client import UNSIGNED, Sqs
from tests.system.acceptance.raw import Endpoint

ORDER = {"ElasticqOrder": "priority"}


@pytest.fixture
def url(sqs: Any, queue_name: str) -> str:
    made: str = sqs.create_queue(QueueName=queue_name, Attributes={**ORDER, "ElasticqDefaultPriority": "5"})["QueueUrl"]
    return made


def attribute(value: str, data_type: str = "Number") -> dict[str, dict[str, str]]:
    return {"ElasticqPriority": {"DataType": data_type, "StringValue": value}}


def bodies(sqs: Any, url: str) -> list[str]:
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
    return [message["Body"] for message in received.get("Messages", [])]


def test_boto3_receives_the_lowest_number_first(sqs: Any, url: str) -> None:
    for body, value in (("low", "9"), ("high", "-1")):
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attribute(value))
    sqs.send_message(QueueUrl=url, MessageBody="default")
    answer = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0, MessageAttributeNames=["All"]
    )
    assert [message["Body"] for message in answer["Messages"]] == ["high", "default", "low"]
    assert answer["Messages"][0]["MessageAttributes"] == attribute("-1")  # boto3 has compared the digests
    shown = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (shown["ElasticqOrder"], shown["ElasticqDefaultPriority"]) == ("priority", "5")


def test_wrong_priorities_are_errors_of_aws_and_fail_entries_one_by_one(sqs: Any, url: str) -> None:
    for wrong in (attribute("1.5"), attribute("1", "String"), attribute(str(2**63))):
        with pytest.raises(ClientError, match="ElasticqPriority") as caught:
            sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=wrong)
        assert caught.value.response["Error"]["Code"] == "InvalidParameterValue"
        entries = [
            {"Id": "bad", "MessageBody": "x", "MessageAttributes": wrong},
            {"Id": "good", "MessageBody": "y", "MessageAttributes": attribute("1")},
        ]
        answer = sqs.send_message_batch(QueueUrl=url, Entries=entries)
        assert [entry["Id"] for entry in answer["Successful"]] == ["good"]
        assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [("bad", "InvalidParameterValue")]
    assert bodies(sqs, url) == ["y", "y", "y"]


def test_order_cannot_be_changed(sqs: Any, url: str, queue_name: str) -> None:
    with pytest.raises(ClientError) as caught:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"ElasticqOrder": "standard"})
    assert caught.value.response["Error"]["Code"] == "InvalidAttributeValue"
    with pytest.raises(sqs.exceptions.QueueNameExists):
        sqs.create_queue(QueueName=queue_name, Attributes={**ORDER, "ElasticqDefaultPriority": "6"})
    with pytest.raises(ClientError):
        sqs.create_queue(QueueName=f"{queue_name}.fifo", Attributes={**ORDER, "FifoQueue": "true"})


def test_both_protocols_change_priorities(sqs: Any, url: str, endpoint: Endpoint) -> None:
    ids = [sqs.send_message(QueueUrl=url, MessageBody=body)["MessageId"] for body in "abc"]
    members = {"QueueUrl": url, "MessageIds": [ids[2], "unknown"], "Priority": -(2**63)}
    answer = endpoint.json("ElasticqChangePriority", members)
    assert (answer.status, answer.document) == (200, {"Changed": [ids[2]], "NotFound": ["unknown"]})
    form = {"QueueUrl": url, "MessageId.1": ids[0], "MessageId.2": ids[2], "Priority": str(2**63 - 1)}
    shown = endpoint.query("ElasticqChangePriority", form).xml["ElasticqChangePriorityResult"]
    assert shown["Changed"] == [ids[0], ids[2]]
    assert bodies(sqs, url) == ["b", "a", "c"]
    refused = endpoint.json("ElasticqChangePriority", {**members, "Priority": 2**63})
    assert (refused.status, refused.document["__type"]) == (400, "com.amazonaws.sqs#InvalidParameterValueException")


def test_light_client_changes_priorities(sqs: Any, url: str, endpoint: Endpoint) -> None:
    ids = [sqs.send_message(QueueUrl=url, MessageBody=body)["MessageId"] for body in "ab"]
    with Sqs(endpoint.url, credentials=UNSIGNED) as light:
        answer = light.change_priority(QueueUrl=url, MessageIds=ids[1:], Priority=1)
    assert (answer["Changed"], answer["NotFound"]) == (ids[1:], [])
    assert bodies(sqs, url) == ["b", "a"]
