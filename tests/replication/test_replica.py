"""One voter by Raft's rules: the follower's log, the master's commits, and the hand-over between them."""

import pytest

from elasticq.replication.events import BecameMaster, Campaigned, HeardMaster, LostMastership
from elasticq.replication.messages import Append, AppendReply, RequestVote, TimeoutNow
from elasticq.replication.records import Truncation, Vote
from elasticq.replication.replica import FOLLOWER, MASTER
from tests.replication.bench import TIMING, Bench, entry, with_log


def test_misdirected_messages_are_ignored() -> None:
    bench = Bench()
    bench.silence()
    misdirected = RequestVote(cluster="", group=0, sender="b", to="c", term=9, last_index=9, last_term=9, transfer=True)
    assert bench.get(misdirected) == []
    assert bench.replica.term == 0


# --- the follower's log ---------------------------------------------------------------


def replies(messages: list[object]) -> tuple[bool, int]:
    (reply,) = messages
    assert isinstance(reply, AppendReply)
    return reply.ok, reply.match_index


def test_entries_are_stored_once_and_acknowledged() -> None:
    bench = Bench()
    assert replies(bench.append("b", 1, (0, 0), entry(1, 1), entry(2, 1))) == (True, 2)
    assert replies(bench.append("b", 1, (0, 0), entry(1, 1), entry(2, 1))) == (True, 2)
    assert bench.records == [Vote(1, None), entry(1, 1), entry(2, 1)]


def test_acknowledgement_rests_on_the_records() -> None:
    bench = Bench()
    message = bench._of(
        Append, "b", 1, prev_index=0, prev_term=0, commit_index=0, round=1, time_ms=0, entries=[entry(1, 1)]
    )
    bench.replica.receive(message, bench.now_ms)
    ((reply, rests_on_records),) = bench.replica.ready.messages
    assert isinstance(reply, AppendReply)
    assert rests_on_records


def test_append_of_an_older_term_is_refused_and_told_the_newer() -> None:
    bench = Bench(with_log(1, term=3))
    (reply,) = bench.append("b", 2, (1, 1), entry(2, 2))
    assert (reply.ok, reply.term) == (False, 3)
    assert bench.replica.log.last_index == 1
    assert bench.replica.election.heard_ms == 1_000


def test_gap_is_refused_with_the_own_end_as_hint() -> None:
    bench = Bench(with_log(1, 1))
    assert replies(bench.append("b", 1, (7, 1), entry(8, 1))) == (False, 2)
    assert bench.replica.log.last_index == 2


def test_hint_skips_the_whole_term_that_conflicts_but_not_below_commit() -> None:
    bench = Bench(with_log(1, 1, 2, 2, 2))
    assert replies(bench.append("b", 3, (5, 3))) == (False, 2)
    bench.append("b", 3, (3, 2), commit=3)
    assert bench.replica.commit_index == 3
    assert replies(bench.append("b", 3, (5, 3))) == (False, 3)


def test_conflict_truncates_from_the_first_entry_that_differs() -> None:
    bench = Bench(with_log(1, 2, 2))
    assert replies(bench.append("b", 3, (0, 0), entry(1, 1), entry(2, 3))) == (True, 2)
    assert bench.records[-2:] == [Truncation(2), entry(2, 3)]
    assert bench.replica.log.last_index == 2


def test_late_frame_truncates_nothing() -> None:
    bench = Bench()
    bench.append("b", 1, (0, 0), entry(1, 1), entry(2, 1), entry(3, 1))
    assert replies(bench.append("b", 1, (0, 0), entry(1, 1))) == (True, 1)
    assert replies(bench.append("b", 1, (1, 1))) == (True, 1)
    assert bench.replica.log.last_index == 3
    assert not any(isinstance(record, Truncation) for record in bench.records)


def test_follower_commits_no_further_than_it_matched() -> None:
    bench = Bench(with_log(1, 1, 1))
    bench.append("b", 2, (1, 1), commit=3)
    assert bench.replica.commit_index == 1
    bench.append("b", 2, (2, 1), entry(3, 2), commit=9)
    assert bench.replica.commit_index == 3


def test_commit_never_falls() -> None:
    bench = Bench(with_log(1, 1))
    bench.append("b", 2, (2, 1), commit=2)
    bench.append("b", 2, (0, 0), commit=0)
    assert bench.replica.commit_index == 2


def test_cutting_what_is_committed_stops_the_member() -> None:
    bench = Bench(with_log(1, 1))
    bench.append("b", 2, (2, 1), commit=2)
    with pytest.raises(AssertionError):
        bench.append("c", 3, (1, 1), entry(2, 3))


def test_heartbeat_links_the_clock_and_holds_the_election_off() -> None:
    bench = Bench()
    for _ in range(5):
        bench.now_ms += 600
        bench.append("b", 1)
        assert bench.tick() == []
    assert sum(type(event) is HeardMaster for event in bench.events) == 5
    assert bench.replica.role == FOLLOWER


