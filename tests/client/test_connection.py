"""One connection of the light client: every framing of an answer, time-outs, and answers that are cut."""

import socket
import threading

import pytest

from elasticq.client import Sqs, Unreachable
from tests.client.scripted import CUT, KEY, Scripted, answer, client


def test_each_thread_has_its_own_connection() -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        threads = [threading.Thread(target=sqs.list_queues) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert (len(server.requests), server.connections) == (3, 3)


def test_connection_ends_with_its_thread() -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        thread = threading.Thread(target=sqs.list_queues)
        thread.start()
        thread.join(10)
        assert server.closed.get(timeout=10)


def test_connection_that_was_closed_meanwhile_is_opened_again_at_once() -> None:
    with Scripted([answer({}), CUT], answer({"QueueUrls": ["u"]})) as server, client(server, retry_s=0) as sqs:
        sqs.list_queues()
        assert sqs.list_queues()["QueueUrls"] == ["u"]
        assert server.connections == 2


def test_refused_connection_is_unreachable_and_an_oserror() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        sqs = Sqs(f"http://127.0.0.1:{unused.getsockname()[1]}", "us-east-1", KEY, retry_s=0)
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1") as caught:
            sqs.list_queues()
    assert isinstance(caught.value, OSError)


def test_server_that_says_nothing_times_out() -> None:
    with Scripted([]) as server, client(server, retry_s=0, read_s=0.05) as sqs, pytest.raises(Unreachable):
        sqs.list_queues()


def test_receive_may_wait_longer_than_the_read_time_out() -> None:
    with Scripted(answer({})) as server, client(server, read_s=0.05) as sqs:
        assert "Messages" not in sqs.receive_message(QueueUrl="u", WaitTimeSeconds=1)


@pytest.mark.parametrize(
    "written",
    [
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n4\r\n: 1}\r\n0\r\n\r\n',
        b'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 8\r\n\r\n{"a": 1}',
        b'HTTP/1.0 200 OK\r\nContent-Length: 8\r\n\r\n{"a": 1}',
    ],
)
def test_every_framing_of_an_answer_is_read_byte_by_byte(written: bytes) -> None:
    with Scripted([bytes((byte,)) for byte in written]) as server, client(server) as sqs:
        assert sqs.list_queues()["a"] == sqs.list_queues()["a"] == 1


def test_answer_without_a_length_ends_with_its_connection() -> None:
    with Scripted([b'HTTP/1.1 200 OK\r\n\r\n{"a": 1}', CUT]) as server, client(server) as sqs:
        assert sqs.list_queues()["a"] == 1


@pytest.mark.parametrize("written", [b"SSH-2.0-x\r\n\r\n", answer(b"[1]"), answer(b"OK")])
def test_what_is_no_sqs_answer_is_unreachable(written: bytes) -> None:
    with Scripted(written) as server, client(server, retry_s=0) as sqs, pytest.raises(Unreachable):
        sqs.list_queues()
