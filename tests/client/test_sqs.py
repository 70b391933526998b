"""The light client against a server that answers by a script."""

import copy
import socket
import subprocess
import sys
import threading
from hashlib import md5
from pathlib import Path
from typing import Any

import boto3
import pytest

from elasticq.client import UNSIGNED, Credentials, DigestMismatch, Sqs, SqsError, Unreachable, is_elasticq
from tests.client.scripted import CUT, Scripted, answer, failure, headers

KEY = Credentials("AKID", "secret")
ROOT = Path(__file__).resolve().parents[2]


def client(server: Scripted, **options: Any) -> Sqs:
    return Sqs(server.endpoint, "us-east-1", **({"credentials": KEY} | options))


def digest(text: str) -> str:
    return md5(text.encode()).hexdigest()


def test_client_needs_nothing_but_the_standard_library() -> None:
    """-S: no site-packages, so nothing that was installed can be found."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import elasticq.client; "
        "print(*sorted(n for n in sys.modules if n.startswith('elasticq.')))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, str(ROOT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert "elasticq.client.sqs" in loaded
    others = {name for name in loaded if not name.startswith("elasticq.client")}
    assert others == {"elasticq.model", "elasticq.model.actions"}


def test_call_names_action_members_and_signer() -> None:
    with Scripted(answer({"QueueUrl": "u"})) as server, client(server) as sqs:
        result = sqs.get_queue_url(QueueName="orders")
        assert result == {"QueueUrl": "u", "ResponseMetadata": {"HTTPStatusCode": 200, "RetryAttempts": 0}}
        head = headers(server.requests[0])
        assert head["x-amz-target"] == "AmazonSQS.GetQueueUrl"
        assert head["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKID/")
        assert server.requests[0].endswith(b'\r\n\r\n{"QueueName":"orders"}')


BOTO3 = boto3.client("sqs", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")


@pytest.mark.parametrize(("method", "action"), BOTO3.meta.method_to_api_mapping.items())
def test_each_action_is_a_method_as_in_boto3(method: str, action: str) -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        getattr(sqs, method)(QueueUrl="u")
        assert headers(server.requests[0])["x-amz-target"] == f"AmazonSQS.{action}"
    assert getattr(Sqs, method).__name__ == method


def test_a_method_that_no_action_has_is_missing() -> None:
    assert not hasattr(Sqs, "creat_queue")
    assert not hasattr(Sqs, "peek_queue")


def test_unsigned_client_sends_no_authorization() -> None:
    with Scripted(answer({})) as server, client(server, credentials=UNSIGNED) as sqs:
        sqs.list_queues()
        assert "authorization" not in headers(server.requests[0])


def test_calls_share_one_connection() -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        for _ in range(5):
            sqs.list_queues()
        assert (len(server.requests), server.connections) == (5, 1)


def test_each_thread_has_its_own_connection() -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        threads = [threading.Thread(target=sqs.list_queues) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert (len(server.requests), server.connections) == (3, 3)


def test_connection_ends_with_its_thread() -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        thread = threading.Thread(target=sqs.list_queues)
        thread.start()
        thread.join(10)
        assert server.closed.get(timeout=10)


def test_connection_that_was_closed_meanwhile_is_opened_again_at_once() -> None:
    with Scripted([answer({}), CUT], answer({"QueueUrls": ["u"]})) as server, client(server, retry_s=0) as sqs:
        sqs.list_queues()
        assert sqs.list_queues()["QueueUrls"] == ["u"]
        assert server.connections == 2


def test_error_answer_has_code_type_and_fault() -> None:
    lost = failure("QueueDoesNotExist", "400 Bad Request", "AWS.SimpleQueueService.NonExistentQueue;Sender")
    with Scripted(lost) as server, client(server) as sqs:
        with pytest.raises(SqsError, match="about QueueDoesNotExist") as caught:
            sqs.get_queue_url(QueueName="orders")
        error = caught.value
        assert (error.code, error.type) == ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
        assert (error.status, error.sender_fault, error.message) == (400, True, "about QueueDoesNotExist")
        assert error.response["Error"]["Code"] == error.code
        assert len(server.requests) == 1
    other = copy.copy(error)  # by the same means Spark carries it to its driver
    assert (other.code, other.status, str(other)) == (error.code, 400, str(error))


@pytest.mark.parametrize(
    "trouble",
    [
        failure("ServiceUnavailable", "503 Service Unavailable", "ServiceUnavailable;Receiver"),
        failure("InternalFailure", "500 Internal Server Error"),
        failure("RequestThrottled", "403 Forbidden", "RequestThrottled;Sender"),
        answer(b"<html>", "502 Bad Gateway"),
        CUT,
        [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", CUT],
    ],
)
def test_trouble_is_tried_again_as_the_same_call(trouble: bytes | list[bytes]) -> None:
    with Scripted(trouble, trouble, answer({})) as server, client(server) as sqs:
        assert sqs.list_queues()["ResponseMetadata"]["RetryAttempts"] == 2
        marks = {headers(request)["amz-sdk-invocation-id"] for request in server.requests}
        assert (len(server.requests), len(marks)) == (3, 1)


def test_two_calls_have_two_invocation_ids() -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        sqs.list_queues()
        sqs.list_queues()
        assert len({headers(request)["amz-sdk-invocation-id"] for request in server.requests}) == 2


def test_budget_of_retries_ends_with_the_servers_error() -> None:
    busy = failure("ServiceUnavailable", "503 Service Unavailable")
    with Scripted(busy) as server, client(server, retry_s=0.2) as sqs:
        with pytest.raises(SqsError) as caught:
            sqs.list_queues()
        assert (caught.value.status, caught.value.sender_fault) == (503, False)
        assert len(server.requests) > 1


def test_refused_connection_is_unreachable_and_an_oserror() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        sqs = Sqs(f"http://127.0.0.1:{unused.getsockname()[1]}", "us-east-1", KEY, retry_s=0)
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1") as caught:
            sqs.list_queues()
    assert isinstance(caught.value, OSError)


def test_server_that_says_nothing_times_out() -> None:
    with Scripted([]) as server, client(server, retry_s=0, read_s=0.05) as sqs, pytest.raises(Unreachable):
        sqs.list_queues()


def test_receive_may_wait_longer_than_the_read_time_out() -> None:
    with Scripted(answer({})) as server, client(server, read_s=0.05) as sqs:
        assert "Messages" not in sqs.receive_message(QueueUrl="u", WaitTimeSeconds=1)


@pytest.mark.parametrize(
    "written",
    [
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n4\r\n: 1}\r\n0\r\n\r\n',
        b'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 8\r\n\r\n{"a": 1}',
        b'HTTP/1.0 200 OK\r\nContent-Length: 8\r\n\r\n{"a": 1}',
    ],
)
def test_every_framing_of_an_answer_is_read_byte_by_byte(written: bytes) -> None:
    with Scripted([bytes((byte,)) for byte in written]) as server, client(server) as sqs:
        assert sqs.list_queues()["a"] == sqs.list_queues()["a"] == 1


def test_answer_without_a_length_ends_with_its_connection() -> None:
    with Scripted([b'HTTP/1.1 200 OK\r\n\r\n{"a": 1}', CUT]) as server, client(server) as sqs:
        assert sqs.list_queues()["a"] == 1


@pytest.mark.parametrize("written", [b"SSH-2.0-x\r\n\r\n", answer(b"[1]"), answer(b"OK")])
def test_what_is_no_sqs_answer_is_unreachable(written: bytes) -> None:
    with Scripted(written) as server, client(server, retry_s=0) as sqs, pytest.raises(Unreachable):
        sqs.list_queues()


def test_received_body_that_was_damaged_is_refused() -> None:
    message = {"MessageId": "m", "ReceiptHandle": "h", "Body": "hello", "MD5OfBody": digest("hallo")}
    good = message | {"MD5OfBody": digest("hello")}
    damaged = Scripted(answer({"Messages": [message]}))
    with damaged as server, client(server, retry_s=0) as sqs, pytest.raises(DigestMismatch):
        sqs.receive_message(QueueUrl="u")
    with Scripted(answer({"Messages": [good]})) as server, client(server) as sqs:
        assert sqs.receive_message(QueueUrl="u")["Messages"] == [good]


def test_sent_body_that_was_damaged_is_sent_again() -> None:
    wrong, right = (answer({"MessageId": "m", "MD5OfMessageBody": digest(text)}) for text in ("x", "h\u00e9"))
    with Scripted(wrong, right) as server, client(server) as sqs:
        assert sqs.send_message(QueueUrl="u", MessageBody="h\u00e9")["ResponseMetadata"]["RetryAttempts"] == 1


def test_batch_compares_each_body() -> None:
    sent = [{"Id": name, "MessageId": "m", "MD5OfMessageBody": digest("one")} for name in ("a", "b")]
    entries = [{"Id": "a", "MessageBody": "one"}, {"Id": "b", "MessageBody": "two"}]
    damaged = Scripted(answer({"Successful": sent}))
    with damaged as server, client(server, retry_s=0) as sqs, pytest.raises(DigestMismatch):
        sqs.send_message_batch(QueueUrl="u", Entries=entries)


def test_binary_attributes_are_bytes_both_ways() -> None:
    attributes = {"raw": {"DataType": "Binary", "BinaryValue": "AP8="}}
    message = {"MessageId": "m", "ReceiptHandle": "h", "Body": "", "MessageAttributes": attributes}
    with Scripted(answer({"Messages": [message]})) as server, client(server) as sqs:
        (got,) = sqs.receive_message(QueueUrl="u")["Messages"]
        assert got["MessageAttributes"]["raw"]["BinaryValue"] == b"\0\xff"
        sqs.send_message(QueueUrl="u", MessageBody="", MessageAttributes=got["MessageAttributes"])
        assert b'"BinaryValue":"AP8="' in server.requests[1]


def test_what_is_no_endpoint_is_refused() -> None:
    with pytest.raises(ValueError, match="is no endpoint"):
        Sqs("127.0.0.1:9324", "us-east-1", KEY)


def test_elasticq_is_known_by_its_server_header_and_asked_once() -> None:
    with Scripted(answer(b"OK", Server="elasticq/0.1.0")) as server:
        assert is_elasticq(server.endpoint)
        assert is_elasticq(server.endpoint + "/")
        assert [request.split(b" ")[:2] for request in server.requests] == [[b"GET", b"/health"]]
    with Scripted(answer(b"no", "404 Not Found", Server="other")) as server:
        assert not is_elasticq(server.endpoint)


def test_nobody_there_is_no_verdict() -> None:
    with Scripted(CUT, answer(b"OK", Server="elasticq/0.1.0")) as server:
        with pytest.raises(Unreachable):
            is_elasticq(server.endpoint)
        assert is_elasticq(server.endpoint)
