"""Until when a master may answer reads by itself."""

from elasticq.replication.lease import LEASE_SHARE, ROUNDS_MAX, LeaderLease
from elasticq.replication.replica import MASTER
from tests.replication.bench import TIMING, Bench


def test_lease_runs_from_the_sending_of_the_round_that_a_quorum_answered() -> None:
    bench = Bench()
    bench.win()
    assert not bench.replica.lease_is_valid(bench.now_ms)
    sent_ms, asked_round = bench.now_ms, bench.replica.lease.round
    bench.now_ms += 50
    bench.append_reply("b", 0, round_=asked_round)
    lease_ms = sent_ms + int(LEASE_SHARE * TIMING.broken_link_ms)
    assert bench.replica.lease_is_valid(lease_ms - 1)
    assert not bench.replica.lease_is_valid(lease_ms)


def test_late_answers_of_old_rounds_do_not_lengthen_the_lease() -> None:
    bench = Bench()
    bench.win()
    first_round, first_ms = bench.replica.lease.round, bench.now_ms
    bench.tick(TIMING.heartbeat_ms)
    bench.now_ms += 300
    bench.append_reply("c", 0, round_=first_round)
    assert not bench.replica.lease_is_valid(first_ms + int(LEASE_SHARE * TIMING.broken_link_ms))


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


def test_mastership_that_came_back_soon_after_a_hand_over_has_a_lease() -> None:
    """Otherwise its reads have no lease for more than a second, and all answers wait behind them."""
    lease = LeaderLease(1_000)
    lease.begin()
    lease.give_up(2_400)
    lease.begin()
    lease.new_round(1_200)
    lease.extend(1)
    assert lease.is_valid(1_201)


def test_answer_to_an_append_of_an_older_term_names_no_round() -> None:
    """Its sender may have restarted and be master again, with rounds of which the old one would be a later one."""
    bench = Bench()
    (reply,) = bench.append("b", 2, round_=76)
    assert reply.round == 76
    bench.append("c", 3, round_=1)
    (reply,) = bench.append("b", 2, round_=77)
    assert (reply.term, reply.ok, reply.round) == (3, False, 0)


def test_rounds_that_nobody_answers_are_forgotten_within_a_bound() -> None:
    lease = LeaderLease(1_000)
    for now_ms in range(2 * ROUNDS_MAX):
        lease.new_round(now_ms)
    lease.extend(ROUNDS_MAX)
    assert not lease.is_valid(0), "the first half is forgotten"
    lease.extend(ROUNDS_MAX + 1)
    assert lease.until_ms == ROUNDS_MAX + int(LEASE_SHARE * 1_000)


def test_new_mastership_gets_no_lease_from_rounds_of_an_earlier_one() -> None:
    lease = LeaderLease(1_000)
    lease.new_round(10)
    lease.begin()
    lease.extend(1)
    assert not lease.is_valid(10)
    lease.new_round(20)
    lease.extend(2)
    assert lease.is_valid(20)
    lease.end()
    assert not lease.is_valid(20)
