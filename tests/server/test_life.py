"""The process: it listens, serves, and stops as it should."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

from elasticq.admin.port import AdminPort
from elasticq.server import life
from elasticq.storage.directory import FORMAT
from elasticq.testing import ElasticQ
from tests.server.process import PATIENCE_S, Server


def ask(server: Server, action: str, body: str) -> HTTPConnection:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"}
    connection.request("POST", "/", body, headers)
    return connection


def told(server: Server) -> list[str]:
    """The next two lines, which say how the first version of the AWS CLI is told, and where messages are."""
    assert server.process.stdout is not None
    return [server.process.stdout.readline().rstrip("\n") for _ in range(2)]


def test_start_prints_what_to_paste_and_where_messages_are() -> None:
    with Server() as server:
        assert server.export == f"export AWS_ENDPOINT_URL_SQS={server.url}"
        first, second = told(server)
        assert first.endswith(f": aws --endpoint-url {server.url} sqs list-queues")
        assert second == "messages are stored in memory only: a restart loses them"
        assert ask(server, "ListQueues", "{}").getresponse().read() == b"{}"


@pytest.mark.parametrize(
    ("durability", "words"), [("fsync", ""), ("os", ", durability=os: a reply does not wait for the disk")]
)
def test_start_prints_the_whole_path_of_the_data_directory(
    durability: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELASTICQ_STORAGE__DURABILITY", durability)
    here = os.path.relpath(tmp_path / "here")
    with Server("--data-dir", here) as server:
        assert told(server)[1] == f"messages are stored in {(tmp_path / 'here').resolve()}{words}"


def test_declared_queue_that_cannot_be_created_ends_the_start(tmp_path: Path) -> None:
    """What the data directory holds can refuse it, so only the start can find out."""
    data, file = tmp_path / "data", tmp_path / "e.toml"
    with ElasticQ(data_dir=data) as server:
        server.queue("b").create(RedriveAllowPolicy='{"redrivePermission": "denyAll"}')
    file.write_text("[queues.a]\ndead_letter_queue = 'b'\nmax_receive_count = 1\n[queues.b]")
    command = [sys.executable, "-m", "elasticq", "--port", "0", "--admin-port", "-1", "--config", str(file)]
    ended = subprocess.run([*command, "--data-dir", str(data)], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ended.returncode, ended.stdout) == (life.EXIT_USAGE, "")
    assert "elasticq: queue a cannot be created: " in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_answers_long_polls_and_exits_with_0(number: int) -> None:
    with Server() as server:
        url = f"{server.url}/000000000000/orders"
        assert ask(server, "CreateQueue", '{"QueueName":"orders"}').getresponse().status == 200
        waiting = ask(server, "ReceiveMessage", f'{{"QueueUrl":"{url}","WaitTimeSeconds":20}}')
        cluster = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        cluster.request("GET", "/health")
        assert cluster.getresponse().read().split()[0] == b"OK"
        started = time.monotonic()
        assert server.stop(number) == 0
        assert time.monotonic() - started < 10
        answer = waiting.getresponse()
        assert (answer.status, answer.getheader("Connection")) == (200, "close")


def test_a_port_that_is_taken_is_told_with_status_3() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "elasticq", "--memory", "--port", str(port)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 3
    assert f"127.0.0.1:{port} is taken" in done.stderr


def test_a_foreign_address_is_told_with_status_1() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "elasticq", "--memory", "--host", "192.0.2.1", "--port", "0"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    assert "cannot listen on 192.0.2.1:0" in done.stderr


def test_certificates_of_the_peer_port_that_cannot_be_used_are_told_with_status_2(tmp_path: Path) -> None:
    """They can be read, so only their use tells that they are none."""
    names = ("TLS_CERT", "TLS_KEY", "TLS_CA")
    for name in names:
        (tmp_path / name).write_text("no certificate")
    done = subprocess.run(
        [sys.executable, "-m", "elasticq", "--port", "0", "--discovery", "seeds", "--data-dir", str(tmp_path / "data")],
        env=os.environ | {f"ELASTICQ_CLUSTER__{name}": str(tmp_path / name) for name in names},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 2, done.stderr
    assert f"elasticq: TLS files {tmp_path / 'TLS_CERT'}" in done.stderr
    assert "Traceback" not in done.stderr


def test_aiohttp_is_not_imported_before_it_is_needed() -> None:
    """It is most of a start's CPU, and no SDK needs it."""
    code = "import sys, elasticq.server.life; assert 'aiohttp' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_S)


def test_the_server_runs_on_asyncio_where_uvloop_is_missing() -> None:
    code = (
        "import sys; sys.modules['uvloop'] = None\n"
        "from elasticq.cli import main; sys.exit(main(['--memory', '--port', '0', '--host', '127.0.0.1']))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    port = int(process.stdout.readline().rsplit(":", 1)[1])
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", "/ready")
    assert connection.getresponse().read().split()[0] == b"OK"
    process.terminate()
    assert process.wait(PATIENCE_S) == 0
    process.stdout.close()


def test_messages_survive_a_kill(tmp_path: Path) -> None:
    where = ("--data-dir", str(tmp_path / "data"))
    with Server(*where) as server:
        url = f"{server.url}/000000000000/orders"
        assert ask(server, "CreateQueue", '{"QueueName":"orders"}').getresponse().status == 200
        assert ask(server, "SendMessage", f'{{"QueueUrl":"{url}","MessageBody":"kept"}}').getresponse().status == 200
        server.stop(signal.SIGKILL)
    with Server(*where) as server:
        url = f"{server.url}/000000000000/orders"
        answer = ask(server, "ReceiveMessage", f'{{"QueueUrl":"{url}"}}').getresponse().read()
        assert b'"Body":"kept"' in answer
        assert server.stop() == 0


def test_a_directory_in_use_is_told_with_status_4(tmp_path: Path) -> None:
    with Server("--data-dir", str(tmp_path / "data")):
        done = subprocess.run(
            [sys.executable, "-m", "elasticq", "--port", "0", "--data-dir", str(tmp_path / "data")],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 4
    assert "used by another process" in done.stderr


def test_a_newer_format_is_told_with_status_4(tmp_path: Path) -> None:
    newer = {"elasticq": FORMAT + 1, "member_id": "a-1", "created": 1}
    (tmp_path / "format.json").write_text(json.dumps(newer))
    done = subprocess.run(
        [sys.executable, "-m", "elasticq", "--port", "0", "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 4
    assert "use a newer version" in done.stderr


def test_a_weaker_durability_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTICQ_STORAGE__DURABILITY", "os")
    with Server("--data-dir", str(tmp_path / "data")) as server:
        assert "durability=os" in told(server)[1]
        health = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        health.request("GET", "/health")
        assert health.getresponse().read().split()[:2] == [b"OK", b"durability=os"]


async def test_an_admin_port_that_cannot_be_opened_is_told_with_its_cause(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def start(_: AdminPort) -> None:
        raise LookupError("no route")

    monkeypatch.setattr(AdminPort, "start", start)
    imported: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    imported.set_result(None)
    await life._open_admin(AdminPort.__new__(AdminPort), imported)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "admin_port_failed")
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)
