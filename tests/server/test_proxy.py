"""A proxy's process, with one member that it finds by its seeds: what it prints, tells and leaves behind."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.system.cluster.cluster import until

PATIENCE_S = 30


class Process:
    """``python -m elasticq`` in a directory of its own, on ports from the kernel; killed on exit."""

    def __init__(self, directory: Path, *arguments: str, lines: int, **environment: str) -> None:
        """``lines``: how many it prints when it serves."""
        self.directory = directory
        directory.mkdir()
        self.log = directory.with_suffix(".log")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "elasticq", "--port", "0", "--admin-port", "0", *arguments],
            cwd=directory,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
            text=True,
        )
        assert self.process.stdout is not None
        self.printed = "".join(self.process.stdout.readline() for _ in range(lines))

    def found(self, pattern: str) -> str:
        """The first group in what it printed."""
        match = re.search(pattern, self.printed)
        assert match, (self.printed, self.log.read_text())
        return match[1]

    @property
    def url(self) -> str:
        return self.found(r"elasticq listening on (\S+)")

    @property
    def admin(self) -> str:
        return self.found(r"admin listening on (\S+)")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """It may be dead already."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path / "member", "--memory", "--discovery", "seeds", "--peer-port", "0", lines=6)
    yield process
    process.kill()


@pytest.fixture
def proxy(tmp_path: Path, member: Process) -> Iterator[Process]:
    seeds = member.found(r"peers listening on (\S+)")
    process = Process(tmp_path / "proxy", "--role", "proxy", "--seeds", seeds, "--node-id", "web1", lines=5)
    yield process
    process.kill()


