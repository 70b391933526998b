"""Raft's rules at one voter, a test for each."""

import pytest

from elasticq.replication.messages import Append, AppendReply, PreVote, RequestVote, TimeoutNow, VoteReply
from elasticq.replication.records import Durable, Entry, Truncation, Vote
from elasticq.replication.replica import (
    APPEND_ENTRIES_MAX,
    CANDIDATE,
    FOLLOWER,
    IN_FLIGHT_ENTRIES_MAX,
    LEASE_SHARE,
    MASTER,
)
from tests.replication.bench import TIMING, Bench


def entry(index: int, term: int, payload: bytes = b"") -> Entry:
    return Entry(index, term, 1_000, payload)


def with_log(*terms: int, term: int | None = None, voted_for: str | None = None) -> Durable:
    """A log whose entries have these terms."""
    newest = max(terms, default=0) if term is None else term
    return Durable(Vote(newest, voted_for), [entry(index, made) for index, made in enumerate(terms, 1)])


# --- votes ------------------------------------------------------------------------


def test_vote_for_a_stale_log_is_refused() -> None:
    for last, granted in (((3, 1), False), ((1, 2), False), ((2, 2), True), ((3, 2), True), ((1, 3), True)):
        bench = Bench(with_log(1, 2))
        bench.silence()
        assert bench.request_vote("b", 9, last).granted == granted, last
        bench = Bench(with_log(1, 2))
        bench.silence()
        assert bench.pre_vote("b", 9, last).granted == granted, last


def test_one_vote_a_term_and_the_same_again_to_the_same() -> None:
    bench = Bench()
    bench.silence()
    assert bench.request_vote("b", 5).granted
    assert not bench.request_vote("c", 5).granted
    assert bench.request_vote("b", 5).granted
    assert bench.newest_vote == Vote(5, "b")
    assert bench.request_vote("c", 6).granted


def test_vote_outlives_a_restart() -> None:
    bench = Bench(with_log(term=5, voted_for="b"))
    bench.silence()
    assert not bench.request_vote("c", 5).granted
    assert bench.request_vote("b", 5).granted


def test_granted_vote_is_recorded_and_its_answer_rests_on_the_record() -> None:
    bench = Bench()
    bench.silence()
    bench.replica.receive(bench._of(RequestVote, "b", 5, last_index=0, last_term=0, transfer=False), bench.now_ms)
    assert Vote(5, "b") in bench.replica.outbox.records
    ((reply, rests_on_records),) = bench.replica.outbox.messages
    assert isinstance(reply, VoteReply)
    assert rests_on_records


def test_linked_vote_that_does_not_tell_its_master_counts_as_of_the_oldest() -> None:
    bench = Bench(voters=("a", "b", "c", "d", "e"))
    bench.campaign()
    bench.pre_vote_reply("c", bench.replica.term + 1)
    for sender, told in (("b", {"linked": False}), ("c", {"linked": True})):
        bench.get(bench._of(VoteReply, sender, bench.replica.term, granted=True, time_ms=5, **told))
    assert [bench.replica.votes[sender] for sender in "bc"] == [(0, 5), (1, 5)]


def test_vote_in_an_older_term_is_refused_and_tells_the_newer() -> None:
    bench = Bench(with_log(term=5))
    bench.silence()
    reply = bench.request_vote("b", 4)
    assert (reply.granted, reply.term) == (False, 5)


def test_restart_keeps_the_term() -> None:
    bench = Bench(with_log(1, 4, term=6, voted_for="c"))
    assert (bench.replica.term, bench.replica.voted_for, bench.replica.role) == (6, "c", FOLLOWER)
    assert bench.records == []


def test_who_heard_a_master_lately_helps_nobody_to_depose_it() -> None:
    bench = Bench()
    bench.append("b", 1)
    bench.now_ms += TIMING.election_min_ms - 1
    assert not bench.pre_vote("c", 2).granted
    assert not bench.request_vote("c", 2).granted
    assert bench.replica.term == 1
    bench.now_ms += 1
    assert bench.pre_vote("c", 2).granted
    assert bench.request_vote("c", 2).granted


