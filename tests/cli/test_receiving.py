"""elasticq queues receive and tail, against a server."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from uuid import uuid4

import pytest

from elasticq.client import Sqs
from elasticq.testing import ElasticQ
from tests.admin.operator import Operator
from tests.cli.running import Run, runner
from tests.server.process import PATIENCE_S, Server
from tests.system.cluster.cluster import until


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticQ]:
    with ElasticQ() as server:
        yield server


@pytest.fixture
def sqs(server: ElasticQ) -> Iterator[Sqs]:
    with Sqs(server.endpoint_url, server.region, (server.account, "test")) as sqs:
        yield sqs


@pytest.fixture
def queue(sqs: Sqs) -> str:
    name = f"jobs-{uuid4().hex}"
    sqs.create_queue(QueueName=name)
    return name


@pytest.fixture
def run(server: ElasticQ, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner("queues", server, capsys, monkeypatch)


def url_of(sqs: Sqs, queue: str) -> str:
    return str(sqs.get_queue_url(QueueName=queue)["QueueUrl"])


def states(sqs: Sqs, queue: str) -> list[str]:
    return [each["State"] for each in sqs.peek(QueueUrl=url_of(sqs, queue))["Messages"]]


def send(sqs: Sqs, queue: str, *bodies: str) -> None:
    for body in bodies:
        sqs.send_message(QueueUrl=url_of(sqs, queue), MessageBody=body)


def test_a_received_message_stays_in_the_queue(run: Run, sqs: Sqs, queue: str) -> None:
    assert run("receive", queue) == (1, "", "elasticq: no message\n")
    sqs.send_message(
        QueueUrl=url_of(sqs, queue),
        MessageBody="two\nlines \u202e",
        MessageGroupId="g",
        MessageAttributes={"colour": {"DataType": "String", "StringValue": "red"}},
    )
    status, out, err = run("receive", queue)
    head, *body = out.splitlines()
    assert (status, body) == (0, ["two", "lines \\u202e"])
    assert head.split("  ")[1:] == ["received 1", "group g", "colour=red"]
    assert err == "elasticq: 1 message received and not deleted: --delete deletes, --peek only shows\n"
    assert states(sqs, queue) == ["inflight"]


def test_received_messages_are_deleted_on_request(run: Run, sqs: Sqs, queue: str) -> None:
    send(sqs, queue, *map(str, range(25)))
    status, out, err = run("receive", queue, "--max", "23", "--delete", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (status, err, len(lines)) == (0, "", 23)
    assert {"MessageBody", "MessageId", "ReceiptHandle", "ReceiveCount"} <= set(lines[0])
    left = {str(number) for number in range(25)} - {line["MessageBody"] for line in lines}
    assert states(sqs, queue) == ["visible"] * 2
    assert {each["Body"] for each in sqs.peek(QueueUrl=url_of(sqs, queue))["Messages"]} == left


def test_a_visibility_timeout_of_0_returns_the_message(run: Run, sqs: Sqs, queue: str) -> None:
    send(sqs, queue, "x")
    assert run("receive", queue, "--visibility-timeout", "0")[0] == 0
    assert states(sqs, queue) == ["visible"]
    assert run("receive", queue)[0] == 0


def test_peek_shows_visible_messages_and_takes_none(run: Run, sqs: Sqs, queue: str) -> None:
    send(sqs, queue, "a", "b", "c")
    taken = sqs.receive_message(QueueUrl=url_of(sqs, queue))["Messages"][0]["Body"]
    status, out, err = run("receive", queue, "--peek", "-n", "5", "--json")
    assert (status, err) == (0, "")
    assert [json.loads(line)["MessageBody"] for line in out.splitlines()] == sorted({"a", "b", "c"} - {taken})
    assert len(run("receive", queue, "--peek", "--json")[1].splitlines()) == 1
    assert states(sqs, queue).count("inflight") == 1
    with pytest.raises(SystemExit):
        run("receive", queue, "--peek", "--delete")
    with pytest.raises(SystemExit):
        run("receive", queue, "-n", "0")


def command(url: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "elasticq", "queues", *arguments, "--url", url, "--region", "us-east-1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_receive_waits_for_a_message() -> None:
    with Server() as server, Sqs(server.url, "us-east-1") as sqs:
        sqs.create_queue(QueueName="slow")
        with command(server.url, "receive", "slow", "--wait", "60", "--json") as waiting:
            operator = Operator(server.admin())
            until(lambda: operator.get("/api/waiting")["waiting"], "the receive waits")
            send(sqs, "slow", "late")
            out, _ = waiting.communicate(timeout=PATIENCE_S)
    assert (waiting.returncode, json.loads(out)["MessageBody"]) == (0, "late")


def test_tail_shows_what_is_sent_from_now_on_and_takes_nothing(server: ElasticQ, sqs: Sqs, queue: str) -> None:
    send(sqs, queue, "before")
    with command(server.endpoint_url, "tail", queue, "--json") as following:
        assert following.stdout is not None
        assert following.stderr is not None
        assert following.stderr.readline() == f"elasticq: following {queue}; Ctrl-C ends\n"
        send(sqs, queue, "first")
        assert json.loads(following.stdout.readline())["MessageBody"] == "first"
        sqs.send_message(QueueUrl=url_of(sqs, queue), MessageBody="later", DelaySeconds=600)
        send(sqs, queue, *map(str, range(1_100)))
        lines = [json.loads(following.stdout.readline()) for _ in range(1_101)]
        assert [line["MessageBody"] for line in lines] == ["later", *map(str, range(1_100))]
        assert lines[0]["State"] == "delayed"
        following.send_signal(signal.SIGINT)
        assert following.communicate(timeout=PATIENCE_S) == ("", "")
    assert following.returncode == 0
    assert set(states(sqs, queue)) == {"visible", "delayed"}


def test_tail_of_one_group_ends_after_so_many(server: ElasticQ, sqs: Sqs, queue: str) -> None:
    with command(server.endpoint_url, "tail", queue, "--group", "b", "-n", "2") as following:
        assert following.stderr is not None
        following.stderr.readline()
        for number in range(6):
            group = "ab"[number % 2]
            sqs.send_message(QueueUrl=url_of(sqs, queue), MessageBody=str(number), MessageGroupId=group)
        out, _ = following.communicate(timeout=PATIENCE_S)
    assert following.returncode == 0
    assert out.splitlines()[1::2] == ["1", "3"]