def page(url: str) -> tuple[int, str]:
    try:
        with urlopen(url, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def call(process: Process, action: str, *, region: str = "us-east-1", **parameters: Any) -> dict[str, Any]:
    scope = f"AKIA/20260101/{region}/sqs/aws4_request"
    headers = {
        "X-Amz-Target": f"AmazonSQS.{action}",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0",
    }
    with urlopen(Request(process.url, json.dumps(parameters).encode(), headers), timeout=PATIENCE_S) as answer:
        return dict(json.loads(answer.read() or b"{}"))


def test_a_proxy_serves_beside_its_cluster_and_leaves_nothing_behind(member: Process, proxy: Process) -> None:
    assert "a proxy: it stores nothing and passes calls on to its cluster" in proxy.printed
    assert "peers listening" not in proxy.printed
    until(lambda: page(f"{proxy.admin}/ready") == (200, "OK"), "the proxy is ready")
    url = call(proxy, "CreateQueue", QueueName="jobs")["QueueUrl"]
    assert url.startswith(proxy.url)
    call(proxy, "SendMessage", QueueUrl=url, MessageBody="through")
    (message,) = call(member, "ReceiveMessage", QueueUrl=url)["Messages"]
    assert message["Body"] == "through"
    _, seen = page(f"{member.admin}/cluster")
    assert json.loads(seen)["proxies"] == ["web1"]
    assert [each["name"] for each in json.loads(seen)["members"]] == ["node1"]
    _, own = page(f"{proxy.admin}/cluster")
    assert (json.loads(own)["role"], json.loads(own)["master"]) == ("proxy", "node1")
    assert page(f"{proxy.admin}/master") == (503, "proxy")
    status, text = page(f"{proxy.admin}/metrics")
    assert (status, "elasticq_held_calls 0" in text) == (200, True)
    assert proxy.stop() == 0
    assert list(proxy.directory.iterdir()) == []
    until(lambda: json.loads(page(f"{member.admin}/cluster")[1])["proxies"] == [], "the member has noticed")
    assert re.search(r"INFO.* linked: There is a link to node1 \(node1-\w+\) at 127", proxy.log.read_text())
    for told in ("linked: There is a link to the proxy web1", "link_lost: The link to the proxy web1"):
        assert re.search(f"INFO.* {told} ", member.log.read_text())


def test_the_region_of_a_call_goes_through_a_proxy(member: Process, proxy: Process) -> None:
    until(lambda: page(f"{proxy.admin}/ready")[0] == 200, "the proxy is ready")
    url = call(proxy, "CreateQueue", region="eu-west-1", QueueName="far")["QueueUrl"]
    call(proxy, "SendMessage", region="eu-west-1", QueueUrl=url, MessageBody="far away")
    assert "QueueUrls" not in call(member, "ListQueues") | call(proxy, "ListQueues")
    (seen,) = call(member, "ListQueues", region="eu-west-1")["QueueUrls"]
    (message,) = call(member, "ReceiveMessage", region="eu-west-1", QueueUrl=seen)["Messages"]
    assert message["Body"] == "far away"


def test_an_operator_sees_members_through_a_proxy_and_orders_nothing(member: Process, proxy: Process) -> None:
    until(lambda: page(f"{proxy.admin}/ready")[0] == 200, "the proxy is ready")
    status, text = page(f"{proxy.admin}/cluster/members/node1")
    assert (status, json.loads(text)["role"]) == (200, "master")
    assert page(f"{member.admin}/cluster/members/web1")[0] == 404
    done = subprocess.run(
        [sys.executable, "-m", "elasticq", "cluster", "transfer", "--admin", proxy.admin],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, "this is a proxy, not a member: ask the master" in done.stderr) == (1, True), done.stderr
    assert json.loads(page(f"{member.admin}/cluster")[1])["role"] == "master"


def secret_in(file: Path, text: str) -> str:
    """The path of the file, which has this secret now."""
    file.write_text(text)
    file.chmod(0o600)
    return str(file)


def test_a_proxy_reads_the_secret_of_its_cluster_anew_on_sighup(tmp_path: Path) -> None:
    arguments = ["--memory", "--discovery", "seeds", "--peer-port", "0"]
    secret = secret_in(tmp_path / "members", "the secret of the members\n")
    member = Process(tmp_path / "member", *arguments, "--cluster-secret-file", secret, lines=6)
    arguments = ["--role", "proxy", "--seeds", member.found(r"peers listening on (\S+)")]
    own = secret_in(tmp_path / "own", "another secret than theirs\n")
    proxy = Process(tmp_path / "proxy", *arguments, "--cluster-secret-file", own, lines=5)
    try:
        until(lambda: "another cluster secret" in proxy.log.read_text(), "the proxy says what is wrong")
        assert page(f"{proxy.admin}/ready")[0] == 503
        secret_in(tmp_path / "own", "the secret of the members\n")
        proxy.process.send_signal(signal.SIGHUP)
        until(lambda: page(f"{proxy.admin}/ready")[0] == 200, "the proxy is ready with the new secret")
        assert "these were read again: cluster.secret_file" in proxy.log.read_text()
    finally:
        proxy.kill()
        member.kill()


def test_a_proxy_closes_connections_that_are_idle(tmp_path: Path) -> None:
    """The timer of the SQS port that looks after them asks nothing of a node that only members have."""
    arguments = ["--role", "proxy", "--seeds", "127.0.0.1:1"]
    proxy = Process(tmp_path / "proxy", *arguments, lines=5, ELASTICQ_HTTP__IDLE_S="1")
    try:
        port = int(proxy.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"200 OK" in client.recv(4_096)
            while client.recv(4_096):
                pass
    finally:
        proxy.kill()


def test_a_proxy_without_its_cluster_is_not_ready_and_says_why(member: Process, proxy: Process) -> None:
    until(lambda: page(f"{proxy.admin}/ready")[0] == 200, "the proxy is ready")
    member.kill()
    until(lambda: page(f"{proxy.admin}/ready")[0] == 503, "the proxy has noticed")
    assert "no link to any member" in page(f"{proxy.admin}/ready")[1]
    until(lambda: "no link to any member" in proxy.log.read_text(), "it says so in its log, too")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--role", "proxy"], "must find its cluster"),
        (["--role", "proxy", "--seeds", "a:1", "--data-dir", "d"], "stores nothing"),
        (["--role", "proxy", "--seeds", "a"], "is not host:port"),
        (["--role", "voter"], "invalid choice"),
    ],
)
def test_settings_that_make_no_proxy_are_refused(tmp_path: Path, arguments: list[str], told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "elasticq", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []
