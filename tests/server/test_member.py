"""What members of a real cluster write into the log: each event once, at the level that fits."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from elasticq.node.orders import OrderDone, RemoveVoter
from elasticq.replication.records import Base, Voter
from elasticq.runtime.ticket import Awaited
from elasticq.server.member import Member
from elasticq.server.settings import load
from elasticq.storage.directory import DataDirectory
from elasticq.testing import Cluster

PATIENCE_S = 30


class Lines(logging.Handler):
    """Lines of all members of this process, to be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[int, str]] = []
        self._news = threading.Condition()

    def emit(self, record: logging.LogRecord) -> None:
        with self._news:
            self.told.append((record.levelno, record.getMessage()))
            self._news.notify_all()

    def having(self, words: str) -> list[tuple[int, str]]:
        return [(level, text) for level, text in self.told if words in text]

    def until(self, condition: Callable[[], object]) -> None:
        with self._news:
            assert self._news.wait_for(condition, PATIENCE_S), self.told

    def forget(self) -> None:
        with self._news:
            self.told.clear()


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, logger = Lines(), logging.getLogger("elasticq.server.member")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture
def cluster(lines: Lines) -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


def test_start_of_a_cluster_is_told(cluster: Cluster, lines: Lines) -> None:
    master = cluster.master
    lines.until(lambda: len(lines.having("this member takes part in its cluster")) == 3)
    linked = lines.having("linked: There is a link to ")
    assert len(linked) == 6, "each of three to two others"
    assert {level for level, _ in linked} == {logging.INFO}
    assert len(lines.having("founded: The cluster ")) == 3
    gained = lines.having("mastership_gained: This member was elected master of term ")
    assert [level for level, _ in gained] == [logging.INFO]
    followers = lines.having(f"master: {master} is the master of term ")
    assert [level for level, _ in followers] == [logging.INFO] * 2


def test_loss_of_members_and_of_the_majority_is_told_with_warnings(cluster: Cluster, lines: Lines) -> None:
    lines.until(lambda: len(lines.having("this member takes part in its cluster")) == 3)
    lines.forget()
    first = cluster.kill_master()
    left = cluster.master
    lost = lines.having(f"link_lost: The link to {first} (")
    assert [level for level, _ in lost] == [logging.WARNING] * 2
    assert all("no master was heard" in text for _, text in lines.having("election: "))
    assert lines.having("read_only") == []
    last = next(name for name in cluster.living if name != left)
    lines.forget()
    cluster.kill(left)
    lines.until(lambda: lines.having("read_only: "))
    assert lines.having("read_only: ") == [
        (
            logging.WARNING,
            "read_only: This member is read-only: 1 of 3 members reach each other, 2 are needed for a master.",
        )
    ]
    lines.forget()
    cluster.start(first)
    lines.until(lambda: lines.having("read_only_ended: "))
    assert [level for level, _ in lines.having("read_only_ended: ")] == [logging.INFO]
    assert last in cluster.living


def test_removed_member_keeps_that_on_its_disk_and_says_so_once(cluster: Cluster, lines: Lines) -> None:
    master = cluster.master
    gone = next(name for name in cluster.living if name != master)
    ticket = order(cluster, master, RemoveVoter(gone))
    assert isinstance(ticket, OrderDone)
    lines.until(lambda: lines.having("this member was removed from the cluster"))
    directory = Path(cluster._sections(gone)["storage"]["data_dir"])
    assert (directory / "removed").exists()
    cluster.kill(gone)
    lines.forget()
    cluster._start_member(gone)
    lines.until(lambda: lines.having(f"master: {master} is the master of term "))
    lines.until(lambda: lines.having("this member was removed from the cluster"))
    told = lines.having("this member was removed from the cluster")
    assert [level for level, _ in told] == [logging.WARNING]
    status = cluster._loop.ask(cluster._members[gone].runtime.status)
    assert (status.ready, "was removed" in status.reason) == (False, True)


def order(cluster: Cluster, name: str, given: RemoveVoter) -> object:
    async def carry_out() -> object:
        ticket = Awaited()
        cluster._members[name].runtime.order(given, ticket)
        return await ticket.outcome

    return cluster._loop.run(carry_out())


