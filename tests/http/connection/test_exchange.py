"""One request's way through the wire room: answers, errors and our own faults, in each protocol."""

import logging

import pytest

from elasticq.http.connection.exchange import JSON_TYPE, QUERY_JSON_TYPE, XML_TYPE, decode, encode
from elasticq.http.connection.head import FORM, FORM_FOR_JSON, JSON
from elasticq.model.commands import ListQueues
from elasticq.model.errors import QueueDoesNotExist, SqsError, UnknownOperation
from elasticq.model.results import ListQueuesResult, Result, StaleResult
from elasticq.wire.operations import OPERATIONS, SQS

OPERATION, COMMAND = OPERATIONS["ListQueues"], ListQueues()


class Unwritable(Result):
    """Of no action: no protocol can write it."""

    text: str


TYPES = {JSON: JSON_TYPE, FORM: XML_TYPE, FORM_FOR_JSON: QUERY_JSON_TYPE}


@pytest.mark.parametrize("protocol", TYPES)
def test_an_answer_is_of_the_requests_protocol(protocol: int) -> None:
    answer = encode((SQS,), protocol, OPERATION, COMMAND, ListQueuesResult(["u"], None), "r")
    assert (answer.status, answer.content_type, answer.stale_ms) == (200, TYPES[protocol], -1)
    assert b"u" in answer.body
    stale = encode((SQS,), protocol, OPERATION, COMMAND, StaleResult(ListQueuesResult(["u"], None), 70), "r")
    assert (stale.body, stale.stale_ms) == (answer.body, 70)
    error = encode((SQS,), protocol, OPERATION, COMMAND, QueueDoesNotExist(), "r")
    assert (error.status, error.content_type) == (400, TYPES[protocol])
    assert bool(error.query_error) is (protocol == JSON)


@pytest.mark.parametrize("protocol", TYPES)
def test_our_own_fault_is_an_internal_failure_that_tells_nothing(
    protocol: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = encode((SQS,), protocol, OPERATION, COMMAND, Unwritable("canary"), "r")
    assert (answer.status, answer.content_type) == (500, TYPES[protocol])
    assert b"InternalFailure" in answer.body
    assert b"canary" not in answer.body
    assert "canary" not in caplog.text


def test_a_request_becomes_its_command_or_an_error_of_ours() -> None:
    assert decode((SQS,), JSON, OPERATION, b'{"MaxResults": 3}', "/") == (OPERATION, ListQueues(max_results=3))
    assert decode((SQS,), FORM, None, b"Action=ListQueues&MaxResults=3", "/") == (OPERATION, ListQueues(max_results=3))
    with pytest.raises(UnknownOperation):
        decode((SQS,), JSON, None, b"{}", "/")
    with pytest.raises(SqsError):
        decode((SQS,), JSON, OPERATION, b"{", "/")
