"""A boto3 client in our wrapper waits out servers and clusters that are gone, with one effect for each call."""

import gc
import json
import signal
import socket
import ssl
import threading
import weakref
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError, ParamValidationError, SSLError

from elasticq.client import wrap
from elasticq.client.lines import Lines, Place
from tests.client import scripted
from tests.client.scripted import CUT, answer, failure
from tests.peers.test_tls import Authority
from tests.system.cluster.cluster import Cluster, let_pass, until

NOBODY = "http://127.0.0.1:9"
BUSY = failure("ServiceUnavailable", "503 Service Unavailable")
FIFO = "http://127.0.0.1:9/000000000000/orders.fifo"


def client(url: str, service: str = "sqs", **more: Any) -> Any:
    return boto3.client(
        service,
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"max_attempts": 1}),
        **more,
    )


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
        sqs = wrap(client(server.url), max_wait_s=2)
        with pytest.raises(ClientError, match="503"):
            sqs.list_queues()
    assert 1 < len(server.seen) < 50


def test_other_endpoints_are_tried_and_learnt_from_the_cluster(cluster: Cluster) -> None:
    member = cluster["n1"]
    given = wrap(client(NOBODY), endpoints=[f"http://127.0.0.1:{member.port}"])
    given.create_queue(QueueName="given")
    learnt = wrap(client(NOBODY), admin=[NOBODY, f"http://127.0.0.1:{member.admin_port}"])
    assert learnt.get_queue_url(QueueName="given")["QueueUrl"].endswith("/given")


def test_client_beside_its_wrapper_is_as_it_was() -> None:
    with Scripted() as server:
        plain = client(server.url)
        wrap(plain, endpoints=[NOBODY]).list_queues()
        plain.list_queues()
    first, second = (seen["amz-sdk-invocation-id"] for seen in server.seen)
    assert first != second


def test_client_does_not_keep_its_wrappers() -> None:
    plain = client(NOBODY)
    gone = weakref.ref(wrap(plain))
    gc.collect()
    assert gone() is None


def test_client_of_another_service_is_refused() -> None:
    with pytest.raises(ValueError, match="for sns"):
        wrap(client(NOBODY, "sns"))


def test_without_time_there_is_one_try() -> None:
    with scripted.Scripted(BUSY) as server:
        sqs = wrap(client(server.endpoint), endpoints=[NOBODY], max_wait_s=0)
        with pytest.raises(ClientError, match="ServiceUnavailable"):
            sqs.list_queues()
        with pytest.raises(EndpointConnectionError):
            wrap(client(NOBODY), max_wait_s=0).list_queues()
        assert len({scripted.headers(each)["amz-sdk-invocation-id"] for each in server.requests}) == 1


def test_pages_are_waited_for_too() -> None:
    first = answer({"QueueUrls": ["one"], "NextToken": "t"})
    with scripted.Scripted(BUSY, BUSY, first, CUT, BUSY, BUSY, answer({"QueueUrls": ["two"]})) as server:
        pages = wrap(client(server.endpoint)).get_paginator("list_queues").paginate(MaxResults=1)
        assert [url for page in pages for url in page["QueueUrls"]] == ["one", "two"]