def test_restarted_voter_waits_out_the_silence_before_it_helps_anybody() -> None:
    bench = Bench(with_log(1))
    assert not bench.pre_vote("b", 2, (1, 1)).granted
    assert not bench.request_vote("b", 2, (1, 1)).granted
    bench.silence()
    assert bench.pre_vote("b", 2, (1, 1)).granted


def test_transfer_waives_stickiness_and_nothing_else() -> None:
    bench = Bench(with_log(1, 1))
    bench.append("b", 1, (2, 1))
    assert not bench.request_vote("c", 2, (1, 1), transfer=True).granted
    assert bench.request_vote("c", 3, (2, 1), transfer=True).granted


def test_pre_vote_changes_nothing_at_the_addressee() -> None:
    bench = Bench()
    bench.silence()
    assert bench.pre_vote("b", 40).granted
    assert bench.pre_vote("c", 40).granted
    assert (bench.replica.term, bench.replica.voted_for, bench.records) == (0, None, [])


# --- elections ---------------------------------------------------------------------


def test_silence_leads_to_a_pre_vote_that_raises_no_term() -> None:
    bench = Bench()
    sent = bench.tick(TIMING.election_max_ms)
    assert [(type(message), message.to, message.term) for message in sent] == [(PreVote, "b", 1), (PreVote, "c", 1)]
    assert (bench.replica.term, bench.replica.role) == (0, CANDIDATE)
    assert bench.pre_vote_reply("b", 1, granted=False) == []
    assert bench.replica.term == 0


def test_silence_is_random_within_its_bounds() -> None:
    waits = set()
    for _ in range(30):
        bench = Bench()
        for _ in range(len(waits) + 1):
            bench.append("b", 1)
        waits.add(bench.replica.election_at_ms - bench.now_ms)
    assert len(waits) > 10
    assert all(TIMING.election_min_ms <= wait <= TIMING.election_max_ms for wait in waits)


def test_quorum_of_pre_votes_leads_to_an_election_of_the_next_term() -> None:
    bench = Bench(with_log(1, 1))
    sent = bench.campaign()
    assert [(type(message), message.to, message.term) for message in sent] == [
        (RequestVote, "b", 2),
        (RequestVote, "c", 2),
    ]
    assert (sent[0].last_index, sent[0].last_term, sent[0].transfer) == (2, 1, False)
    assert bench.newest_vote == Vote(2, "a")


def test_late_pre_votes_of_an_earlier_campaign_count_for_nothing() -> None:
    bench = Bench()
    bench.tick(TIMING.election_max_ms)
    bench.pre_vote_reply("b", 7)
    assert bench.replica.term == 0
    bench.pre_vote_reply("b", 1)
    assert bench.replica.term == 1
    bench.pre_vote_reply("c", 1)
    assert bench.replica.term == 1


def test_own_vote_counts_once_it_is_durable() -> None:
    bench = Bench(syncs=False)
    bench.campaign()
    bench.vote_reply("b", 1)
    assert bench.replica.role == CANDIDATE
    bench.sync()
    assert bench.replica.role == MASTER


def test_votes_of_an_older_term_and_refusals_do_not_count() -> None:
    bench = Bench()
    bench.campaign()
    bench.campaign()
    assert bench.replica.term == 2
    bench.vote_reply("b", 1)
    bench.vote_reply("c", 2, granted=False)
    assert bench.replica.role == CANDIDATE
    bench.vote_reply("c", 2)
    assert bench.replica.role == MASTER


def test_two_votes_of_one_voter_are_one() -> None:
    bench = Bench(voters=("a", "b", "c", "d", "e"))
    bench.tick(TIMING.election_max_ms)
    for voter in "bc":
        bench.pre_vote_reply(voter, 1)
    bench.vote_reply("b", 1)
    bench.vote_reply("b", 1)
    assert bench.replica.role == CANDIDATE
    bench.vote_reply("e", 1)
    assert bench.replica.role == MASTER


