"""What plain boto3 sees through a proxy beside it, with no member on its way: nothing, whatever befalls the members."""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.system.cluster.beside import Beside, beside
from tests.system.cluster.cluster import HOST, Cluster, ask, until
from tests.system.cluster.conftest import MakeCluster
from tests.system.cluster.plain import Plain, kill_masters

KILLS = 2


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Beside]:
    with beside(cluster) as found:
        until(found.is_ready, f"the proxy is ready: {found.said()}")
        yield found


@pytest.fixture
def small(make_cluster: MakeCluster) -> Cluster:
    """One that is master of itself."""
    return make_cluster(1).start()


@pytest.fixture
def beside_small(small: Cluster) -> Iterator[Beside]:
    with beside(small) as found:
        yield found


@pytest.mark.chaos
def test_killed_masters_are_not_noticed_through_a_proxy(cluster: Cluster, proxy: Beside) -> None:
    with Plain(proxy, "unnoticed") as plain:
        gaps_s = kill_masters(cluster, plain, KILLS, cluster.master)
        verdict = plain.judge()
    print(f"{KILLS} kills, {verdict.calls} calls, gaps {[round(gap_s, 3) for gap_s in gaps_s]} s")
    assert not plain.exceptions
    verdict.assert_unnoticed()


@pytest.mark.parametrize("how", ["kill9", pytest.param("stop", marks=pytest.mark.chaos)])
def test_a_whole_cluster_that_restarts_is_not_noticed_through_a_proxy(
    cluster: Cluster, proxy: Beside, how: str
) -> None:
    with Plain(proxy, "reborn") as plain:
        plain.wait_for(100)
        began_s = time.monotonic()
        for name in cluster.names():
            getattr(cluster, how)(name)
        assert not cluster.running()
        until(lambda: not proxy.is_ready(), "the proxy notices")
        for name in cluster.names():
            cluster[name].start()
        plain.wait_for(100)
        verdict = plain.judge()
    print(f"{how} of all, {verdict.calls} calls, gap {plain.gap_s(began_s):.3f} s")
    assert not plain.exceptions
    verdict.assert_unnoticed()


@pytest.mark.chaos
def test_members_that_restart_one_after_another_are_not_noticed_through_a_proxy(
    cluster: Cluster, proxy: Beside
) -> None:
    with Plain(proxy, "rolling") as plain:
        for name in cluster.names():
            plain.wait_for(50)
            assert cluster[name].stop() == 0
            plain.wait_for(50)
            cluster.restart(name)
            cluster.wait_ready()
        verdict = plain.judge()
    assert not plain.exceptions
    verdict.assert_unnoticed()


def test_it_counts_for_nothing_in_its_cluster(cluster: Cluster, proxy: Beside) -> None:
    """Not for a quorum, not for an order, not for verify."""
    master = cluster.master()
    status = cluster[master].status()
    assert status["proxies"] == ["web1"]
    assert [member["name"] for member in status["members"]] == cluster.names()
    assert "proxies linked: web1" in cluster.operate("status", by=master)
    assert cluster.try_operate("add", "web1").returncode == 1
    assert cluster.try_operate("transfer", "web1").returncode == 1
    cluster.same_rows()
    cluster.operate("transfer")
    moved = cluster.master(other_than=master)
    assert cluster.try_operate("status", by=moved).returncode == 0
    for name in cluster.followers():
        cluster.kill9(name)
    until(lambda: not cluster[moved].is_ready(), "one of three is no quorum, with a proxy as well")
    assert not (cluster.directory / proxy.name).exists()


