"""A real server process on a port of the kernel's choice, and the clients that speak to it."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.config import Config

from tests.system.acceptance.raw import Endpoint

ROOT = Path(__file__).resolve().parents[3]
PEERS = re.compile(r"peers listening on (\S+)")
BEHIND_PROXY = "ELASTICQ_ACCEPTANCE_BEHIND_PROXY"
"""The environment variable that has the whole suite go through a proxy, instead of straight to a server."""
LISTENING = re.compile(r"elasticq listening on (http://\S+)")
START_S_MAX = 20
STOP_S_MAX = 20


def sqs_client(endpoint: str, account: str = "000000000000") -> Any:
    """A boto3 client that makes one attempt a call, so that an error is seen and not tried again."""
    return boto3.client(
        "sqs",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=account,
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}),
    )


def first_match(lines: SimpleQueue[str], pattern: re.Pattern[str]) -> str:
    """The first group of the first line that matches; fails when none comes in time."""
    seen: list[str] = []
    try:
        while True:
            seen.append(lines.get(timeout=START_S_MAX))
            if match := pattern.search(seen[-1]):
                return match.group(1)
    except Empty:
        raise AssertionError(f"the server did not say where it listens, only {seen}") from None


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running server, or of a proxy beside one where ``BEHIND_PROXY`` is set."""
    if BEHIND_PROXY not in os.environ:
        with running(tmp_path_factory.mktemp("server"), LISTENING, "--memory") as url:
            yield url
        return
    member = running(tmp_path_factory.mktemp("member"), PEERS, "--memory", "--discovery", "seeds", "--peer-port", "0")
    with (
        member as seeds,
        running(tmp_path_factory.mktemp("proxy"), LISTENING, "--role", "proxy", "--seeds", seeds) as url,
    ):
        yield url


@contextmanager
def running(directory: Path, told: re.Pattern[str], *arguments: str) -> Iterator[str]:
    """What a process says of itself; at the end it must stop by itself and have logged no traceback."""
    log = directory / "stderr"
    with log.open("wb") as stderr:
        command = [sys.executable, "-m", "elasticq", "server", "--host", "127.0.0.1", "--port", "0"]
        command += ["--admin-port", "-1", *arguments]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr, text=True)
    lines: SimpleQueue[str] = SimpleQueue()
    assert process.stdout is not None
    threading.Thread(target=lambda: [lines.put(line) for line in process.stdout or ()], daemon=True).start()
    try:
        yield first_match(lines, told)
        process.terminate()
        assert process.wait(STOP_S_MAX) == 0
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in log.read_text()


@pytest.fixture(scope="session")
def sqs(server: str) -> Any:
    return sqs_client(server)


@pytest.fixture(scope="session")
def endpoint(server: str) -> Endpoint:
    return Endpoint(server)


@pytest.fixture
def queue_name() -> str:
    return f"queue-{uuid4().hex}"


@pytest.fixture
def queue_url(sqs: Any, queue_name: str) -> str:
    """A fresh standard queue with AWS's defaults."""
    return str(sqs.create_queue(QueueName=queue_name)["QueueUrl"])


@pytest.fixture
def make_client(server: str) -> Callable[[str], Any]:
    """boto3 clients of other accounts: an account is a world of its own."""
    return lambda account: sqs_client(server, account)
