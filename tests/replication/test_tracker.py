"""What follows from all that a master knows of its followers."""

from elasticq.replication.progress import Progress
from elasticq.replication.raft_state import RaftState
from elasticq.replication.records import NOTHING, Entry, Voter
from elasticq.replication.tracker import ProgressTracker
from tests.replication.bench import Bench


def test_log_is_pinned_by_the_slowest_voter() -> None:
    bench = Bench()
    bench.win()
    for _ in range(5):
        bench.propose(b"x", 10)
    bench.append_reply("b", 5)
    bench.append_reply("c", 2)
    bench.replica.compact(5)
    assert bench.replica.log.base_index == 2
    bench.append_reply("c", 5)
    bench.replica.compact(4)
    assert bench.replica.log.base_index == 4


def master_of(*voters: str, durable: int = 0, **match: int) -> tuple[ProgressTracker, dict[str, Progress]]:
    """At a, the master, which has ``durable`` on disk and knows of each in ``match`` up to where its log matches."""
    state = RaftState("a", voters, NOTHING, lambda now_ms: (0, now_ms))
    state.durability.durable_index = durable
    tracker = ProgressTracker(state)
    tracker.begin(100)
    for other, index in match.items():
        state.followers[other].match_index = index
    return tracker, state.followers


def majority_index(*voters: str, durable: int, **match: int) -> int:
    tracker, _ = master_of(*voters, durable=durable, **match)
    return tracker.majority_index()


def test_majority_index_counts_the_masters_own_disk_as_one() -> None:
    assert majority_index("a", durable=7) == 7
    assert majority_index("a", "b", "c", durable=9, b=5, c=3) == 5
    assert majority_index("a", "b", "c", durable=0, b=5, c=4) == 4
    assert majority_index("a", "b", "c", "d", durable=2, b=9, c=8, d=1) == 2
    assert majority_index("b", "c", "d", durable=99, b=9, c=8, d=1) == 8, "a is no voter any more"


def test_majority_round_counts_this_member_as_one_that_answered() -> None:
    tracker, followers = master_of("a", "b", "c", "d", "e")
    for other, answered in (("b", 4), ("c", 3), ("d", 9)):
        followers[other].round = answered
    assert tracker.majority_round() == 4
    alone, _ = master_of("a")
    assert alone.majority_round() == 0


def test_majority_is_heard_only_when_enough_voters_are() -> None:
    tracker, followers = master_of("a", "b", "c", "d", "e")
    followers["b"].heard_ms = 200
    assert not tracker.majority_heard_since(101)
    followers["c"].heard_ms = 101
    assert tracker.majority_heard_since(101)


def test_durable_on_so_many_others_is_bounded_by_the_masters_own_disk() -> None:
    tracker, _ = master_of("a", "b", "c", durable=9, b=5, c=3)
    assert [tracker.durable_on(others) for others in (0, 1, 2, 3)] == [9, 5, 3, 9]
    behind, _ = master_of("a", "b", "c", durable=4, b=5, c=3)
    assert behind.durable_on(1) == 4


def test_heir_has_the_most_and_was_heard_last() -> None:
    tracker, followers = master_of("a", "b", "c", b=5, c=5)
    followers["b"].heard_ms = 101
    assert tracker.transfer_target() == "b"
    followers["c"].match_index = 6
    assert tracker.transfer_target() == "c"
    alone, _ = master_of("a")
    assert alone.transfer_target() == ""


def test_follower_that_is_no_voter_any_more_leaves_when_it_has_the_entry_that_says_so() -> None:
    state = RaftState("a", ("a", "b", "c"), NOTHING, lambda now_ms: (0, now_ms))
    tracker = ProgressTracker(state)
    tracker.begin(100)
    before = state.others
    state.append(Entry(1, 1, 1_000, b"", (Voter("a"), Voter("b"), Voter("d"))))
    tracker.follow_voters(before, 200)
    assert {other: progress.is_leaving for other, progress in state.followers.items()} == {
        "b": False, "c": True, "d": False,
    }  # fmt: skip
    assert tracker.told_to_leave() == []
    state.followers["c"].match_index = 1
    assert tracker.told_to_leave() == ["c"]
