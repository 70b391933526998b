"""kill -9 of what a stream of real Spark consists of: what was sent comes out, each message once.

The job's driver is a process of its own (killed.py). The first three are of every test run; the others, and kills by
the hundred (scripts/chaos spark), are of ``make chaos``.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.spark.kills import SPECULATION, Job, Sender, judge, until
from tests.spark.servers import Server
from tests.system.cluster.conftest import MakeCluster
from tests.system.cluster.conftest import make_cluster as make_cluster

MESSAGES = 200
EXECUTORS = "local-cluster[2,1,1024]"


class Stream:
    """A job, its server, and what was sent to it."""

    def __init__(self, job: Job, endpoint: str) -> None:
        self.job, self.endpoint = job, endpoint
        self.sender = Sender(endpoint, job.url)
        self.random = Random(7)

    def send(self) -> None:
        self.sender.send(MESSAGES)

    def check(self) -> None:
        verdict = judge(self.job, self.endpoint, self.sender.sent)
        assert verdict.is_clean(), f"{verdict}: {self.job.said()}"


@pytest.fixture(scope="module")
def stream(elasticq_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """One job for the short tests; each leaves it running and the queue empty."""
    url = create(elasticq_server, "killed")
    # On a busy machine this process must find a worker before it has read its share.
    with Job(tmp_path_factory.mktemp("killed") / "job", url, pace_s=0.1) as job:
        yield Stream(job, elasticq_server.endpoint)


def create(server: Server, name: str) -> str:
    with server.sqs() as sqs:
        return str(sqs.create_queue(QueueName=name)["QueueUrl"])


@pytest.mark.spark
def test_a_worker_killed_inside_a_read_loses_and_doubles_nothing(stream: Stream) -> None:
    stream.send()
    assert stream.job.kill_reader(stream.random)
    stream.check()
    assert stream.job.reads().again


@pytest.mark.spark
def test_a_killed_source_process_loses_and_doubles_nothing(stream: Stream) -> None:
    stream.send()
    until(stream.job.reading, lambda: f"a worker reads: {stream.job.said()}")
    stream.job.kill_source(stream.random)
    stream.check()


@pytest.mark.spark
def test_a_driver_killed_between_sink_and_commit_log_loses_and_doubles_nothing(stream: Stream) -> None:
    sender = Sender(stream.endpoint, stream.job.url)
    sender.sent = stream.sender.sent  # before it sends: its bodies are numbered on from these
    with sender:
        batch = stream.job.catch_uncommitted()
        stream.job.kill_driver()
    until(lambda: stream.job.committed() >= batch, lambda: f"batch {batch} runs again: {stream.job.said()}")
    stream.check()


# --- long forms -----------------------------------------------------------------------------------


def run(directory: Path, server: Server, name: str, **plan: Any) -> Stream:
    return Stream(Job(directory / "job", create(server, name), **plan), server.endpoint)


@pytest.mark.chaos
def test_messages_deleted_as_they_are_read_are_found_lost(elasticq_server: Server, tmp_path: Path) -> None:
    """What is compared here can be unequal."""
    stream = run(tmp_path, elasticq_server, "naive", options={"ackMode": "onRead"}, pace_s=0.2)
    with stream.job:
        stream.send()
        with stream.sender:
            for _ in range(5):
                stream.job.kill_reader(stream.random)
        verdict = judge(stream.job, stream.endpoint, stream.sender.sent)
    assert verdict.lost
    assert not verdict.doubled


@pytest.mark.chaos
def test_a_killed_executor_loses_and_doubles_nothing(elasticq_server: Server, tmp_path: Path) -> None:
    stream = run(tmp_path, elasticq_server, "executors", master=EXECUTORS, pace_s=0.3)
    with stream.job:
        for _ in range(3):
            stream.send()
            until(stream.job.reading, lambda: f"a worker reads: {stream.job.said()}")
            stream.job.kill_executor(stream.random)
            stream.check()
    assert stream.job.reads().again


@pytest.mark.chaos
def test_two_attempts_of_a_task_at_once_read_the_same(elasticq_server: Server, tmp_path: Path) -> None:
    stream = run(tmp_path, elasticq_server, "speculation", master="standalone", straggler_s=150.0, conf=SPECULATION)
    with stream.job:
        stream.send()
        stream.check()
    assert stream.job.reads().together


@pytest.mark.chaos
def test_two_actions_on_a_batch_see_the_same_also_when_workers_are_killed(
    elasticq_server: Server, tmp_path: Path
) -> None:
    stream = run(tmp_path, elasticq_server, "actions", sink="actions")
    with stream.job:
        for _ in range(5):
            stream.send()
            stream.job.kill_reader(stream.random)
        stream.job.kill_between_sink_and_log()
        stream.check()
    assert "two actions on batch" not in stream.job.log.read_text(errors="replace")


@pytest.mark.chaos
def test_a_master_of_elasticq_killed_inside_a_batch_loses_and_doubles_nothing(
    keys: None, make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_cluster().start()
    url = cluster["n1"].call("CreateQueue", QueueName="failover")["QueueUrl"]
    stream = Stream(Job(tmp_path / "job", url), f"http://127.0.0.1:{cluster['n1'].port}")
    with stream.job:
        for _ in range(3):
            stream.send()
            until(stream.job.reading, lambda: f"a worker reads: {stream.job.said()}")
            master = cluster.master()
            cluster.kill9(master)
            assert cluster.master(other_than=master) if master != "n1" else True
            cluster.restart(master)
            cluster.wait_ready()
            stream.check()
    cluster.same_rows()