# --- the master ---------------------------------------------------------------------------


def commit_of(bench: Bench) -> int:
    return bench.replica.commit_index


def test_entry_is_committed_by_a_majority_that_has_it_durable() -> None:
    bench = Bench(syncs=False)
    bench.campaign()
    bench.vote_reply("b", 1)
    bench.sync()
    bench.propose(b"first", 10)
    bench.append_reply("b", 1)
    assert commit_of(bench) == 0, "the master's own sync is one of the two"
    bench.sync()
    assert commit_of(bench) == 1
    bench.propose(b"second", 10)
    bench.append_reply("b", 2)
    bench.append_reply("c", 2)
    assert commit_of(bench) == 2, "two followers are a majority without the master"


def test_entry_of_an_older_term_is_not_committed_by_counting() -> None:
    bench = Bench(with_log(1, 1))
    bench.win()
    for voter in "bc":
        bench.append_reply(voter, 2)
    assert commit_of(bench) == 0
    bench.propose(b"own", 1_000)
    assert commit_of(bench) == 0
    bench.append_reply("b", 3)
    assert commit_of(bench) == 3


def test_acknowledgement_of_a_heartbeat_commits_nothing() -> None:
    bench = Bench()
    bench.win()
    bench.propose(b"x", 10)
    bench.append_reply("b", 0)
    bench.append_reply("c", 0)
    assert commit_of(bench) == 0


def test_late_and_repeated_acknowledgements_do_no_harm() -> None:
    bench = Bench()
    bench.win()
    for _ in range(3):
        bench.propose(b"x", 10)
    bench.append_reply("b", 3)
    assert commit_of(bench) == 3
    bench.append_reply("b", 1)
    bench.append_reply("b", 0, ok=False)
    assert bench.replica.followers["b"].match_index == 3
    assert commit_of(bench) == 3


def test_acknowledgement_of_another_term_is_not_counted() -> None:
    bench = Bench()
    bench.win()
    bench.propose(b"x", 10)
    bench.append_reply("b", 1, term=0)
    assert commit_of(bench) == 0
    bench.append_reply("c", 1, term=2)
    assert (bench.replica.role, bench.replica.term) == (FOLLOWER, 2)
    won, lost = BecameMaster(), LostMastership(0, "others are in the newer term 2")
    assert bench.events == [Campaigned(1, is_pre_vote=True), Campaigned(1), won, lost]


def test_master_without_a_quorum_steps_down_within_the_silence() -> None:
    bench = Bench()
    bench.win()
    for _ in range(6):
        bench.tick(TIMING.heartbeat_ms)
    assert bench.replica.role == MASTER
    bench.append_reply("c", 0)
    for _ in range(7):
        bench.tick(TIMING.heartbeat_ms)
    assert bench.replica.role == MASTER
    bench.tick(TIMING.heartbeat_ms)
    assert (bench.replica.role, bench.replica.term) == (FOLLOWER, 1)


def test_master_helps_nobody_while_it_is_one() -> None:
    bench = Bench()
    bench.win()
    assert not bench.pre_vote("b", 9, (9, 9)).granted
    assert not bench.request_vote("b", 9, (9, 9)).granted
    assert bench.replica.role == MASTER


def test_second_master_of_one_term_stops_the_member() -> None:
    bench = Bench()
    bench.win()
    with pytest.raises(AssertionError):
        bench.append("b", 1)


def test_time_that_falls_along_the_log_stops_the_member() -> None:
    bench = Bench()
    bench.win()
    bench.propose(b"x", 100)
    with pytest.raises(AssertionError):
        bench.propose(b"y", 99)


# --- hand-over ------------------------------------------------------------------------------


def test_hand_over_goes_to_the_follower_that_has_everything() -> None:
    bench = Bench()
    bench.win()
    bench.propose(b"x", 10)
    assert not bench.replica.hand_over(bench.now_ms)
    bench.append_reply("c", 1)
    assert bench.replica.hand_over(bench.now_ms)
    (asked,) = [message for message in bench.drain() if isinstance(message, TimeoutNow)]
    assert asked.to == "c"
    assert not bench.replica.lease_is_valid(bench.now_ms)


def test_follower_asked_to_take_over_stands_at_once_without_pre_vote() -> None:
    bench = Bench()
    bench.append("b", 1)
    sent = bench.get(bench._of(TimeoutNow, "b", 1))
    assert [(type(message), message.term, message.transfer) for message in sent] == [(RequestVote, 2, True)] * 2


def test_late_request_to_take_over_is_ignored() -> None:
    bench = Bench(with_log(term=3))
    assert bench.get(bench._of(TimeoutNow, "b", 2)) == []
    assert bench.replica.term == 3
