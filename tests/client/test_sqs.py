"""The light client against a server that answers by a script."""

import os
import subprocess
import sys
from hashlib import md5
from pathlib import Path

import boto3
import pytest

from elasticq.client import UNSIGNED, DigestMismatch, Sqs
from tests.client.scripted import KEY, Scripted, answer, client, headers

ROOT = Path(__file__).resolve().parents[2]


def digest(text: str) -> str:
    return md5(text.encode()).hexdigest()


def test_client_needs_nothing_but_the_standard_library() -> None:
    """-S: no site-packages, so nothing that was installed can be found."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from elasticq.client import *; "
        "print(*sorted(n for n in sys.modules if n.startswith('elasticq.')))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, str(ROOT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert "elasticq.client.sqs" in loaded
    others = {name for name in loaded if not name.startswith(("elasticq.client", "elasticq._native"))}
    assert others == {"elasticq.lazily", "elasticq.native", "elasticq.model", "elasticq.model.actions"}


def test_call_names_action_members_and_signer() -> None:
    with Scripted(answer({"QueueUrl": "u"})) as server, client(server) as sqs:
        result = sqs.get_queue_url(QueueName="orders")
        assert result == {"QueueUrl": "u", "ResponseMetadata": {"HTTPStatusCode": 200, "RetryAttempts": 0}}
        head = headers(server.requests[0])
        assert head["x-amz-target"] == "AmazonSQS.GetQueueUrl"
        assert head["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKID/")
        assert server.requests[0].endswith(b'\r\n\r\n{"QueueName":"orders"}')


@pytest.mark.parametrize(("region", "credential"), [("eu-west-1", "Credential=anonymous/"), ("", "")])
def test_a_region_that_is_asked_for_is_told_without_a_key_too(
    region: str, credential: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    with Scripted(answer({})) as server, Sqs(server.endpoint, region) as sqs:
        sqs.list_queues()
        told = headers(server.requests[0]).get("authorization", "")
    assert credential in told
    assert bool(told) == bool(region)
    assert f"/{region}/sqs/" in told or not region


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


def test_two_calls_have_two_invocation_ids() -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        sqs.list_queues()
        sqs.list_queues()
        assert len({headers(request)["amz-sdk-invocation-id"] for request in server.requests}) == 2


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
