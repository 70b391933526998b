"""Single requests of a test: as whom they are signed, and what a refusal is."""

import pytest

from elasticq.testing.calls import Caller, CallFailed
from tests.client.scripted import Scripted, answer, failure, headers


def test_a_call_acts_for_its_account() -> None:
    with Scripted(answer({"QueueUrls": ["u"]}), answer(b"")) as server:
        caller = Caller(server.endpoint, "111122223333", "eu-west-1")
        assert caller.sqs("ListQueues", MaxResults=3) == {"QueueUrls": ["u"]}
        assert caller.order("DELETE", "/_elasticq/faults") == {}
        first, second = server.requests
    assert headers(first)["x-amz-target"] == "AmazonSQS.ListQueues"
    assert headers(first)["authorization"].startswith("AWS4-HMAC-SHA256 Credential=111122223333/")
    assert "/eu-west-1/" in headers(first)["authorization"]
    assert first.endswith(b'{"MaxResults": 3}')
    assert second.startswith(b"DELETE /_elasticq/faults ")


@pytest.mark.parametrize(
    ("written", "status", "code", "message"),
    [
        (failure("QueueDoesNotExist", "400 Bad Request"), 400, "QueueDoesNotExist", "about QueueDoesNotExist"),
        (answer({"code": "BadFault", "message": "no"}, "400 Bad Request"), 400, "BadFault", "no"),
        (answer(b"<html>", "502 Bad Gateway"), 502, "", "<html>"),
    ],
)
def test_a_refusal_tells_status_code_and_message(written: bytes, status: int, code: str, message: str) -> None:
    with Scripted(written) as server, pytest.raises(CallFailed) as caught:
        Caller(server.endpoint, "111122223333", "eu-west-1").sqs("ListQueues")
    assert (caught.value.status, caught.value.code) == (status, code)
    assert str(caught.value) == (f"{code}: {message}" if code else message)
