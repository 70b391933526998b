"""A disk that is full, damaged, in use or fails: clients are told, nothing acknowledged is lost."""

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from elasticq.storage.log.records import written_bytes
from elasticq.storage.log.reserve import FULL
from tests.system.durability.conftest import MakeServer
from tests.system.durability.connection import Answer, Broken
from tests.system.durability.server import PATIENCE_S, ROOT, Ended, Server, pause

SMALL_MB, LARGE_MB = 160, 320
SMALL_RESERVE = {"ELASTICQ_STORAGE__RESERVE_MB": "32"}
BODY_CHARS = 20_000
FILL_MAX = 2_000  # batches; a disk that takes more is not as small as it should be
UNSHARE = ["unshare", "--user", "--map-root-user", "--mount"]


class SmallDisk:
    """A file system with room for little, or a launcher that says so where none may be mounted."""

    directory: Path
    before: tuple[str, ...] = ()
    fault: tuple[str, ...] = ()

    def filled(self, answered: int) -> None:
        """Called after each batch that was taken."""

    def enlarge(self) -> None:
        raise NotImplementedError

    def close(self) -> None: ...


class Mounted(SmallDisk):
    """A tmpfs in a mount namespace that a process of its own keeps alive, so that it outlives the server."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._mounted = directory
        self._keeper = subprocess.Popen(
            [*UNSHARE, "sh", "-c", 'mount -t tmpfs -o "size=$1" none "$0" && echo ready && cat', str(directory),
             f"{SMALL_MB}m"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._keeper.stdout
        self.works = self._keeper.stdout.readline() == "ready\n"
        self.before = ("nsenter", "--target", str(self._keeper.pid), "--user", "--mount", "--preserve-credentials",
                       f"--wdns={ROOT}")  # fmt: skip
        self.directory = directory / "data"

    def enlarge(self) -> None:
        command = ["mount", "-o", f"remount,size={LARGE_MB}m", str(self._mounted)]
        subprocess.run([*self.before, *command], check=True)

    def close(self) -> None:
        assert self._keeper.stdin
        assert self._keeper.stdout
        self._keeper.stdin.close()
        self._keeper.stdout.close()
        self._keeper.wait(PATIENCE_S)


class Pretended(SmallDisk):
    """Full after some batches, until it is enlarged."""

    batches = 50

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory / "data"
        self._mark = directory / "full"
        self.fault = ("full", str(self._mark))

    def filled(self, answered: int) -> None:
        if answered == self.batches:
            self._mark.touch()

    def enlarge(self) -> None:
        self._mark.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    disk: SmallDisk = Pretended(tmp_path / "pretended")
    if shutil.which("unshare") and shutil.which("nsenter"):
        mounted = Mounted(tmp_path / "mounted")
        if mounted.works:
            disk = mounted
        else:
            mounted.close()
    yield disk
    disk.close()


class Filler:
    """Sends batches with bodies of their own, and knows which were acknowledged."""

    def __init__(self, server: Server, url: str, disk: SmallDisk) -> None:
        self.server = server
        self.url = url
        self.disk = disk
        self.number = 0
        self.acknowledged: set[str] = set()

    def send(self) -> Answer:
        names = [f"{self.number + at:08d}" for at in range(10)]
        self.number += 10
        entries = [{"Id": name, "MessageBody": name + "x" * BODY_CHARS} for name in names]
        connection = self.server.connect()
        answer = connection.call("SendMessageBatch", {"QueueUrl": self.url, "Entries": entries})
        connection.close()
        if answer.status == 200:
            self.acknowledged.update(names)
        return answer

    def fill(self) -> Answer:
        """Until the server refuses; the refusal."""
        for answered in range(FILL_MAX):
            answer = self.send()
            if answer.status != 200:
                return answer
            self.disk.filled(answered)
        raise AssertionError("the disk never filled")

    def send_until_taken(self) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while (answer := self.send()).status != 200:
            assert answer.status == 503, answer
            assert time.monotonic() < deadline_s, "space came back, but sends are still refused"
            pause(0.1)

    def take(self, messages: int) -> int:
        """Receive and delete so many, or all that come; each was sent and comes once."""
        taken = 0
        while taken < messages:
            answer = self.server.call(
                "ReceiveMessage", QueueUrl=self.url, MaxNumberOfMessages=10, VisibilityTimeout=600
            )
            received = answer.get("Messages") or []
            if not received:
                break
            entries = [
                {"Id": str(at), "ReceiptHandle": message["ReceiptHandle"]} for at, message in enumerate(received)
            ]
            deleted = self.server.call("DeleteMessageBatch", QueueUrl=self.url, Entries=entries)
            assert not deleted.get("Failed")
            self.acknowledged.difference_update(message["Body"][:8] for message in received)
            taken += len(received)
        return taken


@pytest.fixture
def filler(small_disk: SmallDisk, make_server: MakeServer) -> Filler:
    server = make_server(
        small_disk.directory, fault=small_disk.fault, before=small_disk.before, environment=SMALL_RESERVE
    )
    server.start()
    return Filler(server, server.create("full"), small_disk)


def test_full_disk_refuses_sends_and_takes_receives_and_deletes(filler: Filler) -> None:
    refusal = filler.fill()
    assert refusal.status == 503, refusal
    assert FULL.encode() in refusal.body
    assert filler.take(50) >= 50
    filler.server.restart()
    filler.take(sys.maxsize)
    assert filler.acknowledged == set()


def test_sends_work_again_when_a_full_disk_has_space_again(filler: Filler) -> None:
    assert filler.fill().status == 503
    filler.disk.enlarge()
    filler.send_until_taken()
    filler.server.restart()
    filler.take(sys.maxsize)
    assert filler.acknowledged == set()


def test_deleting_makes_space_for_sends(filler: Filler) -> None:
    assert filler.fill().status == 503
    filler.take(len(filler.acknowledged) * 9 // 10)
    if isinstance(filler.disk, Pretended):
        filler.disk.enlarge()  # it does not know how much is used
    filler.send_until_taken()
    filler.server.restart()
    filler.take(sys.maxsize)
    assert filler.acknowledged == set()


def test_restart_on_a_full_disk_gives_all_back(filler: Filler) -> None:
    assert filler.fill().status == 503
    filler.server.restart()
    assert filler.take(50) >= 50
    filler.disk.enlarge()
    filler.send_until_taken()
    filler.take(sys.maxsize)
    assert filler.acknowledged == set()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_flipped_byte_in_the_log_stops_the_start_until_repair(server: Server, how: signal.Signals) -> None:
    url = server.create("flipped")
    for number in range(50):
        server.call("SendMessage", QueueUrl=url, MessageBody=f"{number} " + "x" * 1_000)
    assert server.process
    server.process.send_signal(how)
    server.wait()
    server.kill()
    segment = max((server.directory / "log").iterdir(), key=lambda path: path.stat().st_size)
    flip(segment, written_bytes(segment.read_bytes()) // 3)
    with pytest.raises(Ended) as ended:
        server.start()
    assert ended.value.status == 1
    assert segment.name in ended.value.output
    assert re.search(r"byte \d+", ended.value.output)
    assert "elasticq repair" in ended.value.output
    repaired = elasticq("repair", str(server.directory))
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert repaired.stdout.strip()
    server.start()
    server.call("SendMessage", QueueUrl=server.create("flipped"), MessageBody="after")


def test_torn_last_record_is_cut(server: Server) -> None:
    url = server.create("torn")
    for number in range(10):
        server.call("SendMessage", QueueUrl=url, MessageBody=str(number))
    server.kill()
    segment = max((server.directory / "log").iterdir(), key=lambda path: path.name)
    torn = b"torn."  # shorter than any record
    with segment.open("r+b") as log:
        log.seek(written_bytes(segment.read_bytes()))
        log.write(torn)
    server.start()
    answer = server.call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)
    assert {message["Body"] for message in answer["Messages"]} == {str(number) for number in range(10)}


def test_second_process_on_the_directory_ends_with_4(server: Server, make_server: MakeServer) -> None:
    second = make_server(server.directory)
    with pytest.raises(Ended) as ended:
        second.start()
    assert ended.value.status == 4
    assert str(server.directory) in ended.value.output
    server.create("first-goes-on")


def test_failed_sync_ends_the_process_without_an_answer(make_server: MakeServer, tmp_path: Path) -> None:
    mark = tmp_path / "fail-now"
    server = make_server(fault=("sync", str(mark)))
    server.start()
    url = server.create("failing")
    server.call("SendMessage", QueueUrl=url, MessageBody="synced")
    connection = server.connect()
    mark.touch()
    started_s = time.monotonic()
    with pytest.raises(Broken):
        connection.call("SendMessage", {"QueueUrl": url, "MessageBody": "not synced"})
    assert server.wait() not in (0, -signal.SIGKILL)
    assert time.monotonic() - started_s < 5
    server.kill()
    server.start()
    bodies = [message["Body"] for message in server.call("ReceiveMessage", QueueUrl=url)["Messages"]]
    assert "synced" in bodies


def flip(file: Path, offset: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(offset)
        [byte] = opened.read(1)
        opened.seek(offset)
        opened.write(bytes([byte ^ 0x10]))


def elasticq(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "elasticq", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
