"""Who is too far behind for entries: what it is offered, what waits for it, and what it must not do meanwhile."""

import pytest

from elasticq.replication import tracker
from elasticq.replication.events import FellBehind
from elasticq.replication.messages import Append, AppendReply, Join, Offer, PreVote, RequestVote, TimeoutNow
from elasticq.replication.records import Base, Durable, Entry, Vote, Voter
from elasticq.replication.replica import MASTER
from elasticq.replication.tracker import LEARNER_SILENT_MS, PINNED_FACTOR
from tests.replication.bench import TIMING, Bench, with_log


@pytest.fixture(autouse=True)
def short_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is fewer entries behind than may be in flight is waited for anyway."""
    monkeypatch.setattr(tracker, "IN_FLIGHT_ENTRIES_MAX", 4)


def entry(index: int, term: int = 1, payload: bytes = b"x") -> Entry:
    return Entry(index, term, 1_000, payload)


def forgetful_master(base: int = 50, last: int = 60) -> Bench:
    """Its log begins after ``base``; b has everything, c is down since the beginning."""
    bench = Bench(Durable(Vote(1, None), [entry(index) for index in range(base + 1, last + 1)], Base(base, 1, 1_000)))
    bench.campaign()
    bench.vote_reply("b", 2)
    bench.propose()
    bench.append_reply("b", last + 1)
    assert bench.replica.commit_index == last + 1
    return bench


def offers(messages: list[object]) -> list[int]:
    return [message.index for message in messages if isinstance(message, Offer)]


def beat(bench: Bench) -> list[object]:
    """A heartbeat round that b answers."""
    sent = bench.tick(TIMING.heartbeat_ms)
    bench.append_reply("b", bench.replica.log.last_index)
    return list(sent)


def test_member_below_the_logs_beginning_is_offered_a_snapshot_and_hears_heartbeats() -> None:
    bench = forgetful_master()
    sent = bench.append_reply("c", 0, ok=False)
    assert offers(list(sent)) == [50]
    (heartbeat,) = [message for message in sent if isinstance(message, Append)]
    assert (heartbeat.prev_index, heartbeat.prev_term, heartbeat.entries) == (0, 0, [])
    bench.append_reply("c", 0)
    assert bench.replica.followers["c"].match_index == 0
    assert offers(beat(bench)) == [50], "again with each round, as it may have been lost"


def test_log_is_pinned_from_the_offer_on_within_its_bound() -> None:
    bench = forgetful_master()
    bench.append_reply("c", 0, ok=False)
    bench.replica.compact(61, 1)
    assert bench.replica.log.base_index == 60, "so little may be kept that nothing waits"
    bench = forgetful_master()
    bench.append_reply("c", 0, ok=False)
    bench.replica.compact(61, 200)
    assert bench.replica.log.base_index == 50, "pinned"
    size_bytes = bench.replica.log.size_bytes
    bench.replica.compact(61, size_bytes // PINNED_FACTOR - 1)
    assert bench.replica.log.base_index > 50, "not for ever"


def test_pin_goes_with_the_snapshot_that_arrived_and_with_silence() -> None:
    bench = forgetful_master()
    bench.append_reply("c", 0, ok=False)
    bench.append_reply("c", 55)
    assert bench.replica.followers["c"].offered_index == 0
    assert bench.replica.followers["c"].match_index == 55
    bench = forgetful_master()
    bench.append_reply("c", 0, ok=False)
    for _ in range(LEARNER_SILENT_MS // TIMING.heartbeat_ms + 1):
        bench.now_ms += TIMING.heartbeat_ms
        bench.append_reply("b", 61)
        bench.replica.tracker.drop_silent(bench.now_ms)
    assert bench.replica.followers["c"].offered_index == 0


def test_member_whose_snapshot_the_log_outgrew_is_offered_a_newer_one() -> None:
    """Else it would be told for ever of one that it has."""
    bench = forgetful_master()
    assert offers(list(bench.append_reply("c", 0, ok=False))) == [50]
    bench.replica.compact(61, 1)
    base = bench.replica.log.base_index
    assert base > 52
    assert bench.append_reply("c", 52) == []  # it has installed one at 52
    assert offers(beat(bench)) == [base]
    sent = bench.append_reply("c", base)
    assert bench.replica.followers["c"].offered_index == 0
    assert [message.prev_index for message in sent if isinstance(message, Append) and message.to == "c"] == [base]


def test_entries_follow_from_the_place_of_the_snapshot() -> None:
    bench = forgetful_master()
    bench.append_reply("c", 0, ok=False)
    sent = bench.append_reply("c", 55)
    (message,) = [message for message in sent if isinstance(message, Append) and message.to == "c"]
    assert message.prev_index == 55
    assert [each.index for each in message.entries] == list(range(56, 62))


def test_voter_that_is_down_holds_no_log_beyond_what_is_kept() -> None:
    bench = forgetful_master()
    bench.replica.compact(61, 400)
    assert bench.replica.log.base_index > 50


# --- the one that takes it ---------------------------------------------------------


def waiting(match: int = 2) -> Bench:
    """A voter with a short log, offered a snapshot at 50 by b."""
    bench = Bench(Durable(Vote(1, None), [entry(index) for index in range(1, match + 1)]))
    bench.append("b", 1)
    bench.get(bench._of(Offer, "b", 1, index=50))
    assert bench.replica.wanted == ("b", 50)
    return bench


def test_offer_of_who_is_no_master_or_of_what_is_here_is_nothing() -> None:
    bench = Bench(Durable(Vote(1, None), [entry(1), entry(2)]))
    bench.append("b", 1, (2, 1), commit=2)
    for sender, term, index in (("c", 1, 50), ("b", 0, 50), ("b", 2, 50), ("b", 1, 2)):
        bench.get(bench._of(Offer, sender, term, index=index))
        assert bench.replica.wanted is None, (sender, term, index)


def test_match_index_is_honest_while_a_snapshot_is_wanted() -> None:
    bench = waiting()
    (reply,) = bench.append("b", 1, (0, 0), commit=60)
    assert isinstance(reply, AppendReply)
    assert (reply.ok, reply.match_index) == (True, 0)
    (reply,) = bench.append("b", 1, (60, 1), entry(61), commit=60)
    assert isinstance(reply, AppendReply)
    assert (reply.ok, reply.match_index) == (False, 2), "entries above the snapshot are not acknowledged"
    assert bench.replica.log.last_index == 2
    assert bench.replica.commit_index == 0


def test_member_that_wants_a_snapshot_neither_votes_nor_stands() -> None:
    bench = waiting()
    bench.silence()
    assert not bench.pre_vote("c", 9, (99, 8)).granted
    assert not bench.request_vote("c", 9, (99, 8)).granted
    term = bench.replica.term
    for _ in range(5):
        sent = bench.tick(TIMING.election_max_ms)
        assert not any(isinstance(message, PreVote) for message in sent)
    bench.get(bench._of(TimeoutNow, "b", term))
    assert bench.replica.term == term
    assert bench.replica.wake_at_ms > bench.now_ms


def test_snapshot_is_no_longer_wanted_when_the_log_goes_on_without_it() -> None:
    bench = waiting()
    bench.append("c", 2, (2, 1), entry(3, 2))
    assert bench.replica.wanted is None
    assert bench.replica.may_vote


def test_member_over_its_snapshot_goes_on_from_there() -> None:
    bench = Bench(Durable(Vote(4, None), [], Base(55, 3, 1_000), applied_index=55))
    assert bench.replica.commit_index == 55
    (reply,) = bench.append("b", 4, (0, 0))
    assert isinstance(reply, AppendReply)
    assert (reply.ok, reply.match_index) == (True, 55), "all up to there is committed, so it matches by itself"
    (reply,) = bench.append("b", 4, (55, 3), entry(56, 4), commit=56)
    assert isinstance(reply, AppendReply)
    assert (reply.ok, reply.match_index) == (True, 56)
    bench.silence()
    assert bench.pre_vote("c", 9, (56, 4)).granted


def test_learner_far_behind_is_offered_one_too() -> None:
    bench = forgetful_master()
    bench.get(bench._of(Join, "d", 0))
    assert offers(list(bench.append_reply("d", 0, ok=False))) == [50]


def test_voters_at_the_place_of_the_rows_are_known_after_a_restart() -> None:
    """A snapshot made before anything else is committed names the right ones."""
    named = tuple(Voter(each) for each in "abd")
    log = [entry(1), Entry(2, 1, 1_000, b"", named), entry(3)]
    bench = Bench(Durable(Vote(1, None), log, applied_index=3))
    assert bench.replica.membership.committed_voters == named


def with_holes(voters: tuple[str, ...] = ("a", "b", "c")) -> Bench:
    """Return a member whose storage could not read some of its rows at the start."""
    durable = with_log(1, 1, 1)
    durable.is_whole = False
    return Bench(durable, voters=voters)


def test_member_with_holes_in_its_rows_asks_another_one_for_a_snapshot() -> None:
    bench = with_holes()
    assert [event for event in bench.events if isinstance(event, FellBehind)] == [FellBehind("b", 1)]
    assert bench.replica.wanted == ("b", 1)


def test_member_with_holes_in_its_rows_neither_stands_nor_votes() -> None:
    bench = with_holes()
    for _ in range(20):
        bench.tick(TIMING.election_max_ms)
    assert [message for message in bench.sent if isinstance(message, PreVote | RequestVote)] == []
    assert not bench.pre_vote("b", 2, last=(9, 1)).granted
    assert not bench.request_vote("b", 2, last=(9, 1)).granted


def test_member_alone_with_holes_in_its_rows_continues_with_the_rest() -> None:
    bench = with_holes(voters=("a",))
    assert bench.replica.is_whole
    assert bench.replica.role == MASTER