@contextmanager
def waiting_receive(proxy: Beside, url: str) -> Iterator[socket.socket]:
    """The connection of a client that waits for a message; nobody reads from it."""
    body = json.dumps({"QueueUrl": url, "WaitTimeSeconds": 20}).encode()
    head = (
        f"POST / HTTP/1.1\r\nHost: {HOST}\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\n"
        f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((HOST, proxy.port)) as client:
        client.sendall(head.encode() + body)
        yield client


def test_a_long_poll_of_a_proxy_that_is_stopped_is_answered(small: Cluster, beside_small: Beside) -> None:
    proxy, master = beside_small, small["n1"]
    url = proxy.call("CreateQueue", QueueName="stopped")["QueueUrl"]
    with waiting_receive(proxy, url) as client:
        until(lambda: master.metric("waiters") == 1, "the receive waits at the master")
        assert proxy.stop() == 0
        with client.makefile("rb") as answer:
            head, _, body = answer.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert json.loads(body) == {}
    assert master.metric("waiters") == 0


def test_a_long_poll_ends_at_the_master_when_its_client_leaves(small: Cluster, beside_small: Beside) -> None:
    proxy, master = beside_small, small["n1"]
    url = proxy.call("CreateQueue", QueueName="polled")["QueueUrl"]
    with waiting_receive(proxy, url):
        until(lambda: master.metric("waiters") == 1, "the receive waits at the master")
    until(lambda: master.metric("waiters") == 0, "its wait ended with its client")
    proxy.call("SendMessage", QueueUrl=url, MessageBody="for the next one")
    (message,) = proxy.call("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=5)["Messages"]
    assert message["Body"] == "for the next one"


def test_a_proxy_that_restarts_goes_on(beside_small: Beside) -> None:
    proxy = beside_small
    url = proxy.call("CreateQueue", QueueName="kept")["QueueUrl"]
    proxy.call("SendMessage", QueueUrl=url, MessageBody="before")
    for end in (proxy.stop, proxy.kill9):
        assert end() in (0, None)
        proxy.start()
        proxy.until_up()
        proxy.call("SendMessage", QueueUrl=url, MessageBody="after")  # at once: what comes too early waits
    found = [proxy.call("ReceiveMessage", QueueUrl=url)["Messages"][0]["Body"] for _ in range(3)]
    assert sorted(found) == ["after", "after", "before"]


def test_a_supervised_proxy_that_is_killed_is_not_noticed(small: Cluster) -> None:
    """Its parent keeps the port, and clients' own retries have one effect, as the id of their call goes through."""
    with beside(small, "--supervise") as proxy, Plain(proxy, "supervised") as plain:
        for _ in range(2):
            plain.wait_for(50)
            os.kill(serving_pid(proxy), signal.SIGKILL)
            plain.wait_for(50)
        verdict = plain.judge()
    assert not plain.exceptions
    verdict.assert_unnoticed()


def serving_pid(proxy: Beside) -> int:
    """Of the process that the supervisor started."""
    told = ask(proxy.port, "GET", "/health").body["text"]
    return int(dict(field.split("=") for field in told.split() if "=" in field)["pid"])


def test_with_another_secret_it_stays_outside(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1, environment={"ELASTICQ_CLUSTER__HOLD_S": "1"}).start()
    wrong = cluster.directory / "wrong"
    wrong.write_text("another secret of this test\n")
    wrong.chmod(0o600)
    with beside(cluster, secret_file=wrong) as proxy:
        until(lambda: "another cluster secret" in proxy.said(), "the proxy says what is wrong")
        assert not proxy.is_ready()
        reply = proxy.ask("ListQueues")
        assert (reply.status, reply.code) == (503, "ServiceUnavailable")
        assert cluster["n1"].status()["proxies"] == []
        assert cluster["n1"].is_ready()


def test_what_waited_longer_than_it_may_is_refused_and_never_appears(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1, environment={"ELASTICQ_CLUSTER__HOLD_S": "2"}).start()
    with beside(cluster) as proxy:
        until(proxy.is_ready, "the proxy is ready")
        url = proxy.call("CreateQueue", QueueName="ghosts")["QueueUrl"]
        cluster.kill9("n1")
        began_s = time.monotonic()
        reply = proxy.ask("SendMessage", QueueUrl=url, MessageBody="ghost")
        assert (reply.status, reply.code) == (503, "ServiceUnavailable")
        assert time.monotonic() - began_s >= 1.9
        cluster.restart("n1")
        until(proxy.is_ready, "the proxy is ready again")
        assert "Messages" not in proxy.call("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=1)
