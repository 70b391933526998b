"""Each kind of fault, as boto3 sees it."""

import time
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from elasticq.testing import CallFailed, ElasticQ
from elasticq.testing.view import Queue, View

ONCE = Config(retries={"total_max_attempts": 1})
PATIENT = Config(retries={"total_max_attempts": 5, "mode": "standard"})


@pytest.fixture
def queue(view: View) -> Queue:
    return view.queue("jobs").create(VisibilityTimeout=30)


@pytest.fixture
def sqs(view: View) -> Any:
    """It makes one attempt."""
    return view.client(config=ONCE)


def bodies(sqs: Any, queue: Queue, limit: int = 1) -> list[str]:
    answer = sqs.receive_message(QueueUrl=queue.url, MaxNumberOfMessages=limit)
    return [message["Body"] for message in answer.get("Messages", [])]


def test_dropped_request_had_no_effect(view: View, queue: Queue, sqs: Any) -> None:
    with view.fault("SendMessage", "drop_request", times=1) as fault:
        with pytest.raises(BotoCoreError):
            sqs.send_message(QueueUrl=queue.url, MessageBody="x")
        assert queue.visible() == 0
        assert fault.struck == 1
        sqs.send_message(QueueUrl=queue.url, MessageBody="x")
    assert fault.struck == 1
    assert queue.visible() == 1


def test_dropped_response_had_its_effect_and_a_retry_has_no_other(view: View, queue: Queue, sqs: Any) -> None:
    with view.fault("SendMessage", "drop_response", times=1):
        with pytest.raises(BotoCoreError):
            sqs.send_message(QueueUrl=queue.url, MessageBody="x")
        assert queue.visible() == 1
    with view.fault("SendMessage", "drop_response", times=1) as fault:
        view.client(config=PATIENT).send_message(QueueUrl=queue.url, MessageBody="x")
        assert fault.struck == 1
    assert queue.visible() == 2


def test_dropped_delivery_comes_again_after_its_visibility_timeout(view: View, queue: Queue, sqs: Any) -> None:
    queue.send("x")
    with view.fault("ReceiveMessage", "drop", times=1):
        assert bodies(sqs, queue) == []
        assert queue.in_flight() == 1
        assert bodies(sqs, queue) == []
        view.clock.advance(30)
        (message,) = sqs.receive_message(QueueUrl=queue.url, AttributeNames=["All"])["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "2"


def test_duplicated_delivery_comes_twice_though_it_was_deleted(view: View, queue: Queue, sqs: Any) -> None:
    queue.send("x")
    with view.fault("ReceiveMessage", "duplicate", times=1) as fault:
        (first,) = sqs.receive_message(QueueUrl=queue.url)["Messages"]
        sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=first["ReceiptHandle"])
        (second,) = sqs.receive_message(QueueUrl=queue.url)["Messages"]
        assert fault.struck == 1
    assert second["MessageId"] == first["MessageId"]
    sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=second["ReceiptHandle"])
    assert bodies(sqs, queue) == []


def test_duplicated_send_stores_two_messages(view: View, queue: Queue, sqs: Any) -> None:
    with view.fault("SendMessage", "duplicate", times=1):
        sqs.send_message(QueueUrl=queue.url, MessageBody="x")
    assert queue.visible() == 2


def test_delayed_call_takes_its_time(view: View, queue: Queue, sqs: Any) -> None:
    with view.fault("SendMessage", "delay", delay_ms=200, times=1):
        began = time.monotonic()
        sqs.send_message(QueueUrl=queue.url, MessageBody="x")
        assert time.monotonic() - began >= 0.2
    assert queue.visible() == 1


def test_reordered_deliveries_overtake_each_other(view: View, queue: Queue, sqs: Any) -> None:
    for body in "abc":
        queue.send(body)
    with view.fault("ReceiveMessage", "reorder", times=1):
        assert bodies(sqs, queue) == ["b"]
        assert sorted(bodies(sqs, queue) + bodies(sqs, queue)) == ["a", "c"]
    assert bodies(sqs, queue) == []


