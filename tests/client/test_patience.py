"""What a failed try of a call means, told by what botocore raises."""

import boto3
import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
    SSLError,
)

from elasticq.client import patience
from elasticq.client.endpoints import Endpoints
from elasticq.client.lines import Place
from elasticq.client.patience import Patience, is_transient

URL = "http://127.0.0.1:9"


def answered(status: int, code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "SendMessage")


@pytest.mark.parametrize(
    ("failure", "is_tried_again"),
    [
        (EndpointConnectionError(endpoint_url=URL, error="refused"), True),
        (ConnectTimeoutError(endpoint_url=URL), True),
        (ReadTimeoutError(endpoint_url=URL), True),
        (ConnectionClosedError(endpoint_url=URL), True),
        (answered(503, "ServiceUnavailable"), True),
        (answered(500, "InternalFailure"), True),
        (answered(403, "RequestThrottled"), True),
        (answered(400, "AWS.SimpleQueueService.NonExistentQueue"), False),
        (NoCredentialsError(), False),
        (ParamValidationError(report="it lacks a member"), False),
        (BotoCoreError(), False),
        (TypeError("a mistake of the caller"), False),
    ],
)
def test_failure_is_tried_again_if_it_may_pass(failure: Exception, is_tried_again: bool) -> None:
    assert is_transient(failure) is is_tried_again


def test_what_calls_give_up_with_can_be_told_to_those_behind_them() -> None:
    """By copies, which botocore's exceptions make of what they were made of."""
    closed = ConnectionClosedError(endpoint_url=URL, error=OSError("reset"), request=object())
    cases = [EndpointConnectionError(endpoint_url=URL, error="refused"), ReadTimeoutError(endpoint_url=URL), closed]
    for failure in (
        *cases,
        HTTPClientError(error=OSError()),
        SSLError(endpoint_url=URL, error="EOF"),
        answered(503, ""),
    ):
        place = Place(frozenset())
        place.fail(failure)
        met = place.turn.exception()
        assert met is not failure
        assert (type(met), str(met)) == (type(failure), str(failure))


def test_forked_process_has_lines_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that holds a lock or stands in a line is not there in a child."""
    sqs = boto3.client("sqs", endpoint_url=URL, region_name="us-east-1")
    made = Patience(sqs, Endpoints(URL, (), ()), 0)
    lines = made.lines
    assert made.lines is lines
    monkeypatch.setattr(patience, "getpid", lambda: -1)
    assert made.lines is not lines
    assert made.lines is made.lines
