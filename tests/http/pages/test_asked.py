"""A request of the slow path, as its pages read it."""

from unittest.mock import Mock

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from elasticq.http.connection.head import HeadReader
from elasticq.http.context import Connection
from elasticq.http.pages.asked import Asked


def asked(target: str, *headers: tuple[str, str]) -> Asked:
    lines = [f"GET {target} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers)]
    head = HeadReader().read("\r\n".join(lines).encode())
    request = make_mocked_request("GET", target, CIMultiDict(headers))
    return Asked(request, head, b"", Mock(spec=Connection))


def test_path_and_query_stay_as_they_were_sent() -> None:
    one = asked("/a%2Fb/c?x=%2B+1&x=2")
    assert (one.path, one.query) == ("/a%2Fb/c", "x=%2B+1&x=2")


def test_the_credential_is_in_a_header_or_in_the_url() -> None:
    header = "AWS4-HMAC-SHA256 Credential=a/1/us-east-1/sqs/aws4_request"
    assert asked("/", ("Authorization", header)).credential == header.encode()
    by_url = asked("/?X-Amz-Credential=a%2F1%2Fus-east-1%2Fsqs%2Faws4_request").credential
    assert by_url == b"Credential=a/1/us-east-1/sqs/aws4_request"
    assert asked("/").credential == b""


@pytest.mark.parametrize(
    ("headers", "has_target", "wants_json"),
    [
        ([], False, False),
        ([("x-amz-target", "AmazonSQS.ListQueues")], True, False),
        ([("Accept", "text/xml"), ("Accept", "application/json;q=0.5")], False, True),
        ([("Accept", "text/html")], False, False),
    ],
)
def test_headers_give_the_protocol(headers: list[tuple[str, str]], has_target: bool, wants_json: bool) -> None:
    one = asked("/", *headers)
    assert (one.has_target, one.wants_json) == (has_target, wants_json)
