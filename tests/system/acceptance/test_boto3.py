"""boto3, unmodified, against a real process: what a program does with a standard queue."""

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from tests.system.acceptance.raw import Endpoint

BINARY = bytes(range(256))
ATTRIBUTES = {
    "colour": {"DataType": "String", "StringValue": "grün"},
    "count": {"DataType": "Number.int", "StringValue": "-12.50"},
    "picture": {"DataType": "Binary.png", "BinaryValue": BINARY},
}


def receive(sqs: Any, queue_url: str, **options: Any) -> list[dict[str, Any]]:
    return list(sqs.receive_message(QueueUrl=queue_url, **options).get("Messages", []))


def counts(sqs: Any, queue_url: str) -> tuple[int, int, int]:
    """(visible, in flight, delayed)."""
    names = [f"ApproximateNumberOfMessages{suffix}" for suffix in ("", "NotVisible", "Delayed")]
    attributes = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=names)["Attributes"]
    visible, in_flight, delayed = (int(attributes[name]) for name in names)
    return visible, in_flight, delayed


def account_of_its_own() -> str:
    return f"{uuid4().int % 10**12:012d}"


def test_queue_url_ends_with_account_and_name(sqs: Any, server: str, queue_name: str) -> None:
    created = sqs.create_queue(QueueName=queue_name)["QueueUrl"]
    assert created == f"{server}/000000000000/{queue_name}"
    assert sqs.get_queue_url(QueueName=queue_name)["QueueUrl"] == created


def test_create_is_idempotent_when_given_attributes_are_equal(sqs: Any, queue_name: str) -> None:
    first = sqs.create_queue(QueueName=queue_name, Attributes={"VisibilityTimeout": "5"})["QueueUrl"]
    assert sqs.create_queue(QueueName=queue_name)["QueueUrl"] == first
    assert sqs.create_queue(QueueName=queue_name, Attributes={"VisibilityTimeout": "5"})["QueueUrl"] == first


def test_create_with_other_attributes_raises_queue_name_exists(sqs: Any, queue_name: str) -> None:
    sqs.create_queue(QueueName=queue_name)
    with pytest.raises(sqs.exceptions.QueueNameExists) as caught:
        sqs.create_queue(QueueName=queue_name, Attributes={"VisibilityTimeout": "31"})
    assert caught.value.response["Error"]["Code"] == "QueueAlreadyExists"


def test_sent_message_is_received_whole_and_deleted(sqs: Any, queue_url: str) -> None:
    body = 'line\r\n\ttab "quotes" <&> ü 漢 🎉'
    sent = sqs.send_message(QueueUrl=queue_url, MessageBody=body, MessageAttributes=ATTRIBUTES)
    assert sent["MD5OfMessageBody"] == hashlib.md5(body.encode()).hexdigest()
    (message,) = receive(sqs, queue_url, AttributeNames=["All"], MessageAttributeNames=["All"])
    assert message["MessageId"] == sent["MessageId"]
    assert message["Body"] == body
    assert message["MessageAttributes"] == ATTRIBUTES
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    assert {"SenderId", "SentTimestamp", "ApproximateFirstReceiveTimestamp"} <= set(message["Attributes"])
    sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
    assert counts(sqs, queue_url) == (0, 0, 0)


def test_receive_without_names_gives_no_attributes(sqs: Any, queue_url: str) -> None:
    sqs.send_message(QueueUrl=queue_url, MessageBody="body", MessageAttributes=ATTRIBUTES)
    (message,) = receive(sqs, queue_url)
    assert set(message) == {"MessageId", "ReceiptHandle", "MD5OfBody", "Body"}


