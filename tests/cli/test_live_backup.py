"""elasticq backup of a running server and of a cluster: with writes going on, and kill -9 in the middle."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from uuid import uuid4

from elasticq.client import ClientError, Sqs
from tests.server.process import PATIENCE_S, Server
from tests.system.cluster.cluster import Cluster, until

BODY = "x" * 200_000
DEEP = 300


def command(*arguments: str | Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "elasticq", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str | Path) -> tuple[int, str, str]:
    with command(*arguments) as process:
        out, err = process.communicate(timeout=4 * PATIENCE_S)
    return process.returncode, out, err


class Writer(threading.Thread):
    """Sends to the queue kept, and passes messages through the queue gone; counts what was acknowledged."""

    def __init__(self, url: str) -> None:
        super().__init__(name=uuid4().hex)
        self._sqs = Sqs(url, "us-east-1", retry_s=0)
        self._kept, self._gone = (self._sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("kept", "gone"))
        self._stopped = threading.Event()
        self.kept: set[str] = set()
        self.deleted: set[str] = set()

    def run(self) -> None:
        try:
            for number in (f"{self.name} {number}" for number in count()):
                if self._stopped.is_set():
                    return
                self._sqs.send_message(QueueUrl=self._kept, MessageBody=number)
                self.kept.add(number)
                self._sqs.send_message(QueueUrl=self._gone, MessageBody=number)
                for message in self._sqs.receive_message(QueueUrl=self._gone).get("Messages", ()):
                    self._sqs.delete_message(QueueUrl=self._gone, ReceiptHandle=message["ReceiptHandle"])
                    self.deleted.add(message["Body"])
        except ClientError:  # the server was killed
            return

    def acknowledged(self) -> tuple[set[str], set[str]]:
        """What was sent and what was deleted up to now, when that is something."""
        until(lambda: len(self.kept) > 50 and len(self.deleted) > 50, "messages were sent and deleted")
        return set(self.kept), set(self.deleted)

    def stop(self) -> None:
        self._stopped.set()
        self.join()
        self._sqs.close()


@contextmanager
def writing(url: str) -> Iterator[Writer]:
    writer = Writer(url)
    writer.start()
    try:
        yield writer
    finally:
        writer.stop()


def fill(url: str) -> None:
    """Make a state of which a backup takes many parts."""
    with Sqs(url, "us-east-1") as sqs:
        queue = sqs.create_queue(QueueName="deep")["QueueUrl"]
        for number in range(DEEP):
            sqs.send_message(QueueUrl=queue, MessageBody=f"{number} {BODY}")


def bodies(sqs: Sqs, queue: str) -> list[str]:
    url, found, at = sqs.get_queue_url(QueueName=queue)["QueueUrl"], [], 0
    while at is not None:
        page = sqs.peek(QueueUrl=url, FromSequence=at, Limit=1_000)
        found += [message["Body"] for message in page["Messages"]]
        at = page["NextSequence"]
    return found


def check_restored(file: Path, directory: Path, kept: set[str], deleted: set[str]) -> None:
    """The backup is whole; its server has all of ``kept``, nothing of ``deleted``, and goes on."""
    status, out, err = run("verify", file)
    assert (status, err) == (0, "")
    assert "all readable" in out
    assert run("restore", file, directory)[0] == 0
    with (
        Server("--data-dir", str(directory), "--cluster-name", "restored") as server,
        Sqs(server.url, "us-east-1") as sqs,
    ):
        stored = bodies(sqs, "kept")
        assert len(stored) == len(set(stored))
        assert kept - set(stored) == set()
        assert deleted & set(bodies(sqs, "gone")) == set()
        assert len(bodies(sqs, "deep")) == DEEP
        sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName="kept")["QueueUrl"], MessageBody="goes on")
        assert bodies(sqs, "kept") == [*stored, "goes on"]


def until_in_the_middle(process: "subprocess.Popen[str]", file: Path) -> None:
    partial = file.with_name(file.name + ".partial")
    until(lambda: partial.exists() and partial.stat().st_size > 0, "a part was fetched")
    assert process.poll() is None


def test_a_backup_under_writes_survives_kills_of_both_sides(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "backup"
    with Server("--data-dir", str(data)) as server:
        admin = server.admin()
        fill(server.url)
        with writing(server.url):
            with command("backup", file, "--admin", admin) as interrupted:
                until_in_the_middle(interrupted, file)
                interrupted.kill()
            assert not file.exists()
            with command("backup", file, "--admin", admin) as cut:
                until_in_the_middle(cut, file)
                server.process.kill()
                out, err = cut.communicate(timeout=4 * PATIENCE_S)
            assert (cut.returncode, out) == (1, "")
            assert "does not answer" in err
        assert list(tmp_path.glob("backup*")) == []
    with Server("--data-dir", str(data)) as server, writing(server.url) as writer:
        admin = server.admin()
        kept, deleted = writer.acknowledged()
        status, out, err = run("backup", file, "--admin", admin)
        assert (status, err) == (0, "")
        assert writer.is_alive()
    assert out.startswith(f"{file} holds everything up to index")
    check_restored(file, tmp_path / "restored", kept, deleted)


def test_a_backup_of_a_cluster_from_a_follower_holds_all_acknowledged_messages(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "cluster").start()
    file = tmp_path / "backup"
    try:
        master, follower = cluster[cluster.master()], cluster[cluster.followers()[0]]
        url = f"http://127.0.0.1:{master.port}"
        fill(url)
        with writing(url) as writer:
            kept, deleted = writer.acknowledged()
            with command("backup", file, "--admin", f"http://127.0.0.1:{follower.admin_port}") as cut:
                until_in_the_middle(cut, file)
                follower.kill9()
                assert cut.wait(4 * PATIENCE_S) == 1
            assert not file.exists()
            other = cluster[next(name for name in cluster.followers() if name != follower.name)]
            status, _, err = run("backup", file, "--admin", f"http://127.0.0.1:{other.admin_port}")
            assert (status, err) == (0, "")
            assert writer.is_alive()
    finally:
        cluster.end()
    check_restored(file, tmp_path / "restored", kept, deleted)
