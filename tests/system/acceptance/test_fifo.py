"""boto3, unmodified, against a real process: what a program does with a FIFO queue."""

import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.system.acceptance.raw import Endpoint


@pytest.fixture
def fifo_url(sqs: Any, queue_name: str) -> str:
    created = sqs.create_queue(QueueName=f"{queue_name}.fifo", Attributes={"FifoQueue": "true"})
    return str(created["QueueUrl"])


def send(sqs: Any, url: str, body: str, group: str = "g", dedup: str | None = None) -> dict[str, Any]:
    return dict(
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId=group, MessageDeduplicationId=dedup or body)
    )


def receive(sqs: Any, url: str, count: int = 10, **options: Any) -> list[dict[str, Any]]:
    answer = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=count, MessageSystemAttributeNames=["All"], **options
    )
    return list(answer.get("Messages", []))


def test_message_goes_out_with_group_id_and_number(sqs: Any, fifo_url: str) -> None:
    sent = send(sqs, fifo_url, "hello", "tenant", "once")
    (message,) = receive(sqs, fifo_url)
    attributes = message["Attributes"]
    assert message["MessageId"] == sent["MessageId"]
    assert attributes["SequenceNumber"] == sent["SequenceNumber"]
    assert (attributes["MessageGroupId"], attributes["MessageDeduplicationId"]) == ("tenant", "once")


def test_batch_answers_numbers_and_swallows_duplicates(sqs: Any, fifo_url: str) -> None:
    entries = [
        {"Id": str(at), "MessageBody": f"m{at}", "MessageGroupId": "g", "MessageDeduplicationId": str(at % 3)}
        for at in range(5)
    ]
    sent = sqs.send_message_batch(QueueUrl=fifo_url, Entries=entries)["Successful"]
    numbers = [entry["SequenceNumber"] for entry in sent]
    assert numbers[:3] == sorted(set(numbers))
    assert numbers[3:] == numbers[:2]
    assert [message["Body"] for message in receive(sqs, fifo_url)] == ["m0", "m1", "m2"]


def test_delete_of_the_blocking_message_wakes_a_waiting_receive(sqs: Any, fifo_url: str) -> None:
    send(sqs, fifo_url, "first")
    send(sqs, fifo_url, "second")
    (first,) = receive(sqs, fifo_url, 1)
    assert receive(sqs, fifo_url) == []
    bodies: list[str] = []
    waiting = threading.Thread(
        target=lambda: bodies.extend(x["Body"] for x in receive(sqs, fifo_url, WaitTimeSeconds=20))
    )
    waiting.start()
    sqs.delete_message(QueueUrl=fifo_url, ReceiptHandle=first["ReceiptHandle"])
    waiting.join(10)
    assert bodies == ["second"]


def test_attempt_id_gets_the_same_messages_again(sqs: Any, fifo_url: str) -> None:
    send(sqs, fifo_url, "first")
    (first,) = receive(sqs, fifo_url, ReceiveRequestAttemptId="a")
    (again,) = receive(sqs, fifo_url, ReceiveRequestAttemptId="a")
    assert again == first
    sqs.delete_message(QueueUrl=fifo_url, ReceiptHandle=first["ReceiptHandle"])
    with pytest.raises(ClientError, match="receive call is not retryable"):
        receive(sqs, fifo_url, ReceiveRequestAttemptId="a")


def test_expired_handle_is_refused(sqs: Any, fifo_url: str) -> None:
    send(sqs, fifo_url, "first")
    (first,) = receive(sqs, fifo_url, VisibilityTimeout=0)
    with pytest.raises(ClientError, match=r"Reason: The receipt handle has expired\."):
        sqs.delete_message(QueueUrl=fifo_url, ReceiptHandle=first["ReceiptHandle"])
    entries = [{"Id": "a", "ReceiptHandle": first["ReceiptHandle"]}]
    (failure,) = sqs.delete_message_batch(QueueUrl=fifo_url, Entries=entries)["Failed"]
    assert (failure["Code"], failure["SenderFault"]) == ("ReceiptHandleIsInvalid", True)


def test_query_protocol_speaks_of_groups_and_numbers(sqs: Any, endpoint: Endpoint, fifo_url: str) -> None:
    form = {
        "QueueUrl": fifo_url,
        "MessageBody": "by form",
        "MessageGroupId": "g",
        "MessageDeduplicationId": "d",
    }
    answer = endpoint.query("SendMessage", form)
    assert answer.status == 200
    (message,) = receive(sqs, fifo_url)
    assert f"<SequenceNumber>{message['Attributes']['SequenceNumber']}</SequenceNumber>" in answer.body.decode()


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("MessageGroupId", "The request must contain the parameter MessageGroupId."),
        (
            "MessageDeduplicationId",
            "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided "
            "explicitly",
        ),
    ],
)
@pytest.mark.parametrize("protocol", ["json", "query"])
def test_batch_with_an_entry_that_has_no_place_fails_as_a_whole(
    endpoint: Endpoint, fifo_url: str, protocol: str, missing: str, message: str
) -> None:
    entries = [
        {"Id": str(at), "MessageBody": "m", "MessageGroupId": "g", "MessageDeduplicationId": str(at)} for at in range(2)
    ]
    del entries[1][missing]
    answer = endpoint.call(protocol, "SendMessageBatch", {"QueueUrl": fifo_url, "Entries": entries})
    assert answer.error == (400, "InvalidParameterValue", message)
    assert endpoint.json("ReceiveMessage", {"QueueUrl": fifo_url}).document == {}