def test_attribute_names_may_be_prefixes(sqs: Any, queue_url: str) -> None:
    sqs.send_message(QueueUrl=queue_url, MessageBody="body", MessageAttributes=ATTRIBUTES)
    (message,) = receive(sqs, queue_url, MessageAttributeNames=["co.*"])
    assert set(message["MessageAttributes"]) <= {"colour", "count"}
    sqs.change_message_visibility(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    (message,) = receive(sqs, queue_url, MessageAttributeNames=["picture"])
    assert message["MessageAttributes"] == {"picture": ATTRIBUTES["picture"]}


def test_trace_header_comes_back_as_system_attribute(sqs: Any, queue_url: str) -> None:
    trace = {"DataType": "String", "StringValue": "Root=1-67891233-abcdef012345678912345678;Sampled=1"}
    sent = sqs.send_message(QueueUrl=queue_url, MessageBody="body", MessageSystemAttributes={"AWSTraceHeader": trace})
    assert "MD5OfMessageSystemAttributes" in sent
    (message,) = receive(sqs, queue_url, MessageSystemAttributeNames=["AWSTraceHeader"])
    assert message["Attributes"] == {"AWSTraceHeader": trace["StringValue"]}


def test_waiting_receive_returns_as_soon_as_a_message_is_sent(sqs: Any, queue_url: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(receive, sqs, queue_url, WaitTimeSeconds=20)
        sqs.send_message(QueueUrl=queue_url, MessageBody="wake up")
        (message,) = waiting.result(timeout=15)
    assert message["Body"] == "wake up"


def test_waiting_receive_ends_empty_at_the_end_of_its_wait(sqs: Any, queue_url: str) -> None:
    assert receive(sqs, queue_url, WaitTimeSeconds=1) == []


def test_queue_may_hold_the_wait_of_its_receives(sqs: Any, queue_name: str) -> None:
    url = sqs.create_queue(QueueName=queue_name, Attributes={"ReceiveMessageWaitTimeSeconds": "20"})["QueueUrl"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(receive, sqs, url)
        sqs.send_message(QueueUrl=url, MessageBody="wake up")
        assert len(waiting.result(timeout=15)) == 1
    assert receive(sqs, url, WaitTimeSeconds=0) == []


def test_message_reaches_one_of_many_waiting_receives(sqs: Any, queue_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(receive, sqs, queue_url, WaitTimeSeconds=2) for _ in range(4)]
        sqs.send_message(QueueUrl=queue_url, MessageBody="only one")
        assert sorted(len(one.result()) for one in waiting) == [0, 0, 0, 1]


def test_receive_hides_message_until_timeout(sqs: Any, queue_url: str) -> None:
    sqs.send_message(QueueUrl=queue_url, MessageBody="body")
    (first,) = receive(sqs, queue_url, VisibilityTimeout=1)
    assert receive(sqs, queue_url) == []
    assert counts(sqs, queue_url) == (0, 1, 0)
    (second,) = receive(sqs, queue_url, WaitTimeSeconds=10, AttributeNames=["ApproximateReceiveCount"])
    assert second["MessageId"] == first["MessageId"]
    assert second["ReceiptHandle"] != first["ReceiptHandle"]
    assert second["Attributes"] == {"ApproximateReceiveCount": "2"}


def test_visibility_of_zero_shows_message_at_once(sqs: Any, queue_url: str) -> None:
    sqs.send_message(QueueUrl=queue_url, MessageBody="body")
    (message,) = receive(sqs, queue_url)
    sqs.change_message_visibility(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    assert len(receive(sqs, queue_url)) == 1


def test_visibility_can_be_prolonged(sqs: Any, queue_url: str) -> None:
    sqs.send_message(QueueUrl=queue_url, MessageBody="body")
    (message,) = receive(sqs, queue_url, VisibilityTimeout=1)
    sqs.change_message_visibility(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=60)
    assert receive(sqs, queue_url, WaitTimeSeconds=2) == []


def test_delayed_message_arrives_late(sqs: Any, queue_url: str) -> None:
    sqs.send_message(QueueUrl=queue_url, MessageBody="late", DelaySeconds=1)
    assert receive(sqs, queue_url) == []
    assert counts(sqs, queue_url) == (0, 0, 1)
    assert len(receive(sqs, queue_url, WaitTimeSeconds=10)) == 1


def test_delay_of_the_queue_holds_for_its_messages(sqs: Any, queue_name: str) -> None:
    url = sqs.create_queue(QueueName=queue_name, Attributes={"DelaySeconds": "900"})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="late")
    assert counts(sqs, url) == (0, 0, 1)
    sqs.send_message(QueueUrl=url, MessageBody="at once", DelaySeconds=0)
    assert [message["Body"] for message in receive(sqs, url)] == ["at once"]


def test_deleting_twice_is_a_success(sqs: Any, queue_url: str) -> None:
    sqs.send_message(QueueUrl=queue_url, MessageBody="body")
    (message,) = receive(sqs, queue_url)
    sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
    sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])


def test_send_batch_tells_each_entry(sqs: Any, queue_url: str) -> None:
    entries = [{"Id": f"e{number}", "MessageBody": f"body {number}"} for number in range(9)]
    entries.append({"Id": "broken", "MessageBody": "body", "DelaySeconds": 901})
    answer = sqs.send_message_batch(QueueUrl=queue_url, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == [f"e{number}" for number in range(9)]
    assert [(entry["Id"], entry["SenderFault"]) for entry in answer["Failed"]] == [("broken", True)]
    assert counts(sqs, queue_url) == (9, 0, 0)


def test_batches_receive_change_and_delete_ten(sqs: Any, queue_url: str) -> None:
    entries = [{"Id": str(number), "MessageBody": f"body {number}"} for number in range(10)]
    sqs.send_message_batch(QueueUrl=queue_url, Entries=entries)
    messages = receive(sqs, queue_url, MaxNumberOfMessages=10)
    assert {message["Body"] for message in messages} == {f"body {number}" for number in range(10)}
    handles = [{"Id": str(number), "ReceiptHandle": m["ReceiptHandle"]} for number, m in enumerate(messages)]
    shown = [handle | {"VisibilityTimeout": 0} for handle in handles[:5]]
    changed = sqs.change_message_visibility_batch(QueueUrl=queue_url, Entries=shown)
    assert [entry["Id"] for entry in changed["Successful"]] == ["0", "1", "2", "3", "4"]
    assert counts(sqs, queue_url) == (5, 5, 0)
    deleted = sqs.delete_message_batch(QueueUrl=queue_url, Entries=handles)
    assert len(deleted["Successful"]) == 10
    assert "Failed" not in deleted
    assert counts(sqs, queue_url) == (0, 0, 0)


def test_batch_delete_names_the_bad_handle(sqs: Any, queue_url: str) -> None:
    answer = sqs.delete_message_batch(QueueUrl=queue_url, Entries=[{"Id": "a", "ReceiptHandle": "garbage"}])
    (failed,) = answer["Failed"]
    assert (failed["Id"], failed["Code"], failed["SenderFault"]) == ("a", "ReceiptHandleIsInvalid", True)


def test_attributes_show_awss_defaults(sqs: Any, queue_url: str, queue_name: str) -> None:
    attributes = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])["Attributes"]
    assert int(attributes.pop("CreatedTimestamp")) == int(attributes.pop("LastModifiedTimestamp"))
    assert attributes == {
        "QueueArn": f"arn:aws:sqs:us-east-1:000000000000:{queue_name}",
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "DelaySeconds": "0",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "true",
        "VisibilityTimeout": "30",
    }


