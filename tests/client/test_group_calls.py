"""Calls about a group: one try at a time, at the next endpoint after one that does not answer."""

from time import monotonic
from typing import Any

import pytest
from botocore import UNSIGNED as BOTO3_UNSIGNED
from botocore.config import Config

from elasticq.client import Group, SqsError, Unreachable, wrap
from elasticq.client.group_calls import GroupCalls
from tests.client.scripted import Scripted, answer, client, failure, headers
from tests.system.cluster.cluster import boto3_at, until

NOBODY = "http://127.0.0.1:9"
BUSY = failure("ServiceUnavailable", "503 Service Unavailable")
GONE = failure("ElasticqGroupDoesNotExist", "400 Bad Request")
KEYLESS = Config(signature_version=BOTO3_UNSIGNED)


def beat(calls: GroupCalls) -> dict[str, Any]:
    return calls.try_once(lambda sqs: sqs.heartbeat(GroupName="g", ConsumerId="c"), 5)


def test_the_next_try_goes_where_somebody_may_answer() -> None:
    with Scripted(answer({"Version": 1})) as server:
        calls = GroupCalls(NOBODY, [server.endpoint], (), True)
        with pytest.raises(Unreachable):
            beat(calls)
        assert beat(calls)["Version"] == 1
        calls.close()


def test_a_busy_server_is_left_and_a_refusal_is_not() -> None:
    with Scripted(BUSY) as busy, Scripted(GONE) as gone:
        calls = GroupCalls(busy.endpoint, [gone.endpoint], (), True)
        with pytest.raises(SqsError, match="ServiceUnavailable"):
            beat(calls)
        assert len(busy.requests) == 1, "one try is one request"
        for _ in range(2):
            with pytest.raises(SqsError, match="ElasticqGroupDoesNotExist"):
                beat(calls)
        assert len(gone.requests) == 2
        calls.close()


@pytest.mark.parametrize(("more", "is_signed"), [({}, True), ({"config": KEYLESS}, False)])
def test_boto3_s_key_signs_what_boto3_cannot_say(more: dict[str, Any], is_signed: bool) -> None:
    with Scripted(answer({})) as server:
        sqs = boto3_at(int(server.endpoint.rpartition(":")[2]), **more)
        for each in (sqs, wrap(sqs)):
            calls = GroupCalls(each, (), (), True)
            assert calls.messages is each
            beat(calls)
            calls.close()
    for request in server.requests:
        assert ("Credential=x/" in headers(request).get("authorization", "")) is is_signed


def test_messages_go_where_somebody_answers_too() -> None:
    with Scripted(answer({"Messages": []})) as server:
        calls = GroupCalls(NOBODY, [server.endpoint], (), True)
        assert calls.messages.receive_message(QueueUrl="q")["Messages"] == []
        assert not hasattr(calls.messages, "meta"), "which is how a client of boto3 is known"
        calls.close()
    with Scripted(GONE) as server, client(server) as sqs:
        alone = GroupCalls(sqs, (), (), True)
        assert alone.messages is sqs
        many = GroupCalls(sqs, [NOBODY], (), True)
        with pytest.raises(SqsError, match="ElasticqGroupDoesNotExist"):
            many.messages.receive_message(QueueUrl="q")
        many.close()


def test_all_tries_of_a_join_are_one_call() -> None:
    with Scripted(BUSY, BUSY, GONE) as server, pytest.raises(SqsError, match="ElasticqGroupDoesNotExist"):
        Group(server.endpoint, "g").join()
    assert len({headers(request)["amz-sdk-invocation-id"] for request in server.requests}) == 1
    assert len(server.requests) == 3


@pytest.mark.parametrize("garbage", [{}, {"ConsumerId": 1}, {"Version": "x"}])
def test_an_answer_that_is_no_view_counts_as_none(garbage: dict[str, Any]) -> None:
    with Scripted(answer(garbage), GONE) as server, pytest.raises(SqsError, match="ElasticqGroupDoesNotExist"):
        Group(server.endpoint, "g").join()
    assert len({headers(request)["amz-sdk-invocation-id"] for request in server.requests}) == 1
    assert len(server.requests) == 2


def test_a_client_that_was_made_here_is_closed_here_and_no_other() -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        for given, closed in ((server.endpoint, 2), (sqs, 1)):
            calls = GroupCalls(given, (), (), True)
            calls.messages.list_queues()
            beat(calls)
            calls.close()
            for _ in range(closed):
                assert server.closed.get(timeout=60)
        assert server.closed.empty()


def test_a_server_that_does_not_wait_is_not_asked_in_a_loop() -> None:
    view = {"ConsumerId": "c", "Version": 1, "Generation": 1, "HoldMs": 600_000, "HeartbeatMs": 300_000}
    with Scripted(answer(view)) as server, Group(server.endpoint, "g"):
        until(lambda: len(server.requests) >= 2, "it has joined and asks for changes")
        began_s = monotonic()
        until(lambda: len(server.requests) >= 5, "it asks again")
        assert monotonic() - began_s > 0.4