def test_candidate_follows_the_master_of_its_term() -> None:
    bench = Bench()
    bench.campaign()
    bench.append("c", 1)
    assert (bench.replica.role, bench.replica.master, bench.replica.voted_for) == (FOLLOWER, "c", "a")


def test_higher_term_ends_a_candidature() -> None:
    bench = Bench()
    bench.campaign()
    bench.vote_reply("b", 9, granted=False)
    assert (bench.replica.role, bench.replica.term, bench.newest_vote) == (FOLLOWER, 9, Vote(9, None))


def test_misdirected_messages_are_ignored() -> None:
    bench = Bench()
    bench.silence()
    misdirected = RequestVote(cluster="", group=0, sender="b", to="c", term=9, last_index=9, last_term=9, transfer=True)
    assert bench.get(misdirected) == []
    assert bench.replica.term == 0


def test_votes_of_strangers_count_for_nothing() -> None:
    """A stranger may ask for a vote, as this member may not know yet that it became a voter; it has none itself."""
    bench = Bench()
    bench.campaign()
    bench.vote_reply("z", bench.replica.term, granted=True)
    assert bench.replica.role == CANDIDATE


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
    ((reply, rests_on_records),) = bench.replica.outbox.messages
    assert isinstance(reply, AppendReply)
    assert rests_on_records


def test_append_of_an_older_term_is_refused_and_told_the_newer() -> None:
    bench = Bench(with_log(1, term=3))
    (reply,) = bench.append("b", 2, (1, 1), entry(2, 2))
    assert (reply.ok, reply.term) == (False, 3)
    assert bench.replica.log.last_index == 1
    assert bench.replica.heard_ms == 1_000


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


def test_truncated_entries_are_not_durable_though_their_sync_ends_later() -> None:
    bench = Bench(syncs=False)
    bench.append("b", 1, (0, 0), entry(1, 1), entry(2, 1))
    old_token = bench.token
    bench.append("c", 2, (1, 1), entry(2, 2))
    bench.replica.synced(old_token, bench.now_ms)
    assert bench.replica.durable_index == 1
    bench.sync()
    assert bench.replica.durable_index == 2


def test_heartbeat_links_the_clock_and_holds_the_election_off() -> None:
    bench = Bench()
    for _ in range(5):
        bench.now_ms += 600
        bench.append("b", 1)
        assert bench.tick() == []
    assert len(bench.heard.links) == 5
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
    assert bench.heard.events == ["won", "lost"]


def test_commit_is_pushed_at_once_when_the_log_goes_idle() -> None:
    bench = Bench()
    bench.win()
    for voter in "bc":
        bench.append_reply(voter, 0)
    bench.propose(b"x", 10)
    pushed = bench.append_reply("b", 1)
    assert {(message.to, message.commit_index) for message in pushed} == {("b", 1), ("c", 1)}


def test_followers_that_match_get_entries_at_once_and_probed_ones_wait() -> None:
    bench = Bench()
    bench.win()
    assert [message for message in bench.propose(b"x", 10) if isinstance(message, Append)] == []
    (sent,) = bench.append_reply("b", 0)
    assert ([made.payload for made in sent.entries], sent.to) == ([b"x"], "b")
    (sent,) = bench.propose(b"y", 10)
    assert (sent.to, [made.payload for made in sent.entries]) == ("b", [b"y"])


def test_refused_follower_is_asked_where_its_hint_says() -> None:
    bench = Bench(with_log(1, 1, 1, 1, 1))
    bench.win()
    (sent,) = bench.append_reply("b", 2, ok=False)
    assert (sent.prev_index, sent.prev_term) == (2, 1)
    (sent,) = bench.append_reply("b", 3)
    assert [made.index for made in sent.entries] == [4, 5]


def test_late_hint_never_moves_the_probe_forward() -> None:
    bench = Bench(with_log(1, 1, 1))
    bench.win()
    for hint, expected in ((1, 1), (0, 0), (2, 0), (99, 0)):
        (sent,) = bench.append_reply("b", hint, ok=False)
        assert sent.prev_index == expected


