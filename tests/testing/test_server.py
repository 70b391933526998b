"""The embedded server: in a thread and in a process, sync and async; what it starts it ends."""

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from elasticq.server.settings import SettingsError
from elasticq.testing import CallFailed, ElasticQ
from elasticq.testing.view import View

START_S, STOP_S = 0.3, 0.05


def open_files() -> set[str]:
    """Sockets, pipes and files of this process."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except FileNotFoundError:
            continue
    return found


def curl(url: str, body: bytes, method: str = "POST") -> bytes:
    """A request that knows nothing of AWS."""
    with urllib.request.urlopen(urllib.request.Request(url, body, method=method), timeout=10) as answer:
        return bytes(answer.read())


# --- topics -------------------------------------------------------------------------


def test_a_topic_gives_its_messages_to_queues(view: View) -> None:
    queue = view.queue("jobs").create()
    topic = view.topic("news").create(DisplayName="News")
    topic.subscribe(queue, FilterPolicy={"kind": ["a"]})
    topic.subscribe("arn:aws:lambda:us-east-1:000000000000:function:f")
    kind = {"kind": {"DataType": "String", "StringValue": "a"}}
    message_id = topic.publish("x", MessageAttributes=kind)
    topic.publish("y")
    assert [json.loads(each["Body"])["MessageId"] for each in queue.peek()] == [message_id]
    assert {each["Protocol"] for each in topic.subscriptions()} == {"sqs", "lambda"}
    assert topic.attributes()["DisplayName"] == "News"
    view.reset()
    assert view.topics() == []
    with pytest.raises(CallFailed, match="NotFound"):
        topic.publish("z")


# --- life ---------------------------------------------------------------------------


def test_boto3_works_with_an_embedded_server(view: View) -> None:
    sqs = view.client()
    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="hello")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert message["Body"] == "hello"
    assert view.queue("jobs").counts() == {"visible": 0, "in_flight": 1, "delayed": 0}
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    view.queue("jobs").wait_until_empty()


def test_a_queue_is_created_with_policies_as_dicts_and_with_truth_values(view: View) -> None:
    dead = view.queue("dead.fifo").create(FifoQueue=True, ContentBasedDeduplication=True)
    policy = {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 3}
    jobs = view.queue("jobs.fifo").create(RedrivePolicy=policy, VisibilityTimeout=5, DelaySeconds="1")
    found = jobs.attributes()
    assert json.loads(found["RedrivePolicy"]) == policy
    assert (found["VisibilityTimeout"], found["DelaySeconds"]) == ("5", "1")
    assert dead.attributes()["ContentBasedDeduplication"] == "true"


def test_nothing_is_left_of_a_server_that_stopped() -> None:
    with ElasticQ() as server:  # what is imported late is open from now on
        server.client().list_queues()
        server.clock.now()
    threads, files = set(threading.enumerate()), open_files()
    for _ in range(3):
        with ElasticQ() as server:
            queue = server.queue("jobs").create()
            server.client().receive_message(QueueUrl=queue.url)
            server.clock.advance(1)
            with server.fault("ReceiveMessage", "delay", delay_ms=60_000):
                server.queue("jobs").send("x")
    assert set(threading.enumerate()) == threads
    assert open_files() == files


def test_server_starts_and_stops_in_the_promised_time() -> None:
    starts, stops = [], []
    for _ in range(5):
        began = time.perf_counter()
        server = ElasticQ()
        server.start()
        served = time.perf_counter()
        server.client().list_queues()
        stopping = time.perf_counter()
        server.stop()
        starts.append(served - began)
        stops.append(time.perf_counter() - stopping)
    assert statistics.median(starts) < START_S
    assert statistics.median(stops) < STOP_S


def test_long_poll_is_answered_when_the_server_stops() -> None:
    server = ElasticQ()
    server.start()
    queue, sqs = server.queue("jobs").create(), server.client()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(sqs.receive_message, QueueUrl=queue.url, WaitTimeSeconds=20)
        assert server._thread is not None
        while not server._thread.ask(lambda: server._member.runtime.status().waiters):  # type: ignore[union-attr]
            pass
        server._clients.clear()  # the client is in use
        server.stop()
        assert "Messages" not in answer.result(10)
    sqs.close()


def test_queues_of_the_settings_are_there_from_the_start() -> None:
    with ElasticQ(settings={"queues": {"jobs": {"visibility_timeout_s": 7}}}) as server:
        assert server.queue("jobs").attributes()["VisibilityTimeout"] == "7"


def test_two_servers_at_once_know_nothing_of_each_other() -> None:
    with ElasticQ() as one, ElasticQ() as other:
        one.queue("jobs").create()
        assert one.queues() == ["jobs"]
        assert other.queues() == []


def test_server_may_start_again() -> None:
    server = ElasticQ()
    for _ in range(2):
        with server:
            assert server.queues() == []
            server.queue("jobs").create()
    server.stop()


def test_server_that_is_not_running_says_so() -> None:
    with pytest.raises(AssertionError, match="not running"):
        _ = ElasticQ().endpoint_url


def test_taken_port_and_unknown_setting_are_errors_and_leave_nothing() -> None:
    threads = threading.active_count()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            ElasticQ(port=taken.getsockname()[1]).start()
    with pytest.raises(SettingsError):
        ElasticQ(settings={"http": {"prot": 1}}).start()
    assert threading.active_count() == threads


def test_data_directory_keeps_messages_and_clock(tmp_path: Path) -> None:
    with ElasticQ(data_dir=tmp_path) as server:
        server.queue("jobs").create().send("kept")
        told = server.clock.advance(3_600)
        assert told > time.time() + 3_590
    with ElasticQ(data_dir=tmp_path) as server:
        assert server.queue("jobs").visible() == 1
        assert server.clock.now() >= told


def test_server_in_a_process_does_the_same() -> None:
    threads = threading.active_count()
    with ElasticQ(process=True) as server:
        queue = server.queue("jobs").create(VisibilityTimeout=30)
        queue.send("x")
        sqs = server.client()
        assert len(sqs.receive_message(QueueUrl=queue.url)["Messages"]) == 1
        server.clock.advance(30)
        assert queue.visible() == 1
        with server.fault("ReceiveMessage", "throttle", times=1), pytest.raises(ClientError, match="RequestThrottled"):
            server.client(config=_no_retries()).receive_message(QueueUrl=queue.url)
    assert threading.active_count() == threads


ORPHAN = """
import signal, sys
from elasticq.testing import ElasticQ
server = ElasticQ(process=True)
server.start()
print(server.endpoint_url, flush=True)
signal.pause()
"""


def test_process_ends_when_its_parent_is_killed() -> None:
    """Seen by a connection that ends, long before the server would end an idle one."""
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline().rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: test\r\n\r\n")
            assert b"200 OK" in client.recv(65_536)
            parent.kill()
            while client.recv(65_536):
                pass


def test_process_that_cannot_start_tells_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="prot"):
        ElasticQ(process=True, settings={"http": {"prot": 1}}).start()


def _no_retries() -> Any:
    from botocore.config import Config

    return Config(retries={"total_max_attempts": 1})


# --- async --------------------------------------------------------------------------


async def test_async_server_blocks_no_loop() -> None:
    async with ElasticQ() as server:
        queue = await server.queue("jobs").create(VisibilityTimeout=30)
        await queue.send("x")
        sqs = server.client()
        got = await asyncio.to_thread(sqs.receive_message, QueueUrl=queue.url)
        assert await queue.in_flight() == 1
        emptied = asyncio.create_task(queue.wait_until_empty(10))
        assert await server.clock.advance(30) > time.time()
        assert await queue.counts() == {"visible": 1, "in_flight": 0, "delayed": 0}
        async with server.fault("SendMessage", "error500", times=2) as fault:
            await asyncio.to_thread(sqs.send_message, QueueUrl=queue.url, MessageBody="again")
            assert await fault.struck() == 2
        assert not emptied.done()
        await asyncio.to_thread(
            sqs.delete_message, QueueUrl=queue.url, ReceiptHandle=got["Messages"][0]["ReceiptHandle"]
        )
        await queue.purge()
        await emptied
        assert await server.queues() == ["jobs"]
        assert await server.reset() == 1
    assert len(asyncio.all_tasks()) == 1


# --- accounts, threads ----------------------------------------------------------------


def test_views_of_two_accounts_never_meet(server: ElasticQ, view: View) -> None:
    view.queue("jobs").create()
    other = server.view("2" * 12)
    assert other.queues() == []
    other.queue("jobs").create().send("theirs")
    assert view.queue("jobs").visible() == 0
    assert other.reset() == 1
    assert view.queues() == ["jobs"]
    other.close()


def test_many_threads_share_one_server(view: View) -> None:
    queue = view.queue("jobs").create()

    def work(number: int) -> int:
        sqs = view.client()
        for at in range(10):
            sqs.send_message(QueueUrl=queue.url, MessageBody=f"{number}-{at}")
        done = 0
        while done < 10:
            for message in sqs.receive_message(
                QueueUrl=queue.url, MaxNumberOfMessages=10 - done, WaitTimeSeconds=5
            ).get("Messages", []):
                sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=message["ReceiptHandle"])
                done += 1
        return done

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 80
    queue.wait_until_empty()


def test_wait_until_empty_tells_what_is_left(view: View) -> None:
    queue = view.queue("jobs").create(DelaySeconds=60)
    queue.send("x")
    with pytest.raises(TimeoutError, match="'delayed': 1"):
        queue.wait_until_empty(0)


def test_environment_leads_any_client_to_the_server(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    import boto3

    for name, value in view.environment.items():
        monkeypatch.setenv(name, value)
    view.queue("jobs").create()
    sqs = boto3.session.Session().client("sqs")
    assert sqs.list_queues()["QueueUrls"] == [view.queue("jobs").url]
    sqs.close()


def test_queue_knows_its_arn_and_fifo_by_its_name(view: View) -> None:
    queue = view.queue("orders.fifo").create()
    assert queue.attributes()["FifoQueue"] == "true"
    assert queue.attributes()["QueueArn"] == queue.arn
    queue.delete()
    with pytest.raises(CallFailed) as caught:
        queue.counts()
    assert caught.value.code == "QueueDoesNotExist"


# --- by HTTP, from any language --------------------------------------------------------


def test_clock_is_moved_by_a_plain_request(server: ElasticQ) -> None:
    before = server.clock.now()
    answer = curl(f"{server.endpoint_url}/_elasticq/clock", b'{"advance": 90.5}')
    assert b'"time":' in answer
    assert server.clock.now() >= before + 90.5


def test_clock_wakes_a_long_poll_of_boto3(view: View) -> None:
    queue = view.queue("jobs").create(DelaySeconds=900)
    queue.send("late")
    sqs = view.client()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(sqs.receive_message, QueueUrl=queue.url, WaitTimeSeconds=20)
        view.clock.advance(900)
        assert [message["Body"] for message in answer.result(15)["Messages"]] == ["late"]


def test_clock_brings_a_message_that_is_scheduled_for_a_time_months_ahead(view: View) -> None:
    queue = view.queue("jobs").create(ElasticqSchedule=True, VisibilityTimeout=0)
    sqs, months_s = view.client(), 90 * 86_400
    at = {"DataType": "Number", "StringValue": str(int((view.clock.now() + months_s) * 1_000))}
    sqs.send_message(QueueUrl=queue.url, MessageBody="at last", MessageAttributes={"ElasticqDeliverAt": at})
    view.clock.advance(months_s - 60)
    assert "Messages" not in sqs.receive_message(QueueUrl=queue.url)
    view.clock.advance(60)
    assert sqs.receive_message(QueueUrl=queue.url)["Messages"][0]["Body"] == "at last"


def test_moto_reset_empties_everything() -> None:
    with ElasticQ() as server:
        server.queue("jobs").create()
        server.view("3" * 12).queue("theirs").create()
        assert curl(f"{server.endpoint_url}/moto-api/reset", b"") == b'{"status":"ok"}'
        assert server.queues() == server.view("3" * 12).queues() == []


def test_strict_gets_are_a_setting() -> None:
    for csrf, status in (("on", 200), ("strict", 403)):
        with ElasticQ(settings={"auth": {"csrf": csrf}}) as server:
            connection = HTTPConnection(server.endpoint_url.removeprefix("http://"))
            connection.request("GET", "/?Action=CreateQueue&QueueName=jobs")
            assert connection.getresponse().status == status
            connection.close()
