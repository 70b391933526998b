"""Several endpoints: calls go to a member that answers, and a repeated call is one call."""

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from elasticq.spark.clients import connect, on_elasticq
from elasticq.spark.options import Connection
from tests.spark.servers import Server


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("client", ["light", "boto3", "auto"])
def test_calls_go_on_at_the_next_member_when_one_is_down(
    elasticq_server: Server, make_queue: Callable[..., str], nobody: str, client: str
) -> None:
    url = make_queue(elasticq_server)
    connection = Connection(
        endpoint=nobody, endpoints=f"{nobody},{elasticq_server.endpoint}", client=client, retry_seconds=20
    )
    assert on_elasticq(connection)
    sqs: Any = connect(connection)
    for body in ("a", "b"):
        sqs.send_message(QueueUrl=url, MessageBody=body)
    assert sorted(each["Body"] for each in elasticq_server.drain(url)) == ["a", "b"]