def test_frames_and_unacknowledged_entries_are_bounded() -> None:
    bench = Bench()
    bench.win()
    for _ in range(IN_FLIGHT_ENTRIES_MAX + 700):
        bench.propose(b"", 10)
    (sent,) = bench.append_reply("b", 0)
    assert len(sent.entries) == APPEND_ENTRIES_MAX
    match = 0
    for _ in range(40):
        match += APPEND_ENTRIES_MAX
        messages = bench.append_reply("b", min(match, bench.replica.log.last_index))
        for message in messages:
            if isinstance(message, Append) and message.entries:
                assert len(message.entries) <= APPEND_ENTRIES_MAX
                assert message.entries[-1].index <= match + IN_FLIGHT_ENTRIES_MAX
    assert bench.replica.followers["b"].match_index == bench.replica.log.last_index


def test_lost_entries_are_sent_again_after_the_next_heartbeat() -> None:
    bench = Bench()
    bench.win()
    bench.append_reply("b", 0)
    bench.propose(b"lost", 10)
    (heartbeat,) = [message for message in bench.tick(TIMING.heartbeat_ms) if message.to == "b"]
    assert heartbeat.prev_index == 1
    (sent,) = bench.append_reply("b", 0, ok=False)
    assert [made.payload for made in sent.entries] == [b"lost"]


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


# --- lease ----------------------------------------------------------------------------------


def test_lease_runs_from_the_sending_of_the_round_that_a_quorum_answered() -> None:
    bench = Bench()
    bench.win()
    assert not bench.replica.lease_is_valid(bench.now_ms)
    sent_ms, asked_round = bench.now_ms, bench.replica.round
    bench.now_ms += 50
    bench.append_reply("b", 0, round_=asked_round)
    lease_ms = sent_ms + int(LEASE_SHARE * TIMING.election_min_ms)
    assert bench.replica.lease_is_valid(lease_ms - 1)
    assert not bench.replica.lease_is_valid(lease_ms)


def test_late_answers_of_old_rounds_do_not_lengthen_the_lease() -> None:
    bench = Bench()
    bench.win()
    first_round, first_ms = bench.replica.round, bench.now_ms
    bench.tick(TIMING.heartbeat_ms)
    bench.now_ms += 300
    bench.append_reply("c", 0, round_=first_round)
    assert not bench.replica.lease_is_valid(first_ms + int(LEASE_SHARE * TIMING.election_min_ms))


def test_lease_of_five_needs_three() -> None:
    bench = Bench(voters=("a", "b", "c", "d", "e"))
    bench.tick(TIMING.election_max_ms)
    for voter in "bc":
        bench.pre_vote_reply(voter, 1)
    for voter in "bc":
        bench.vote_reply(voter, 1)
    assert bench.replica.role == MASTER
    bench.append_reply("b", 0)
    assert not bench.replica.lease_is_valid(bench.now_ms)
    bench.append_reply("e", 0)
    assert bench.replica.lease_is_valid(bench.now_ms)


def test_lease_ends_before_any_other_voter_may_help_a_rival() -> None:
    assert LEASE_SHARE < 1


def test_cluster_of_one_always_has_its_lease() -> None:
    bench = Bench(voters=("a",))
    assert bench.replica.role == MASTER
    assert bench.replica.lease_is_valid(10**15)


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


def test_rounds_under_way_at_a_hand_over_give_no_lease_back() -> None:
    """Who helps the successor waives stickiness, so an answer that was on its way proves nothing."""
    bench = Bench()
    bench.win()
    bench.append_reply("b", 0)
    bench.append_reply("c", 0)
    bench.tick(TIMING.heartbeat_ms)
    assert bench.replica.hand_over(bench.now_ms)
    bench.drain()
    bench.append_reply("c", 0)
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


# --- compaction -----------------------------------------------------------------------------


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
