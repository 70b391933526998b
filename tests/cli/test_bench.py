"""elasticq bench against a server of this package and one of another."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from elasticq.cli import main
from elasticq.cli.bench import Timings
from elasticq.client import Sqs
from elasticq.testing import ElasticQ
from tests.cli.running import Run
from tests.server.process import PATIENCE_S
from tests.system.cluster.cluster import until


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticQ]:
    with ElasticQ() as server:
        yield server


@pytest.fixture
def run(server: ElasticQ, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.account)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["bench", "--url", server.endpoint_url, "--region", server.region, *arguments])
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def queues(server: ElasticQ) -> list[str]:
    with Sqs(server.endpoint_url, server.region, (server.account, "test")) as sqs:
        return list(sqs.list_queues().get("QueueUrls", ()))


def check(result: dict[str, Any], sent: int) -> None:
    assert (result["sent"], result["received"]) == (sent, sent)
    assert sent / result["seconds"] <= min(result["sent_per_s"], result["received_per_s"])
    assert result["cpu_s"] > 0
    for name in ("send_ms", "delete_ms", "end_to_end_ms"):
        values = [result[name][each] for each in ("p50", "p90", "p99", "max")]
        assert values == sorted(values)
        assert 0 < values[0] <= values[-1] < result["seconds"] * 1_000


@pytest.mark.parametrize(
    "more", [(), ("--fifo",), ("--queues", "3", "--connections", "3"), ("--batch", "1", "--size", "20")]
)
def test_each_message_is_sent_received_and_deleted(run: Run, server: ElasticQ, more: tuple[str, ...]) -> None:
    status, out, _ = run("--count", "205", "--json", *more)
    assert status == 0
    check(json.loads(out), 205)
    assert queues(server) == []


def test_text_shows_rates_percentiles_and_the_cpu_of_the_bench(run: Run) -> None:
    status, out, err = run("--duration", "2.2", "--connections", "1")
    assert status == 0
    sent, received, head, *rows, cpu = out.splitlines()
    assert " sent in 2" in sent
    assert " received and deleted in " in received
    assert head.split() == ["MS", "p50", "p90", "p99", "max"]
    assert [row.split()[0] for row in rows] == ["send", "delete", "end"]
    assert "% of a core" in cpu
    assert "/s  received " in err


def test_only_sends_on_request(run: Run, server: ElasticQ) -> None:
    status, out, _ = run("--count", "20", "--no-receive", "--json")
    result = json.loads(out)
    assert (status, result["sent"], result["received"], result["end_to_end_ms"]) == (0, 20, 0, {})
    assert queues(server) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--batch", "11"), "--batch is 1 to 10"),
        (("--size", "19"), "--size is 20 to 262144"),
        (("--queues", "5"), "--queues is at most --connections"),
        (("--count", "0"), "--count is at least 1"),
        (("--size", "200000"), "--batch times --size"),
    ],
)
def test_what_cannot_be_measured_is_refused(run: Run, arguments: tuple[str, ...], told: str) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert told in err


def test_ctrl_c_ends_the_run_reports_and_removes_the_queue(server: ElasticQ) -> None:
    command = [sys.executable, "-m", "elasticq", "bench", "--url", server.endpoint_url, "--region", server.region]
    with subprocess.Popen(
        [*command, "--duration", "600", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as bench:
        assert bench.stderr is not None
        assert "sent" in bench.stderr.readline()
        bench.send_signal(signal.SIGINT)
        out, _ = bench.communicate(timeout=PATIENCE_S)
    assert bench.returncode == 0
    assert json.loads(out)["sent"] > 0
    until(lambda: not any("elasticq-bench" in url for url in queues(server)), "the queue is deleted")


def test_another_server_is_measured_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    try:
        host, port = moto.get_host_and_port()
        arguments = ["--url", f"http://{host}:{port}", "--region", "us-east-1", "--count", "50", "--json"]
        assert main(["bench", *arguments]) == 0
        check(json.loads(capsys.readouterr().out), 50)
    finally:
        moto.stop()


def test_percentiles_are_those_of_the_sorted_values() -> None:
    timings = Timings()
    assert timings.percentiles_ms() == {}
    for value in reversed(range(1, 101)):
        timings.note(value / 1_000)
    assert timings.percentiles_ms() == {"p50": 51.0, "p90": 90.0, "p99": 99.0, "max": 100.0}
