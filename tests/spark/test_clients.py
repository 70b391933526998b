"""Clients: one for each connection, patience, and one kind of error whatever the client is."""

from typing import Any

import pytest

from elasticq.client import SqsError, Unreachable
from elasticq.spark.clients import chosen, connect, may_pass, persist
from elasticq.spark.options import Connection, OptionError


def refused(code: str, status: int) -> SqsError:
    return SqsError("ReceiveMessage", code, code, "no", status, status < 500)


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


class Time:
    """A clock that sleeping moves."""

    now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def test_a_call_is_tried_again_while_it_may_pass() -> None:
    answers: list[Any] = [
        Unreachable("refused"),
        refused("ServiceUnavailable", 503),
        refused("RequestThrottled", 400),
        7,
    ]
    time = Time()

    def call() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert persist(call, 60, lambda: time.now_s, time.sleep) == 7
    assert 0 < time.now_s < 1


def test_patience_ends() -> None:
    time = Time()

    def call() -> None:
        raise Unreachable("refused")

    with pytest.raises(Unreachable):
        persist(call, 120, lambda: time.now_s, time.sleep)
    assert 110 < time.now_s <= 120


def test_what_cannot_pass_is_told_at_once() -> None:
    assert not may_pass(refused("QueueDoesNotExist", 400))
    assert may_pass(refused("AWS.SimpleQueueService.RequestThrottled", 403))


def test_one_client_serves_a_connection(key: None) -> None:
    connection = Connection(endpoint="http://127.0.0.1:1", region="eu-west-1", client="boto3")
    assert connect(connection) is connect(Connection(endpoint="http://127.0.0.1:1", region="eu-west-1", client="boto3"))
    assert connect(connection) is not connect(Connection(endpoint="http://127.0.0.1:2", client="boto3"))


def test_aws_is_never_asked_whether_it_is_elasticq() -> None:
    assert chosen(Connection()) == "boto3"
    assert chosen(Connection(client="light")) == "light"


@pytest.mark.parametrize("client", ["boto3", "light"])
def test_a_profile_that_is_not_there_is_an_option_error(client: str) -> None:
    with pytest.raises(OptionError, match="nobody"):
        connect(Connection(endpoint="http://127.0.0.1:1", profile="nobody", client=client))


@pytest.mark.parametrize("client", ["boto3", "light"])
def test_both_clients_tell_errors_alike(keys: None, elasticq_server: Any, client: str) -> None:
    sqs = connect(Connection(endpoint=elasticq_server.endpoint, region="us-east-1", client=client))
    with pytest.raises(SqsError) as raised:
        sqs.receive_message(QueueUrl=f"{elasticq_server.endpoint}/000000000000/nobody")
    error = raised.value
    assert (error.type, error.status, error.sender_fault) == ("QueueDoesNotExist", 400, True)
    assert error.code == "AWS.SimpleQueueService.NonExistentQueue"


@pytest.mark.parametrize("client", ["boto3", "light"])
def test_nobody_there_is_unreachable(key: None, client: str) -> None:
    import socket

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{bound.getsockname()[1]}"
        sqs = connect(Connection(endpoint=endpoint, region="us-east-1", client=client, retry_seconds=0))
        with pytest.raises(Unreachable):
            sqs.list_queues()
