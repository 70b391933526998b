"""Servers that Spark's tests speak to: a process of ours, and moto in a thread."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from moto.server import ThreadedMotoServer

from elasticq.client import Sqs

ROOT = Path(__file__).resolve().parents[2]
LISTENING = re.compile(r"listening on (http://\S+)")
STOP_S_MAX = 60
DRAIN_CALLS_MAX = 10_000


class Server:
    """``endpoint``, and the light client of the calling thread."""

    endpoint = ""

    def sqs(self) -> Sqs:
        return Sqs(self.endpoint, "us-east-1")

    def drain(self, queue_url: str) -> list[dict[str, Any]]:
        """Receives and deletes what is visible, with all attributes, in the order received."""
        with self.sqs() as sqs:
            messages: list[dict[str, Any]] = []
            for _ in range(DRAIN_CALLS_MAX):
                answer = sqs.receive_message(
                    QueueUrl=queue_url, MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
                )
                found = answer.get("Messages", [])
                if not found:
                    return messages
                messages += found
                entries = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(found)]
                sqs.delete_message_batch(QueueUrl=queue_url, Entries=entries)
        raise AssertionError("the queue does not get empty")

    def counts(self, queue_url: str) -> tuple[int, int]:
        """Waiting and in flight."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        with self.sqs() as sqs:
            values = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=names)["Attributes"]
        return int(values[names[0]]), int(values[names[1]])

    def fill(self, queue_url: str, bodies: list[str], **members: Any) -> None:
        with self.sqs() as sqs:
            for start in range(0, len(bodies), 10):
                entries = [
                    {"Id": str(n), "MessageBody": body, **members} for n, body in enumerate(bodies[start : start + 10])
                ]
                assert not sqs.send_message_batch(QueueUrl=queue_url, Entries=entries).get("Failed")


class SqsServer(Server):
    """elasticq in memory, in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self._log = directory / "stderr"

    def __enter__(self) -> "SqsServer":
        command = [sys.executable, "-m", "elasticq", "server", "--memory", "--host", "127.0.0.1", "--port", "0"]
        with self._log.open("wb") as stderr:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | {"ELASTICQ_ADMIN__PORT": "0"},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if match := LISTENING.search(line):
                self.endpoint = match.group(1)
                return self
        raise AssertionError(self._log.read_text())

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        try:
            assert self._process.wait(STOP_S_MAX) == 0
        finally:
            self._process.kill()
            self._process.wait()
            if self._process.stdout:
                self._process.stdout.close()
        assert "Traceback" not in self._log.read_text()


class Moto(Server):
    """moto's server: any other SQS."""

    def __enter__(self) -> "Moto":
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.endpoint = f"http://{host}:{port}"
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.stop()
