"""What follows from all that a master knows of its followers."""

from elasticq.replication.progress import Progress, ProgressTracker
from elasticq.replication.raft_state import RaftState
from elasticq.replication.records import NOTHING
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


def tracker_of(*voters: str, **match: int) -> ProgressTracker:
    """At a, the master, which knows of each in ``match`` up to where its log matches."""
    tracker = ProgressTracker(RaftState("a", voters, NOTHING, lambda now_ms: (0, now_ms)))
    tracker.begin(100)
    for other, index in match.items():
        tracker.followers[other].match_index = index
    return tracker


def test_majority_index_counts_the_masters_own_disk_as_one() -> None:
    assert tracker_of("a").majority_index(7) == 7
    assert tracker_of("a", "b", "c", b=5, c=3).majority_index(9) == 5
    assert tracker_of("a", "b", "c", b=5, c=4).majority_index(0) == 4
    assert tracker_of("a", "b", "c", "d", b=9, c=8, d=1).majority_index(2) == 2
    assert tracker_of("b", "c", "d", b=9, c=8, d=1).majority_index(99) == 8, "a is no voter any more"


def test_majority_round_counts_this_member_as_one_that_answered() -> None:
    tracker = tracker_of("a", "b", "c", "d", "e")
    for other, answered in (("b", 4), ("c", 3), ("d", 9)):
        tracker.followers[other].round = answered
    assert tracker.majority_round() == 4
    assert tracker_of("a").majority_round() == 0


def test_majority_is_heard_only_when_enough_voters_are() -> None:
    tracker = tracker_of("a", "b", "c", "d", "e")
    tracker.followers["b"].heard_ms = 200
    assert not tracker.majority_heard_since(101)
    tracker.followers["c"].heard_ms = 101
    assert tracker.majority_heard_since(101)


def test_durable_on_so_many_others_is_bounded_by_the_masters_own_disk() -> None:
    tracker = tracker_of("a", "b", "c", b=5, c=3)
    assert [tracker.durable_on(others, 9) for others in (0, 1, 2, 3)] == [9, 5, 3, 9]
    assert tracker.durable_on(1, 4) == 4


def test_heir_has_the_most_and_was_heard_last() -> None:
    tracker = tracker_of("a", "b", "c", b=5, c=5)
    tracker.followers["b"].heard_ms = 101
    assert tracker.heir() == "b"
    tracker.followers["c"].match_index = 6
    assert tracker.heir() == "c"
    assert tracker_of("a").heir() == ""


def test_late_hint_below_what_matches_changes_nothing() -> None:
    progress = Progress(next_index=10, match_index=5, probing=False)
    assert not progress.take_hint(4)
    assert (progress.next_index, progress.probing) == (10, False)
    assert progress.take_hint(7)
    assert (progress.next_index, progress.probing) == (8, True)