@pytest.mark.parametrize("cut", [CUT, [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", CUT]])
def test_answer_that_is_cut_is_none(cut: scripted.Pieces) -> None:
    """boto3 takes what is cut in its body for an answer without members: a receive that found nothing."""
    with scripted.Scripted(cut, cut, cut, answer({"QueueUrls": ["one"]})) as server:
        assert wrap(client(server.endpoint)).list_queues()["QueueUrls"] == ["one"]


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_server_that_goes_away_in_a_handshake_is_waited_for(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "one")
    files = authority.settings("server")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files["tls_cert"], files["tls_key"])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        met: list[bytes] = []

        def serve() -> None:
            for _ in range(3):
                going, _ = listener.accept()
                met.append(going.recv(65_536)[:1])
                going.close()
            staying = tls.wrap_socket(listener.accept()[0], server_side=True)
            next(scripted.requests(staying.recv))
            staying.sendall(answer({"QueueUrls": ["one"]}))
            staying.close()

        thread = threading.Thread(target=serve)
        thread.start()
        assert wrap(client(url, verify=False)).list_queues()["QueueUrls"] == ["one"]
        thread.join()
        assert met == [b"\x16"] * 3, "they were handshakes"


def test_certificate_of_another_authority_is_refused_at_once(tmp_path: Path) -> None:
    files = Authority(tmp_path, "one").settings("server")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files["tls_cert"], files["tls_key"])
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for _ in range(2):  # what boto3 makes of one try
                with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
                    tls.wrap_socket(listener.accept()[0], server_side=True)

        thread = threading.Thread(target=serve)
        thread.start()
        other = Authority(tmp_path, "two").ca
        sqs = wrap(client(f"https://127.0.0.1:{listener.getsockname()[1]}", verify=str(other)))
        with pytest.raises(SSLError, match="CERTIFICATE_VERIFY_FAILED"):
            sqs.list_queues()
        thread.join()


def test_entries_of_a_batch_that_the_server_could_not_take_are_sent_again() -> None:
    url = "http://127.0.0.1:9/000000000000/orders"
    entries = [{"Id": each, "MessageBody": each} for each in ("good", "late", "bad")]
    bad = {"Id": "bad", "SenderFault": True, "Code": "InvalidMessageContents"}
    late = {"Id": "late", "SenderFault": False, "Code": "InternalFailure"}
    sent = [{"Id": each, "MessageId": each, "MD5OfMessageBody": "m"} for each in ("good", "late")]
    script = (
        answer({"Successful": sent[:1], "Failed": [late, bad]}),
        BUSY,
        answer({"Failed": [late]}),
        answer({"Successful": sent[1:], "Failed": []}),
    )
    with scripted.Scripted(*script) as server:
        made = wrap(client(server.endpoint)).send_message_batch(QueueUrl=url, Entries=entries)
    assert [each["Id"] for each in made["Successful"]] == ["good", "late"]
    assert made["Failed"] == [bad]
    tried = [json.loads(each.partition(b"\r\n\r\n")[2])["Entries"] for each in server.requests]
    assert [[entry["Id"] for entry in each] for each in tried] == [["good", "late", "bad"]] + [["late"]] * 3


def test_batch_whose_rest_finds_nobody_tells_what_was_sent() -> None:
    url = "http://127.0.0.1:9/000000000000/orders"
    late = {"Id": "late", "SenderFault": False, "Code": "ServiceUnavailable"}
    done = answer({"Successful": [{"Id": "good"}], "Failed": [late]})
    with scripted.Scripted(done, CUT) as server:
        entries = [{"Id": each, "ReceiptHandle": each} for each in ("good", "late")]
        made = wrap(client(server.endpoint), max_wait_s=1).delete_message_batch(QueueUrl=url, Entries=entries)
    assert (made["Successful"], made["Failed"]) == ([{"Id": "good"}], [late])


def test_sends_behind_one_that_gives_up_fail_with_it_untried() -> None:
    with scripted.Scripted(BUSY) as server:
        sqs = wrap(client(server.endpoint), max_wait_s=2)
        failures: dict[str, BaseException] = {}

        def send(body: str, group: str) -> None:
            try:
                sqs.send_message(QueueUrl=FIFO, MessageBody=body, MessageGroupId=group, MessageDeduplicationId=body)
            except ClientError as failure:
                failures[body] = failure

        threads = [threading.Thread(target=send, args=each) for each in (("first", "g"), ("second", "g"))]
        for thread in threads:
            thread.start()
            until(lambda: server.requests, "the first one is tried")
        for thread in threads:
            thread.join()
    assert all(b'"first"' in each for each in server.requests)
    assert sorted(failures) == ["first", "second"]
    assert failures["second"] is not failures["first"]
    assert failures["second"].__cause__ is failures["first"]
    assert "not tried" in failures["second"].__notes__[0]


def test_send_behind_one_that_is_refused_goes_on() -> None:
    refusal = failure("InvalidMessageContents", "400 Bad Request")
    with scripted.Scripted(BUSY, BUSY, refusal, answer({"MessageId": "m"})) as server:
        sqs = wrap(client(server.endpoint))
        refused: list[ClientError] = []

        def send_what_is_refused() -> None:
            try:
                sqs.send_message(QueueUrl=FIFO, MessageBody="bad", MessageGroupId="g", MessageDeduplicationId="bad")
            except ClientError as failure:
                refused.append(failure)

        thread = threading.Thread(target=send_what_is_refused)
        thread.start()
        until(lambda: server.requests, "the first one is tried")
        good = sqs.send_message(QueueUrl=FIFO, MessageBody="good", MessageGroupId="g", MessageDeduplicationId="good")
        thread.join()
    assert good["MessageId"] == "m"
    assert len(refused) == 1


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Processes that a shell started in the background ignore SIGINT, and those that they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("is_first", [True, False], ids=["while it is tried", "while it waits for its turn"])
@pytest.mark.usefixtures("interruptible")
def test_interrupt_ends_a_call_and_holds_up_nobody(is_first: bool) -> None:
    """Ctrl-C in the main thread; another thread's send to the group goes on as soon as the server does."""
    gate = threading.Event()
    with scripted.Scripted(*[BUSY] * 4, [gate, BUSY], answer({"MessageId": "m"})) as server:
        sqs = wrap(client(server.endpoint))
        sent: list[str] = []

        def send(body: str) -> None:
            sqs.send_message(QueueUrl=FIFO, MessageBody=body, MessageGroupId="g", MessageDeduplicationId=body)
            sent.append(body)

        def interrupt() -> None:
            main = threading.main_thread().ident
            assert main is not None
            until(lambda: len(server.requests) > 4, "the gate is reached")
            signal.pthread_kill(main, signal.SIGINT)

        other = threading.Thread(target=send, args=("other",))
        interrupter = threading.Thread(target=interrupt)
        if not is_first:
            other.start()
            until(lambda: server.requests, "the other one is tried")
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            send("interrupted")
        gate.set()
        if is_first:
            other.start()
        other.join()
        interrupter.join()
    assert sent == ["other"]
    assert all((b'"interrupted"' in each) != (b'"other"' in each) for each in server.requests)
    assert any(b'"interrupted"' in each for each in server.requests) is is_first


def test_one_address_of_a_cluster_is_enough(tmp_path: Path) -> None:
    """The member that a client knows dies, and its admin port with it."""
    cluster = Cluster(tmp_path, 3)
    try:
        cluster.start()
        known = cluster["n1"]
        sqs = wrap(client(f"http://127.0.0.1:{known.port}"), admin=[f"http://127.0.0.1:{known.admin_port}"])
        url = sqs.create_queue(QueueName="one-address")["QueueUrl"]
        known.kill9()
        sent = sqs.send_message(QueueUrl=url, MessageBody="to the others")
        [received] = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
        assert received["MessageId"] == sent["MessageId"]
    finally:
        cluster.end()


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


def test_sends_to_a_group_stay_in_order_while_the_server_is_gone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[Place] = []
    join = Lines.join

    def noting(lines: Lines, place: Place) -> None:
        join(lines, place)
        joined.append(place)

    monkeypatch.setattr(Lines, "join", noting)
    member = cluster["n1"]
    sqs = wrap(client(f"http://127.0.0.1:{member.port}"))
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    url = sqs.create_queue(QueueName="order.fifo", Attributes=attributes)["QueueUrl"]
    member.kill9()

    def send(number: int) -> None:
        if number % 2:
            sqs.send_message(QueueUrl=url, MessageBody=str(number), MessageGroupId="g")
        else:
            entries = [{"Id": "a", "MessageBody": str(number), "MessageGroupId": "g"}]
            sqs.send_message_batch(QueueUrl=url, Entries=entries)

    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=send, args=(number,)))
        threads[-1].start()
        until(lambda number=number: len(joined) > number, "it stands in the line")
    member.start()
    for thread in threads:
        thread.join()
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    bodies = [message["Body"] for message in messages]
    assert bodies == ["0", "1", "2", "3", "4"]
