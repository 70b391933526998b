"""Learners: they get the log and count for nothing; they ask for it, and are forgotten when they are silent."""

from elasticq.replication.messages import (
    Append,
    AppendReply,
    Join,
    PreVote,
    PreVoteReply,
    RequestVote,
    TimeoutNow,
    VoteReply,
)
from elasticq.replication.records import NOTHING, Durable, Entry, Vote
from elasticq.replication.replica import FOLLOWER, MASTER
from elasticq.replication.tracker import LEARNER_SILENT_MS
from tests.replication.bench import TIMING, Bench


def entry(index: int, term: int = 1) -> Entry:
    return Entry(index, term, 1_000, b"x")


def learner(durable: Durable = NOTHING) -> Bench:
    """A member of cluster "x" that is none of its voters."""
    bench = Bench(durable, voters=("b", "c"))
    bench.replica.cluster = "x"
    bench.replica.known_peers = {"b", "c", "d"}
    return bench


def master_with_learner() -> Bench:
    bench = Bench()
    bench.win()
    bench.append_reply("b", 0)
    bench.get(bench._of(Join, "d", 0))
    return bench


def test_learner_stores_and_acknowledges_like_a_follower() -> None:
    bench = learner()
    (reply,) = bench.append("b", 1, (0, 0), entry(1), entry(2), commit=1)
    assert isinstance(reply, AppendReply)
    assert (reply.ok, reply.match_index, bench.replica.commit_index) == (True, 2, 1)


def test_learner_never_stands_and_asks_all_whom_it_met_to_be_sent_the_log() -> None:
    bench = learner()
    for _ in range(5):
        sent = bench.tick(TIMING.election_max_ms)
        assert [(type(message), message.to) for message in sent] == [(Join, "b"), (Join, "c"), (Join, "d")]
    assert (bench.replica.term, bench.replica.role, bench.replica.master) == (0, FOLLOWER, None)


def test_learner_that_hears_a_master_asks_nobody() -> None:
    bench = learner()
    for _ in range(5):
        bench.append("b", 1)
        assert bench.tick(TIMING.election_min_ms - 1) == []
    assert bench.replica.master == "b"


def test_learner_stands_for_nobody_who_asks_it_to() -> None:
    bench = learner()
    bench.append("b", 1)
    assert bench.get(bench._of(TimeoutNow, "b", 1)) == []
    assert bench.replica.term == 1


def test_member_without_a_cluster_votes_for_nobody() -> None:
    bench = Bench(voters=())
    bench.silence()
    assert not bench.pre_vote("b", 5, (9, 4)).granted
    assert not bench.request_vote("b", 5, (9, 4)).granted


def test_learner_that_may_be_a_voter_by_now_votes() -> None:
    """It may not have the entry yet that made it one; its vote counts only where the log says so."""
    bench = learner()
    bench.silence()
    assert bench.request_vote("b", 5, (9, 4)).granted
    assert bench.newest_vote == Vote(5, "b")


def test_master_sends_its_log_to_who_asks_and_never_counts_it() -> None:
    bench = master_with_learner()
    assert bench.replica.tracker.learners == ("d",)
    sent = [message for message in bench.sent if isinstance(message, Append) and message.to == "d"]
    assert len(sent) == 1
    bench.append_reply("d", 0)
    bench.propose()
    bench.append_reply("d", 1)
    assert bench.replica.followers["d"].match_index == 1
    assert bench.replica.commit_index == 1 or bench.replica.followers["b"].match_index == 0
    assert bench.replica.tracker.majority_index() == 0, "the master's disk and a learner's are no majority"
    bench.append_reply("b", 1)
    assert bench.replica.commit_index == 1


def test_learners_answers_extend_no_lease_and_hold_no_quorum() -> None:
    bench = master_with_learner()
    for _ in range(12):
        bench.tick(TIMING.heartbeat_ms)
        bench.append_reply("d", 0)
        assert bench.replica.lease.until_ms <= 1_000 + TIMING.election_max_ms + TIMING.election_min_ms
    assert bench.replica.role == FOLLOWER


def test_learners_votes_count_for_nothing() -> None:
    bench = Bench()
    bench.tick(TIMING.election_max_ms)
    bench.get(bench._of(PreVoteReply, "d", 0, asked_term=1, granted=True))
    assert bench.replica.term == 0
    bench.pre_vote_reply("b", 1)
    bench.get(bench._of(VoteReply, "d", 1, granted=True, linked=False, time_ms=0))
    assert bench.replica.role != MASTER


def test_silent_learner_is_forgotten_and_may_ask_again() -> None:
    bench = master_with_learner()
    for _ in range(LEARNER_SILENT_MS // TIMING.heartbeat_ms + 1):
        bench.tick(TIMING.heartbeat_ms)
        bench.append_reply("b", 0)
    assert bench.replica.tracker.learners == ()
    assert "b" in bench.replica.followers
    assert "c" in bench.replica.followers, "a silent voter is never forgotten"
    bench.get(bench._of(Join, "d", 0))
    assert bench.replica.tracker.learners == ("d",)


def test_join_of_one_who_is_known_changes_nothing() -> None:
    bench = master_with_learner()
    progress = bench.replica.followers["d"]
    assert bench.get(bench._of(Join, "d", 0)) == []
    assert bench.get(bench._of(Join, "b", 0)) == []
    assert bench.replica.followers["d"] is progress


def test_follower_takes_no_learners() -> None:
    bench = Bench()
    bench.append("b", 1)
    assert bench.get(bench._of(Join, "d", 0)) == []
    assert bench.replica.followers == {}


def test_learners_go_with_the_mastership() -> None:
    bench = master_with_learner()
    bench.append("b", 9)
    assert bench.replica.followers == {}
    assert bench.replica.tracker.learners == ()


def test_one_that_was_taken_out_and_asks_for_votes_hears_the_log_instead() -> None:
    bench = Bench()
    bench.win()
    sent = bench.get(bench._of(PreVote, "z", 9, last_index=0, last_term=0))
    assert [type(message) for message in sent] == [Append, PreVoteReply]
    assert not sent[1].granted  # type: ignore[union-attr]
    assert bench.replica.tracker.learners == ("z",)
    bench.get(bench._of(RequestVote, "z", 9, last_index=0, last_term=0, transfer=False))
    assert bench.replica.role == MASTER


def test_single_master_with_a_learner_keeps_its_lease_and_commits_by_itself() -> None:
    bench = Bench(voters=("a",))
    assert bench.replica.role == MASTER
    bench.get(bench._of(Join, "d", 0))
    bench.propose()
    assert bench.replica.commit_index == bench.replica.log.last_index
    for _ in range(200):
        bench.tick(TIMING.heartbeat_ms)
    assert bench.replica.role == MASTER
    assert bench.replica.lease_is_valid(bench.now_ms)
    assert bench.replica.tracker.learners == ()
    assert not bench.replica.has_company
