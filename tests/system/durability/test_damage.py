"""Damaged bytes on the disk cost what is told, and never the process: the short form of scripts/chaos damage."""

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.system.durability import damage
from tests.system.durability.server import Server

SEED = 3
TRIALS = {"flips": 4, "cuts": 2}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> damage.Base:
    return damage.build(tmp_path_factory.mktemp("damage"), SEED, rounds=9)


@pytest.mark.parametrize("what", TRIALS)
def test_flipped_bits_and_cut_files_cost_what_is_told(base: damage.Base, tmp_path: Path, what: str) -> None:
    random = Random(SEED)
    trials = [damage.try_one(base, tmp_path / "trial", random, cuts=what == "cuts") for _ in range(TRIALS[what])]
    assert not any(trial.finding for trial in trials), damage.summary(trials)


def test_the_first_receive_that_meets_damage_gets_503_and_the_others_go_on_around_it(server: Server) -> None:
    url = server.create("damaged")
    for number in range(300):
        server.call("SendMessage", QueueUrl=url, MessageBody=f"{number} " + "x" * 1_000)
    assert server.stop() == 0
    with closing(sqlite3.connect(server.directory / "rows.db", isolation_level=None)) as connection:
        connection.execute("UPDATE contents SET contents = zeroblob(9) WHERE first = (SELECT min(first) FROM contents)")
    server.start()
    with closing(server.connect()) as connection:
        refused = connection.call("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10})
    assert refused.status == 503
    assert b"cannot be read from disk" in refused.body
    received = 0
    while messages := server.call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        received += len(messages)
    assert 0 < received < 300
    assert f"{300 - received} messages of queue damaged, sequences" in server.log.read_text()
    assert list((server.directory / "damaged").iterdir())
    server.restart()
    server.call("SendMessage", QueueUrl=url, MessageBody="after")
    assert server.call("ReceiveMessage", QueueUrl=url)["Messages"][0]["Body"] == "after"


def test_structure_that_is_damaged_is_healed_in_the_living_process(server: Server) -> None:
    url = server.create("healed")
    for number in range(300):
        server.call("SendMessage", QueueUrl=url, MessageBody=f"{number} " + "x" * 1_000)
    assert server.stop() == 0
    with closing(sqlite3.connect(server.directory / "rows.db")) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'contents'").fetchone()
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    data = bytearray((server.directory / "rows.db").read_bytes())
    data[(root - 1) * page_bytes] ^= 0xFF
    (server.directory / "rows.db").write_bytes(data)
    server.start()
    received = 0
    for _ in range(damage.TRIES_MAX):
        answer = damage.insist(server, "ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10})
        received += len(answer.get("Messages", []))
        if not answer.get("Messages"):
            break
    assert received == 300
    assert "rows_healed" in server.log.read_text()
    assert server.process
    assert server.process.poll() is None
    assert list(server.directory.glob("damaged-1-rows.db"))


@pytest.mark.parametrize("name", ["incoming.db", "incoming.db.7-ab.part"])
def test_what_a_transfer_left_is_gone_once_nobody_wants_it(server: Server, name: str) -> None:
    server.kill()
    (server.directory / name).write_bytes(b"x" * 100)
    server.start()
    assert not (server.directory / name).exists()


def test_files_are_their_owners_alone(server: Server) -> None:
    server.call("SendMessage", QueueUrl=server.create("private"), MessageBody="x")
    assert server.stop() == 0
    server.directory.chmod(0o755)
    (server.directory / "rows.db").chmod(0o644)
    server.start()
    modes = {path.name: path.stat().st_mode & 0o777 for path in server.directory.iterdir() if path.is_file()}
    assert set(modes.values()) == {0o600}, modes
    assert server.directory.stat().st_mode & 0o777 == 0o700
