"""Which failures of a call are tried again, for how long, and as which call."""

import pytest

from elasticq.client import SqsError, retries
from elasticq.client.retries import LONGEST_S, Retries
from tests.client.scripted import CUT, Scripted, answer, client, failure, headers


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


def test_budget_of_retries_ends_with_the_servers_error() -> None:
    busy = failure("ServiceUnavailable", "503 Service Unavailable")
    with Scripted(busy) as server, client(server, retry_s=0.2) as sqs:
        with pytest.raises(SqsError) as caught:
            sqs.list_queues()
        assert (caught.value.status, caught.value.sender_fault) == (503, False)
        assert len(server.requests) > 1


def test_outage_of_an_hour_is_waited_out_with_short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr(retries, "monotonic", lambda: now_s[0])
    patience = Retries(3_700)
    while now_s[0] < 3_600:
        pause_s = patience.next_pause_s()
        assert pause_s is not None
        assert 0 < pause_s <= LONGEST_S
        now_s[0] += pause_s
    now_s[0] = 3_700
    assert patience.next_pause_s() is None