def test_no_attribute_asked_gives_none(sqs: Any, queue_url: str) -> None:
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=queue_url)


def test_set_attribute_acts_on_the_next_receive(sqs: Any, queue_url: str) -> None:
    sqs.set_queue_attributes(QueueUrl=queue_url, Attributes={"VisibilityTimeout": "0"})
    sqs.send_message(QueueUrl=queue_url, MessageBody="body")
    assert len(receive(sqs, queue_url)) == len(receive(sqs, queue_url)) == 1


def test_purge_removes_visible_hidden_and_delayed(sqs: Any, queue_url: str) -> None:
    sqs.send_message(QueueUrl=queue_url, MessageBody="hidden")
    (hidden,) = receive(sqs, queue_url)
    sqs.send_message(QueueUrl=queue_url, MessageBody="visible")
    sqs.send_message(QueueUrl=queue_url, MessageBody="delayed", DelaySeconds=900)
    assert counts(sqs, queue_url) == (1, 1, 1)
    sqs.purge_queue(QueueUrl=queue_url)
    assert counts(sqs, queue_url) == (0, 0, 0)
    sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=hidden["ReceiptHandle"])
    sqs.send_message(QueueUrl=queue_url, MessageBody="after")
    assert [message["Body"] for message in receive(sqs, queue_url, MaxNumberOfMessages=10)] == ["after"]


