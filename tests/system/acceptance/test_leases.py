"""Leases through unmodified boto3 and by both protocols against a real process."""

import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError

from elasticq import __version__
from tests.system.acceptance.raw import Endpoint

PROTOCOLS = ("json", "query")


def read(sqs: Any, url: str, attempt_id: str, count: int = 10, **options: Any) -> list[dict[str, Any]]:
    answer = sqs.receive_message(
        QueueUrl=url,
        ReceiveRequestAttemptId=attempt_id,
        MaxNumberOfMessages=count,
        **{"VisibilityTimeout": 600, **options},
    )
    return list(answer.get("Messages", []))


def fill(sqs: Any, url: str, count: int, **options: str) -> None:
    for number in range(count):
        sqs.send_message(QueueUrl=url, MessageBody=str(number), **options)


def is_expired(refused: Any) -> bool:
    error = refused.value.response
    return (error["Error"]["Code"], error["ResponseMetadata"]["HTTPStatusCode"]) == ("LeaseExpired", 400)


def test_batch_is_read_again_and_committed_with_one_delete(sqs: Any, queue_url: str) -> None:
    fill(sqs, queue_url, 7)
    first = read(sqs, queue_url, "query-1/0/0/0", 5)
    assert read(sqs, queue_url, "query-1/0/0/0", 5) == first
    assert len(read(sqs, queue_url, "query-1/0/1/0", 5)) == 2
    assert read(sqs, queue_url, "query-1/0/1/1") == []
    sqs.send_message(QueueUrl=queue_url, MessageBody="late")
    assert read(sqs, queue_url, "query-1/0/1/1") == []
    sqs.change_message_visibility(QueueUrl=queue_url, ReceiptHandle="lease:query-1/0/", VisibilityTimeout=900)
    for _ in range(2):
        sqs.delete_message(QueueUrl=queue_url, ReceiptHandle="lease:query-1/0/")
    with pytest.raises(ClientError) as refused:
        read(sqs, queue_url, "query-1/0/0/0")
    assert is_expired(refused)
    assert [message["Body"] for message in read(sqs, queue_url, "query-1/1/0/0")] == ["late"]


def test_fifo_lease_goes_on_in_its_own_groups(sqs: Any, queue_name: str) -> None:
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    url = sqs.create_queue(QueueName=f"{queue_name}.fifo", Attributes=attributes)["QueueUrl"]
    fill(sqs, url, 5, MessageGroupId="g")
    calls = [read(sqs, url, f"q/0/0/{call}", 2) for call in range(4)]
    assert [[message["Body"] for message in call] for call in calls] == [["0", "1"], ["2", "3"], ["4"], []]
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle="lease:q/0/", VisibilityTimeout=0)
    assert sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "0"


def test_two_that_wait_under_one_id_get_the_same_answer(sqs: Any, queue_url: str) -> None:
    answers: list[Any] = []

    def wait() -> None:
        answers.append(read(sqs, queue_url, "q/0/0/0", WaitTimeSeconds=20))

    waiting = [threading.Thread(target=wait) for _ in range(2)]
    for thread in waiting:
        thread.start()
    sqs.send_message(QueueUrl=queue_url, MessageBody="hello")
    for thread in waiting:
        thread.join(30)
    assert [[message["Body"] for message in answer] for answer in answers] == [["hello"]] * 2
    assert answers[0] == answers[1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_lease_works_by_both_protocols(endpoint: Endpoint, sqs: Any, queue_url: str, protocol: str) -> None:
    fill(sqs, queue_url, 2)
    wanted = {"QueueUrl": queue_url, "ReceiveRequestAttemptId": "q/0/0/0", "VisibilityTimeout": 600}
    first = endpoint.call(protocol, "ReceiveMessage", wanted)
    assert first.status == 200
    assert b"ReceiptHandle" in first.body
    again = endpoint.call(protocol, "ReceiveMessage", wanted)
    if protocol == "json":
        assert again.document == first.document
    else:
        assert again.xml["ReceiveMessageResult"] == first.xml["ReceiveMessageResult"]
    back = {"QueueUrl": queue_url, "ReceiptHandle": "lease:q/0/0", "VisibilityTimeout": 0}
    assert endpoint.call(protocol, "ChangeMessageVisibility", back).status == 200
    for action, parameters in (
        ("ReceiveMessage", wanted),
        ("ChangeMessageVisibility", {**back, "VisibilityTimeout": 5}),
        ("DeleteMessage", {"QueueUrl": queue_url, "ReceiptHandle": "lease:q/0/"}),
    ):
        answer = endpoint.call(protocol, action, parameters)
        assert answer.error == (400, "LeaseExpired", "The lease q/0/0 was released.")


def test_handle_that_only_looks_like_a_leases_is_invalid(sqs: Any, queue_url: str) -> None:
    with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid):
        sqs.delete_message(QueueUrl=queue_url, ReceiptHandle="lease:q/0")
    sqs.delete_message(QueueUrl=queue_url, ReceiptHandle="lease:nobody/0/")


def test_health_tells_clients_which_server_this_is(endpoint: Endpoint) -> None:
    assert endpoint.request("GET", "/health").headers["server"] == f"elasticq/{__version__}"
