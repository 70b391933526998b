"""A data directory whose rows are damaged on purpose, and what can be read of it."""

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.node.outputs import Committed
from elasticq.replication.records import Vote, Voter
from elasticq.storage.directory import DataDirectory
from elasticq.storage.errors import DataError
from elasticq.storage.files import DirectoryFiles
from elasticq.storage.log.segments import SegmentLog
from elasticq.storage.rows.rows import Rows
from elasticq.storage.snapshot import flush
from elasticq.storage.sqlite import load, open_rows
from tests.storage.test_storage import entry

QUEUES = {1: "a", 2: "b", 3: "c.fifo"}
ROUNDS = 12
Messages = dict[tuple[int, int], str]


def stored(queue_id: int, sequence: int, body: str) -> m.MessageStored:
    group = f"g{sequence % 3}" if queue_id == 3 else None
    unique = f"d{sequence}" if queue_id == 3 else None
    return m.MessageStored(queue_id, sequence, body, 7, "sender", group_id=group, deduplication_id=unique)


def entries_of(seed: int) -> list[list[m.Mutation]]:
    """Queues with messages that were received, deleted and left alone, large ones among them."""
    random, sequence = Random(seed), 0
    found: list[list[m.Mutation]] = [[m.ClusterFounded("cluster", b"k" * 32, 1), m.TookOver(1, "a", 0, 0)]]
    for queue_id, name in QUEUES.items():
        attributes = {"FifoQueue": "true"} if name.endswith(".fifo") else {"DelaySeconds": "0"}
        found.append([m.QueueCreated(queue_id, "000000000000", name, attributes, {"tag": name}, 5)])
    for _ in range(ROUNDS):
        for queue_id in QUEUES:
            bodies = [random.randbytes(random.choice([5, 200, 1_500])).hex() for _ in range(25)]
            found.append([stored(queue_id, sequence + at + 1, body) for at, body in enumerate(bodies)])
            got = list(range(sequence + 5, sequence + 15))
            found.append([m.MessagesReceived(queue_id, 9, 99_999, got, [1] * 10, [1] * 10, [9] * 10)])
            found.append(
                [
                    m.MessagesRemoved(queue_id, got[:4]),
                    m.InvocationRecorded(b"%016d" % (sequence % 10**16), 9, 1, 1, b""),
                ]
            )
            sequence += 25
    return found


def filled(path: Path, *, voters: tuple[Voter, ...] | None = None, logged_from: int | None = None) -> Path:
    """A directory whose rows hold all of it, written in several batches; the log: from that index on, if any."""
    directory = DataDirectory(path, "a")
    rows, files = Rows(), DirectoryFiles(directory.log)
    with closing(open_rows(directory)) as connection:
        list(rows.load(connection)[1])
        for index, mutations in enumerate(entries_of(1), 1):
            rows.take(Committed(index, 1, 1_000 + index, mutations, voters if index == 1 else None))
            if index % 9 == 0:
                flush(connection, rows)
        flush(connection, rows)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    log = SegmentLog(files)
    log.load()
    log.append([Vote(1, "a")])
    if logged_from is not None:
        logged = list(enumerate(entries_of(1), 1))[logged_from - 1 :]
        log.append([entry(index, *mutations) for index, mutations in logged])
    log.sync()
    files.close()
    directory.close()
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("whole") / "data")


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "data")
    return tmp_path / "data"


def messages_in(path: Path) -> Messages:
    directory = DataDirectory(path)
    files, rows = DirectoryFiles(directory.log), Rows()
    try:
        list(load(directory, SegmentLog(files), rows).rows)
        with closing(open_rows(directory)) as connection:
            read = [message for page in rows.read_contents(connection) for message in page]
        return {(message.queue_id, message.sequence): message.body for message in read}
    finally:
        files.close()
        directory.close()


def state_in(path: Path) -> list[str]:
    """All that a start would read of the rows."""
    directory = DataDirectory(path)
    files = DirectoryFiles(directory.log)
    try:
        return [repr(mutation) for mutation in load(directory, SegmentLog(files), Rows()).rows]
    finally:
        files.close()
        directory.close()


def flip(file: Path, at: int, bit: int = 3) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1 << bit
    file.write_bytes(data)


def change(path: Path, statement: str, *parameters: object) -> None:
    with closing(sqlite3.connect(path / "rows.db", isolation_level=None)) as connection:
        connection.execute(statement, parameters)


def refusal_of(work: Callable[[], object]) -> str:
    """Why it was not done; each says what to do."""
    try:
        work()
    except DataError as error:
        return str(error) if "elasticq repair" in str(error) else f"no remedy: {error}"
    return ""


def told_lost(told: str) -> Messages:
    numbers = {name: queue_id for queue_id, name in QUEUES.items()}
    lost: Messages = {}
    for name, sequences in re.findall(r"messages of queue (\S+), sequences ([\d, -]+)", told):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", sequences):
            lost |= {(numbers[name], sequence): "" for sequence in range(int(first), int(last or first) + 1)}
    return lost