def test_deleted_queue_is_gone_for_every_action(sqs: Any, queue_url: str, queue_name: str) -> None:
    sqs.delete_queue(QueueUrl=queue_url)
    for call in (
        lambda: sqs.get_queue_url(QueueName=queue_name),
        lambda: sqs.send_message(QueueUrl=queue_url, MessageBody="body"),
        lambda: sqs.receive_message(QueueUrl=queue_url),
        lambda: sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"]),
        lambda: sqs.purge_queue(QueueUrl=queue_url),
        lambda: sqs.delete_queue(QueueUrl=queue_url),
    ):
        with pytest.raises(sqs.exceptions.QueueDoesNotExist) as caught:
            call()
        assert caught.value.response["Error"]["Code"] == "AWS.SimpleQueueService.NonExistentQueue"
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_queue_made_again_under_a_name_is_empty_and_refuses_old_handles(
    sqs: Any, queue_url: str, queue_name: str
) -> None:
    sqs.send_message(QueueUrl=queue_url, MessageBody="old")
    (old,) = receive(sqs, queue_url)
    sqs.delete_queue(QueueUrl=queue_url)
    assert sqs.create_queue(QueueName=queue_name)["QueueUrl"] == queue_url
    assert counts(sqs, queue_url) == (0, 0, 0)
    with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid):
        sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=old["ReceiptHandle"])


def test_typed_exceptions_reach_the_program(sqs: Any, queue_url: str) -> None:
    body = {"MessageBody": "body"}
    twice = [{"Id": "same"} | body, {"Id": "same"} | body]
    too_many = [{"Id": str(number)} | body for number in range(11)]
    for raised, call in (
        (sqs.exceptions.EmptyBatchRequest, lambda: sqs.send_message_batch(QueueUrl=queue_url, Entries=[])),
        (sqs.exceptions.BatchEntryIdsNotDistinct, lambda: sqs.send_message_batch(QueueUrl=queue_url, Entries=twice)),
        (
            sqs.exceptions.TooManyEntriesInBatchRequest,
            lambda: sqs.send_message_batch(QueueUrl=queue_url, Entries=too_many),
        ),
        (sqs.exceptions.ReceiptHandleIsInvalid, lambda: sqs.delete_message(QueueUrl=queue_url, ReceiptHandle="x")),
        (sqs.exceptions.InvalidMessageContents, lambda: sqs.send_message(QueueUrl=queue_url, MessageBody="\x00")),
        (
            sqs.exceptions.InvalidAttributeName,
            lambda: sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["Colour"]),
        ),
    ):
        with pytest.raises(raised):
            call()
    assert counts(sqs, queue_url) == (0, 0, 0)


def test_list_queues_pages_by_name_within_an_account(make_client: Callable[[str], Any]) -> None:
    sqs = make_client(account_of_its_own())
    assert "QueueUrls" not in sqs.list_queues()
    urls = [sqs.create_queue(QueueName=f"page-{number}")["QueueUrl"] for number in range(5)]
    other = sqs.create_queue(QueueName="other")["QueueUrl"]
    assert set(sqs.list_queues()["QueueUrls"]) == {*urls, other}
    pages = sqs.get_paginator("list_queues").paginate(QueueNamePrefix="page-", PaginationConfig={"PageSize": 2})
    listed = [page["QueueUrls"] for page in pages]
    assert [len(page) for page in listed] == [2, 2, 1]
    assert sorted(url for page in listed for url in page) == urls


def test_accounts_do_not_see_each_other(make_client: Callable[[str], Any], queue_name: str) -> None:
    one, other = make_client(account_of_its_own()), make_client(account_of_its_own())
    one.create_queue(QueueName=queue_name)
    with pytest.raises(other.exceptions.QueueDoesNotExist):
        other.get_queue_url(QueueName=queue_name)


