"""Servers as real processes, started by the words that started ElasticMQ."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

EXAMPLES = Path(__file__).parent / "examples"
ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60


class Server:
    """``url`` is what it printed; ``words`` what it said on stderr until it served, after ``stop`` all of it."""

    def __init__(self, directory: Path, arguments: tuple[str, ...]) -> None:
        self.log = directory / "stderr"
        with self.log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "elasticq", *arguments],
                cwd=directory,
                env={"PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        found = re.fullmatch(r"elasticq listening on (http://\S+)\n", first)
        assert found, (first, self.words)
        self.url = found[1].replace("0.0.0.0", "127.0.0.1")

    @property
    def words(self) -> str:
        return self.log.read_text()

    def client(self, url: str = "", key: str = "x") -> Any:
        return client(url or self.url, key)

    def stop(self) -> int:
        self.process.terminate()
        status = self.process.wait(PATIENCE_S)
        assert "Traceback" not in self.words
        return status


def client(url: str, key: str = "x") -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key="x",
        config=Config(retries={"total_max_attempts": 1}),
    )


StartServer = Callable[..., Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartServer]:
    """Starts in an empty directory; whatever was started ends with the test."""
    started: list[Server] = []

    def begin(*arguments: str) -> Server:
        started.append(Server(tmp_path, arguments))
        return started[-1]

    yield begin
    for server in started:
        server.process.kill()
        server.process.communicate()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """shop.conf by java's command line, only its first word changed."""
    arguments = (f"-Dconfig.file={EXAMPLES / 'shop.conf'}", "-Xmx128m", "-jar", "elasticmq-server.jar")
    server = Server(tmp_path_factory.mktemp("shop"), arguments)
    yield server
    assert server.stop() == 0
    server.process.communicate()
