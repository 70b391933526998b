"""Calls under a token: members of the light client, a signed header of boto3, nothing for other calls."""

import json
from typing import Any

import pytest

from elasticq.client import SqsError
from elasticq.client.fencing import HEADER, METHODS, Fence, Fenced, error_code, is_not_holder
from tests.client.scripted import Scripted, answer, client, failure, headers
from tests.system.cluster.cluster import boto3_at

QUEUE = "http://127.0.0.1/000000000000/orders"
PLAIN = Fence("workers", 7)
LANE = Fence("workers", 8, 0)


def body(request: bytes) -> dict[str, Any]:
    return dict(json.loads(request.partition(b"\r\n\r\n")[2]))


def test_a_fence_is_written_as_members_and_as_a_header() -> None:
    assert PLAIN.members == {"ElasticqGroup": "workers", "ElasticqToken": 7}
    assert LANE.members == {**PLAIN.members, "ElasticqToken": 8, "ElasticqPartition": 0}
    assert (PLAIN.header, LANE.header) == ("workers;7", "workers;8;0")


@pytest.mark.parametrize("method", sorted(METHODS))
def test_the_light_client_tells_the_token_in_its_members(method: str) -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        getattr(Fenced(sqs, LANE, QUEUE), method)(ReceiptHandle="x")
        assert body(server.requests[0]) == {"QueueUrl": QUEUE, "ReceiptHandle": "x", **LANE.members}


def test_other_calls_of_the_light_client_are_as_they_were() -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        fenced = Fenced(sqs, PLAIN, QUEUE)
        fenced.list_queues()
        assert body(server.requests[0]) == {}
        assert fenced.endpoint == server.endpoint
        fenced.receive_message(QueueUrl="another")
        assert body(server.requests[1])["QueueUrl"] == "another"


def test_boto3_tells_the_token_in_a_header_that_is_signed() -> None:
    with Scripted(answer({})) as server:
        sqs = boto3_at(int(server.endpoint.rpartition(":")[2]))
        one, two = Fenced(sqs, PLAIN, QUEUE), Fenced(sqs, LANE, QUEUE)
        one.receive_message()
        two.delete_message(ReceiptHandle="x")
        sqs.receive_message(QueueUrl=QUEUE)
        one.list_queues()
    seen = [headers(each) for each in server.requests]
    assert [each.get(HEADER.lower()) for each in seen] == ["workers;7", "workers;8;0", None, None]
    assert HEADER.lower() in seen[0]["authorization"]


def test_a_refusal_is_known_by_its_code() -> None:
    refused = failure("ElasticqNotHolder", "400 Bad Request", "ElasticqNotHolder;Sender")
    with Scripted(refused) as server, client(server) as sqs, pytest.raises(SqsError) as raised:
        Fenced(sqs, PLAIN, QUEUE).receive_message()
    assert is_not_holder(raised.value)
    assert error_code(raised.value) == "ElasticqNotHolder"
    assert error_code(ValueError()) == ""
    assert headers(server.requests[0])["content-type"] == "application/x-amz-json-1.0"