def test_two_sends_with_one_invocation_id_are_one_message(endpoint: Endpoint, sqs: Any, queue_url: str) -> None:
    headers = {"amz-sdk-invocation-id": str(uuid4()), "amz-sdk-request": "attempt=1; max=3"}
    parameters = {"QueueUrl": queue_url, "MessageBody": "once"}
    first = endpoint.json("SendMessage", parameters, headers)
    second = endpoint.json("SendMessage", parameters, headers | {"amz-sdk-request": "attempt=2; max=3"})
    assert first.status == second.status == 200
    assert first.document == second.document
    assert counts(sqs, queue_url) == (1, 0, 0)


def test_two_batches_with_one_invocation_id_are_one_batch(endpoint: Endpoint, sqs: Any, queue_url: str) -> None:
    headers = {"amz-sdk-invocation-id": str(uuid4())}
    entries = [{"Id": "a", "MessageBody": "a"}, {"Id": "b", "MessageBody": "b"}]
    answers = [endpoint.json("SendMessageBatch", {"QueueUrl": queue_url, "Entries": entries}, headers) for _ in "12"]
    assert answers[0].document == answers[1].document
    assert counts(sqs, queue_url) == (2, 0, 0)


def test_repeated_receive_gives_the_same_messages_again(endpoint: Endpoint, sqs: Any, queue_url: str) -> None:
    for body in ("a", "b"):
        sqs.send_message(QueueUrl=queue_url, MessageBody=body)
    headers = {"amz-sdk-invocation-id": str(uuid4())}
    answers = [endpoint.json("ReceiveMessage", {"QueueUrl": queue_url}, headers) for _ in "12"]
    assert answers[0].document == answers[1].document
    assert counts(sqs, queue_url) == (1, 1, 0)


def test_other_invocation_id_is_another_message(endpoint: Endpoint, sqs: Any, queue_url: str) -> None:
    for _ in "12":
        headers = {"amz-sdk-invocation-id": str(uuid4())}
        endpoint.json("SendMessage", {"QueueUrl": queue_url, "MessageBody": "same"}, headers)
    assert counts(sqs, queue_url) == (2, 0, 0)


def test_largest_message_goes_through_and_one_byte_more_does_not(sqs: Any, queue_url: str) -> None:
    largest = "x" * 1_048_576
    sqs.send_message(QueueUrl=queue_url, MessageBody=largest)
    (message,) = receive(sqs, queue_url)
    assert message["Body"] == largest
    with pytest.raises(ClientError) as caught:
        sqs.send_message(QueueUrl=queue_url, MessageBody=largest + "x")
    assert caught.value.response["Error"]["Code"] == "InvalidParameterValue"


def test_many_programs_at_once_lose_and_double_nothing(
    server: str, make_client: Callable[[str], Any], queue_name: str
) -> None:
    """Four senders, four receivers, 200 messages: each message is received once and deleted."""
    sqs = make_client("000000000000")
    url = sqs.create_queue(QueueName=queue_name)["QueueUrl"]
    everything = {f"{sender}-{number}" for sender in range(4) for number in range(50)}
    received: list[str] = []
    done = threading.Event()

    def send(sender: int) -> None:
        client = make_client("000000000000")
        for number in range(50):
            client.send_message(QueueUrl=url, MessageBody=f"{sender}-{number}")

    def consume() -> None:
        client = make_client("000000000000")
        while not done.is_set():
            for message in receive(client, url, MaxNumberOfMessages=10, WaitTimeSeconds=1):
                client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                received.append(message["Body"])
                if len(received) >= len(everything):
                    done.set()

    with ThreadPoolExecutor(8) as pool:
        workers = [pool.submit(consume) for _ in range(4)] + [pool.submit(send, sender) for sender in range(4)]
        assert done.wait(60), f"{len(received)} of {len(everything)} received"
        for worker in workers:
            worker.result()
    assert sorted(received) == sorted(everything)
    assert counts(sqs, url) == (0, 0, 0)