def test_reordered_answer_is_turned_round_where_nothing_is_behind_it(view: View, queue: Queue, sqs: Any) -> None:
    for body in "abc":
        queue.send(body)
    with view.fault("ReceiveMessage", "reorder", times=1):
        assert bodies(sqs, queue, 10) == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("throttle", 403, "RequestThrottled"),
        ("error500", 500, "InternalFailure"),
        ("error503", 503, "ServiceUnavailable"),
    ],
)
def test_refused_call_had_no_effect_and_is_retried(
    view: View, queue: Queue, sqs: Any, kind: str, status: int, code: str
) -> None:
    with view.fault("SendMessage", kind, times=1):
        with pytest.raises(ClientError) as caught:
            sqs.send_message(QueueUrl=queue.url, MessageBody="x")
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
        assert caught.value.response["Error"]["Code"].endswith(code)
    assert queue.visible() == 0
    with view.fault("SendMessage", kind, times=2) as fault:
        view.client(config=PATIENT).send_message(QueueUrl=queue.url, MessageBody="x")
        assert fault.struck == 2
    assert queue.visible() == 1


def test_calls_that_are_not_hot_are_struck_too(view: View, sqs: Any) -> None:
    for kind in ("drop_request", "drop_response"):
        with view.fault("CreateQueue", kind, times=1), pytest.raises(BotoCoreError):
            sqs.create_queue(QueueName="made")
        assert view.queues() == (["made"] if kind == "drop_response" else [])


def test_fault_strikes_its_queue_and_its_account_only(server: ElasticQ, view: View, queue: Queue, sqs: Any) -> None:
    other = view.queue("other").create()
    stranger = server.view("4" * 12)
    with view.fault("*", "error503", queue="jobs"):
        sqs.send_message(QueueUrl=other.url, MessageBody="x")
        stranger.queue("jobs").create().send("x")
        with pytest.raises(ClientError):
            sqs.send_message(QueueUrl=queue.url, MessageBody="x")
    assert queue.visible() == 0
    stranger.reset()
    stranger.close()


def test_probability_repeats_with_its_seed(view: View, queue: Queue, sqs: Any) -> None:
    def struck(seed: int) -> list[bool]:
        found = []
        with view.fault("SendMessage", "error500", probability=0.5, seed=seed):
            for _ in range(20):
                try:
                    sqs.send_message(QueueUrl=queue.url, MessageBody="x")
                    found.append(False)
                except ClientError:
                    found.append(True)
        return found

    first = struck(1)
    assert first == struck(1) != struck(2)
    assert 3 < sum(first) < 17


def test_fifo_queue_neither_doubles_nor_reorders(view: View, sqs: Any) -> None:
    queue = view.queue("jobs.fifo").create(ContentBasedDeduplication="true")
    for body in "ab":
        queue.send(body, MessageGroupId=body)
    with view.fault("*", "reorder") as reordered, view.fault("*", "duplicate") as doubled:
        assert bodies(sqs, queue) == ["a"]
        assert bodies(sqs, queue) == ["b"]
        assert bodies(sqs, queue) == []
        assert reordered.struck == doubled.struck == 0


def test_server_without_faults_is_straight_again(view: View, queue: Queue, server: ElasticQ) -> None:
    assert server._member is not None
    context = server._member._context
    assert context is not None
    sqs = view.client()
    with view.fault("SendMessage", "error500", times=1):
        assert context.submit == context.faults.submit
        sqs.send_message(QueueUrl=queue.url, MessageBody="x")
        assert context.submit == context.runtime.submit
    assert context.submit == context.runtime.submit
    assert all(connection._submit == context.runtime.submit for connection in context.connections)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "Receive", "kind": "drop"},
        {"action": "SendMessage", "kind": "drop"},
        {"action": "SendMessage", "kind": "delay"},
        {"action": "SendMessage", "kind": "meteor"},
        {"action": "SendMessage", "kind": "error500", "probability": 2},
    ],
)
def test_fault_that_cannot_be_meant_is_refused(view: View, wrong: dict[str, Any]) -> None:
    with pytest.raises(CallFailed) as caught, view.fault(**wrong):
        pass
    assert caught.value.status == 400