def test_full_disk_and_its_end_are_told(cluster: Cluster, lines: Lines) -> None:
    member = cluster._members[cluster.master].member
    lines.forget()
    cluster._loop.ask(lambda: member._set_full("The disk is full: messages can be received and deleted, but not sent."))
    cluster._loop.ask(lambda: member._set_full(None))
    assert lines.having("disk_") == [
        (logging.WARNING, "disk_full: The disk is full: messages can be received and deleted, but not sent."),
        (logging.INFO, "disk_has_space_again: The disk has space again, and sends are taken."),
    ]


def test_members_that_disagree_on_regions_are_told_by_both_sides(cluster: Cluster, lines: Lines) -> None:
    name = cluster.kill_master()
    assert lines.having("regions_differ: ") == []
    cluster._settings = {"node": {"region": "eu-west-1"}}
    cluster.start(name)
    lines.until(lambda: len(lines.having("regions_differ: ")) == 4)
    assert {level for level, _ in lines.having("regions_differ: ")} == {logging.WARNING}
    assert len(lines.having(f"regions_differ: {name} (")) == 2


@pytest.mark.parametrize(("names_it", "was_removed"), [(True, False), (False, True)])
def test_voter_notes_from_a_snapshot_whether_it_was_taken_out(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, names_it: bool, was_removed: bool
) -> None:
    """The log that says so is gone with the install, and the snapshot's rows do not say who was a voter once."""
    follower = next(name for name in cluster.living if name != cluster.master)
    member = cluster._members[follower].member
    own = Voter(member._node_settings.member_id)
    base = Base(9, 1, 0, (Voter("other-1"), own) if names_it else (Voter("other-1"),))
    monkeypatch.setattr("elasticq.server.member.base_of", lambda path: base)
    seen: list[bool] = []

    async def install(path: Path, is_wanted: object) -> None:
        assert member._directory is not None
        seen.append(member._directory.was_removed)
        raise OSError("the test ends here")

    monkeypatch.setattr(member._storage, "install", install)

    async def attempt() -> None:
        with pytest.raises(OSError, match="the test ends here"):
            await member._install(Path("nowhere"))

    cluster._loop.run(attempt())
    assert seen == [was_removed]
    if was_removed:
        cluster._loop.ask(lambda: member._directory is not None and member._directory.remember_removed(False))


def test_voter_that_was_away_learns_from_a_real_snapshot_that_it_was_taken_out(cluster: Cluster, lines: Lines) -> None:
    master = cluster.master
    gone = next(name for name in cluster.living if name != master)
    directory = Path(cluster._sections(gone)["storage"]["data_dir"])
    cluster.kill(gone)
    assert isinstance(order(cluster, master, RemoveVoter(gone)), OrderDone)
    cluster.queue("jobs").create().send("after it went")
    replica = cluster._members[master].runtime.node.replica
    cluster._loop.ask(lambda: replica.log.compact(replica.commit_index))  # as where the log outgrew what it keeps
    lines.forget()
    cluster._start_member(gone)
    lines.until(lambda: lines.having("snapshot_installed: "))
    lines.until(lambda: lines.having("this member was removed from the cluster"))
    assert (directory / "removed").exists()


async def test_removed_member_of_a_cluster_that_it_founded_alone_does_not_wait_to_serve(tmp_path: Path) -> None:
    """Else a start with ``--nodes 1`` would open no port, and nobody would learn why."""
    settings = load(
        None,
        {},
        {
            "storage": {"data_dir": str(tmp_path / "data")},
            "cluster": {"discovery": "seeds", "peer_port": 0},
            "node": {"id": "n1"},
        },
    )
    directory = DataDirectory(tmp_path / "data", "n1")
    member = Member(settings, directory, asyncio.get_running_loop(), http="", admin="")
    await member.start()
    member.runtime.node.members.was_removed = True
    assert await asyncio.wait_for(member.can_serve(), PATIENCE_S)
    member.runtime.close()
    await member.close()
