"""A proxy's process, with one member that it finds by its seeds: what it prints, tells and leaves behind."""

import json
import re
import signal
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

    def __init__(self, directory: Path, *arguments: str, lines: int) -> None:
        """``lines``: how many it prints when it serves."""
        self.directory = directory
        directory.mkdir()
        self.log = directory.with_suffix(".log")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "elasticq", "--port", "0", "--admin-port", "0", *arguments],
            cwd=directory,
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
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path / "member", "--memory", "--discovery", "seeds", "--peer-port", "0", lines=5)
    yield process
    process.kill()


@pytest.fixture
def proxy(tmp_path: Path, member: Process) -> Iterator[Process]:
    seeds = member.found(r"peers listening on (\S+)")
    process = Process(tmp_path / "proxy", "--role", "proxy", "--seeds", seeds, "--node-id", "web1", lines=4)
    yield process
    process.kill()


def page(url: str) -> tuple[int, str]:
    try:
        with urlopen(url, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def call(process: Process, action: str, **parameters: Any) -> dict[str, Any]:
    headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0"}
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


def test_a_proxy_without_its_cluster_is_not_ready_and_says_why(member: Process, proxy: Process) -> None:
    until(lambda: page(f"{proxy.admin}/ready")[0] == 200, "the proxy is ready")
    member.kill()
    until(lambda: page(f"{proxy.admin}/ready")[0] == 503, "the proxy has noticed")
    assert "no link to any member" in page(f"{proxy.admin}/ready")[1]
    until(lambda: "no link to any member" in proxy.log.read_text(), "it says so in its log, too")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--role", "proxy"], "has to find its cluster"),
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
