"""A boto3 client in our wrapper waits out servers and clusters that are gone, with one effect for each call."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ParamValidationError

from elasticq.client import wrap
from tests.system.cluster.cluster import Cluster, let_pass, until


def client(url: str) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"max_attempts": 1}),
    )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, 1)
    made.start()
    yield made
    made.end()


class Scripted:
    """An HTTP server that answers with the statuses it was told, then with an empty object; ``seen``: the requests."""

    def __init__(self, *statuses: int, path: str = "/", body: object = None) -> None:
        self.seen: list[dict[str, str]] = []
        left = list(statuses)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                outer.seen.append(dict(self.headers))
                self._answer(left.pop(0) if left else 200, {})

            def do_GET(self) -> None:
                self._answer(200 if self.path == path else 404, body)

            def _answer(self, status: int, members: object) -> None:
                data = json.dumps(members).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self) -> "Scripted":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def test_all_tries_of_a_call_are_one_call_to_the_server() -> None:
    with Scripted(503, 500, 429) as server:
        sqs = wrap(client(server.url))
        sqs.list_queues()
        sqs.list_queues()
    ids = [seen["amz-sdk-invocation-id"] for seen in server.seen]
    assert len(ids) == 5
    assert len(set(ids[:4])) == 1
    assert ids[4] != ids[0], "the next call is another one"


def test_what_cannot_become_better_is_raised_at_once() -> None:
    with Scripted(400) as server:
        sqs = wrap(client(server.url))
        with pytest.raises(ClientError):
            sqs.list_queues()
        with pytest.raises(ParamValidationError):
            sqs.get_queue_url()
        assert len(server.seen) == 1
        assert sqs.meta.endpoint_url == server.url, "all else is the client's"


def test_call_whose_time_is_up_raises_what_it_met_last() -> None:
    with Scripted(*[503] * 50) as server:
        sqs = wrap(client(server.url), max_wait_s=0.5)
        with pytest.raises(ClientError, match="503"):
            sqs.list_queues()
    assert 1 < len(server.seen) < 50


def test_other_endpoints_are_tried_and_learnt_from_the_cluster(cluster: Cluster) -> None:
    member = cluster["n1"]
    nobody = "http://127.0.0.1:9"
    given = wrap(client(nobody), endpoints=[f"http://127.0.0.1:{member.port}"])
    given.create_queue(QueueName="given")
    learnt = wrap(client(nobody), admin=[nobody, f"http://127.0.0.1:{member.admin_port}"])
    assert learnt.get_queue_url(QueueName="given")["QueueUrl"].endswith("/given")


def test_client_beside_its_wrapper_is_as_it_was() -> None:
    with Scripted() as server:
        plain = client(server.url)
        wrap(plain, endpoints=["http://127.0.0.1:9"]).list_queues()
        plain.list_queues()
    first, second = (seen["amz-sdk-invocation-id"] for seen in server.seen)
    assert first != second


def test_server_that_is_gone_for_a_while_is_waited_for(cluster: Cluster) -> None:
    """Killed under calls: each send is there once, and none saw an exception."""
    member = cluster["n1"]
    sqs = wrap(client(f"http://127.0.0.1:{member.port}"))
    url = sqs.create_queue(QueueName="gone")["QueueUrl"]
    over, failures, sent = threading.Event(), list[BaseException](), list[str]()

    def produce(number: int) -> None:
        count = 0
        try:
            while not over.is_set():
                count += 1
                sqs.send_message(QueueUrl=url, MessageBody=f"{number}-{count}")
                sent.append(f"{number}-{count}")
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()

    def go_on() -> None:
        reached = len(sent) + 30
        until(lambda: len(sent) >= reached or failures, "sends go on")

    go_on()
    member.kill9()
    let_pass(1.5)
    member.start()
    go_on()
    over.set()
    for thread in threads:
        thread.join()
    assert failures == []
    found: list[str] = []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=600).get("Messages"):
        found += [message["Body"] for message in messages]
    assert sorted(found) == sorted(sent)


def test_sends_to_a_group_stay_in_order_while_the_server_is_gone(cluster: Cluster) -> None:
    member = cluster["n1"]
    sqs = wrap(client(f"http://127.0.0.1:{member.port}"))
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    url = sqs.create_queue(QueueName="order.fifo", Attributes=attributes)["QueueUrl"]
    member.kill9()
    began: list[int] = []

    def send(number: int) -> None:
        began.append(number)
        if number % 2:
            sqs.send_message(QueueUrl=url, MessageBody=str(number), MessageGroupId="g")
        else:
            entries = [{"Id": "a", "MessageBody": str(number), "MessageGroupId": "g"}]
            sqs.send_message_batch(QueueUrl=url, Entries=entries)

    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=send, args=(number,)))
        threads[-1].start()
        until(lambda number=number: number in began, "it has begun")
    member.start()
    for thread in threads:
        thread.join()
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    bodies = [message["Body"] for message in messages]
    assert bodies == ["0", "1", "2", "3", "4"]
