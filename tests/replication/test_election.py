"""Who is voted for, and who stands when: a test for each of Raft's rules."""

from msgspec.structs import replace

from elasticq.replication.election import TURN_MS
from elasticq.replication.messages import PreVote, RequestVote, VoteReply
from elasticq.replication.records import Vote
from elasticq.replication.replica import CANDIDATE, FOLLOWER, MASTER
from tests.replication.bench import TIMING, Bench, with_log

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
    assert Vote(5, "b") in bench.replica.ready.records
    ((reply, rests_on_records),) = bench.replica.ready.messages
    assert isinstance(reply, VoteReply)
    assert rests_on_records


def test_linked_vote_that_does_not_tell_its_master_counts_as_of_the_oldest() -> None:
    bench = Bench(voters=("a", "b", "c", "d", "e"))
    bench.campaign()
    bench.pre_vote_reply("c", bench.replica.term + 1)
    for sender, told in (("b", {"linked": False}), ("c", {"linked": True})):
        bench.get(bench._of(VoteReply, sender, bench.replica.term, granted=True, time_ms=5, **told))
    assert [bench.replica.election.votes[sender] for sender in "bc"] == [(0, 5), (1, 5)]


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
        waits.add(bench.replica.election.at_ms - bench.now_ms)
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


def test_votes_of_strangers_count_for_nothing() -> None:
    """A stranger may ask for a vote, as this member may not know yet that it became a voter; it has none itself."""
    bench = Bench()
    bench.campaign()
    bench.vote_reply("z", bench.replica.term, granted=True)
    assert bench.replica.role == CANDIDATE


# --- a broken link to the master ------------------------------------------------------


def test_voter_whose_link_to_the_master_broke_stands_as_soon_as_no_lease_is_left() -> None:
    bench = Bench()
    bench.append("c", 1)
    heard_ms = bench.now_ms
    bench.now_ms += 5
    bench.replica.link_broke("c", bench.now_ms)
    stands_ms = bench.replica.election.at_ms
    assert heard_ms + TIMING.broken_link_ms < stands_ms <= heard_ms + TIMING.broken_link_ms + TURN_MS
    assert bench.tick(stands_ms - bench.now_ms - 1) == []
    assert [(type(message), message.to) for message in bench.tick(1)] == [(PreVote, "b"), (PreVote, "c")]
    retry_ms = bench.replica.election.at_ms - bench.now_ms
    assert TIMING.broken_link_ms <= retry_ms <= 2 * TIMING.broken_link_ms, "others may notice later"


def test_those_whose_links_to_the_master_broke_stand_one_after_another() -> None:
    stands_ms = []
    for master in "bc":
        bench = Bench(voters=(master, "a"))
        bench.append(master, 1)
        bench.replica.link_broke(master, bench.now_ms)
        stands_ms.append(bench.replica.election.at_ms - bench.now_ms)
    assert stands_ms[0] == stands_ms[1]
    bench = Bench(voters=("0", "1", "a", "b"))
    bench.append("b", 1)
    bench.replica.link_broke("b", bench.now_ms)
    assert bench.replica.election.at_ms - bench.now_ms == stands_ms[0] + 2 * TURN_MS


def test_turns_are_kept_where_the_silence_was_over_before_the_links_broke() -> None:
    bench = Bench(voters=("0", "a", "b"))
    bench.append("b", 1)
    bench.now_ms += 500
    bench.replica.link_broke("b", bench.now_ms)
    assert bench.replica.election.at_ms == bench.now_ms + TURN_MS


def test_voter_helps_nobody_while_the_master_may_have_its_lease() -> None:
    """The other end of a link that broke may be alive and answer reads."""
    bench = Bench()
    bench.append("b", 1)
    bench.replica.link_broke("b", bench.now_ms)
    bench.now_ms += TIMING.broken_link_ms - 1
    assert not bench.pre_vote("c", 2).granted
    assert not bench.request_vote("c", 2).granted
    bench.now_ms += 1
    assert bench.pre_vote("c", 2).granted
    assert bench.request_vote("c", 2).granted


def test_broken_link_to_anybody_else_changes_nothing() -> None:
    bench = Bench()
    bench.append("b", 1)
    before_ms = bench.replica.election.at_ms
    bench.replica.link_broke("c", bench.now_ms)
    assert bench.replica.election.at_ms == before_ms
    bench.now_ms += TIMING.broken_link_ms
    assert not bench.pre_vote("c", 2).granted


def test_master_that_is_heard_again_is_left_alone_as_before() -> None:
    bench = Bench()
    bench.append("b", 1)
    bench.replica.link_broke("b", bench.now_ms)
    bench.now_ms += 50
    bench.append("b", 1)
    assert bench.replica.election.at_ms >= bench.now_ms + TIMING.election_min_ms
    bench.now_ms += TIMING.broken_link_ms
    assert not bench.pre_vote("c", 2).granted


def test_on_a_slow_disk_a_broken_link_is_no_reason_for_haste() -> None:
    bench = Bench()
    bench.append("b", 1)
    bench.replica.election.fsync_ms = 700
    bench.replica.link_broke("b", bench.now_ms)
    bench.tick(bench.replica.election.at_ms - bench.now_ms)
    assert bench.replica.election.at_ms - bench.now_ms >= 10 * TIMING.broken_link_ms


def test_candidate_that_dies_with_this_vote_before_it_was_heard_as_master_is_replaced_as_soon() -> None:
    bench = Bench()
    bench.silence()
    assert bench.request_vote("b", 5).granted
    bench.replica.link_broke("b", bench.now_ms)
    assert bench.replica.election.at_ms <= bench.now_ms + TIMING.broken_link_ms + TURN_MS


def test_where_a_broken_link_is_no_sign_the_silence_is_as_long_as_ever() -> None:
    bench = Bench(timing=replace(TIMING, broken_link_ms=TIMING.election_min_ms))
    bench.append("b", 1)
    before_ms = bench.replica.election.at_ms
    bench.replica.link_broke("b", bench.now_ms)
    assert bench.replica.election.at_ms == before_ms
