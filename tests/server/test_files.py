"""Connections never take the files that the storage needs."""

import json
import resource
import socket
from http.client import HTTPConnection
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from elasticq.server.files import BACKLOG_MAX, FILES_MAX, KEPT_MAX, Shares, raise_file_limit, shares
from tests.server.process import PATIENCE_S, Server


@given(st.integers(48, 2**24), st.integers(1, 100_000))
def test_ports_share_what_the_storage_leaves(files: int, wanted: int) -> None:
    found = shares(files, wanted)
    kept = files - found.http - found.refused - found.admin - found.peers
    assert kept >= min(KEPT_MAX, files // 3)
    assert found.backlog <= max(1, kept // 2)
    assert min(found.http, found.refused, found.admin, found.peers, found.backlog) >= 1
    assert found.http <= wanted


def test_where_files_are_plenty_the_settings_hold() -> None:
    assert shares(FILES_MAX, 10_000) == Shares(10_000, 256, 256, 768, KEPT_MAX // 2)
    assert BACKLOG_MAX >= KEPT_MAX // 2


def test_the_limit_is_the_highest_that_there_is() -> None:
    assert raise_file_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def test_a_durable_server_goes_on_whoever_takes_connections(tmp_path: Path) -> None:
    """The log needs a new file each 64 MiB or so; all messages of the flood are there afterwards."""
    with Server("--data-dir", str(tmp_path / "data"), files_max=160) as server:
        sender = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        call(sender, "CreateQueue", QueueName="jobs")
        flood = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) for _ in range(250)]
        for _ in range(120):
            call(sender, "SendMessage", QueueUrl="jobs", MessageBody="x" * 1_000_000)
        for one in flood:
            one.close()
        names = {"AttributeNames": ["ApproximateNumberOfMessages"]}
        answer = call(sender, "GetQueueAttributes", QueueUrl="jobs", **names)
        assert answer["Attributes"] == {"ApproximateNumberOfMessages": "120"}
        assert server.process.poll() is None


def call(connection: HTTPConnection, action: str, **parameters: object) -> dict[str, dict[str, str]]:
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"}
    connection.request("POST", "/", json.dumps(parameters), headers)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    found: dict[str, dict[str, str]] = json.loads(body or b"{}")
    return found
