"""What the node hears of, in the order in which it happened, and as things stood then."""

from elasticq.replication.events import (
    BecameMaster,
    CaughtUp,
    CommitMoved,
    Dropped,
    Event,
    FellBehind,
    HeardMaster,
    LostMastership,
    MembersChanged,
)
from elasticq.replication.messages import Offer
from elasticq.replication.records import Entry, Voter
from tests.replication.bench import TIMING, Bench, entry, with_log


def told(bench: Bench) -> list[Event]:
    """What was told since the last call."""
    events = list(bench.events)
    bench.events.clear()
    return events


def deposed_by(bench: Bench, *entries: Entry, commit: int) -> list[Event]:
    """A master of term 1 that has committed entry 1 and proposed two more hears of the master of term 2."""
    bench.win()
    for _ in range(3):
        bench.propose()
    bench.append_reply("b", 1)
    told(bench)
    bench.append("c", 2, (1, 1), *entries, commit=commit)
    return told(bench)


def test_mastership_is_lost_before_the_log_of_the_next_master_is_told() -> None:
    """One frame ends a mastership, cuts what it left uncommitted, and commits what came instead."""
    bench = Bench()
    events = deposed_by(bench, entry(2, 2), entry(3, 2), commit=3)
    assert [type(event) for event in events] == [LostMastership, HeardMaster, Dropped, CommitMoved]
    lost, linked, dropped, moved = events
    reason = "others are in the newer term 2"
    assert lost == LostMastership(1, reason), "the commit index of then, though it is 3 when the node hears of it"
    assert linked == HeardMaster(2, 7_000_000 + bench.now_ms)
    assert isinstance(dropped, Dropped)
    assert [(each.index, each.term) for each in dropped.entries] == [(2, 1), (3, 1)]
    assert moved == CommitMoved(3, is_master=False)


def test_master_that_commits_its_own_removal_tells_the_commit_as_master() -> None:
    """Else the node would take back what is committed."""
    bench = Bench()
    bench.win()
    bench.propose()
    bench.append_reply("b", 1)
    bench.append_reply("c", 1)
    bench.replica.propose(b"", 0, bench.now_ms, voters=(Voter("b"), Voter("c")))
    bench.drain()
    assert told(bench)[-1] == MembersChanged(2, is_voter=False)
    bench.append_reply("b", 2)
    bench.append_reply("c", 2)
    assert told(bench) == [CommitMoved(2, is_master=True), LostMastership(2, "it was removed from the voters")]


def test_new_master_that_nobody_asks_for_a_round_sends_it_with_the_next_tick() -> None:
    bench = Bench()
    bench.campaign()
    bench.replica.receive(bench.vote_of("b", 1), bench.now_ms)
    assert bench.replica.ready.events == [BecameMaster()]
    assert bench.replica.ready.messages == []
    assert bench.replica.wake_at_ms == bench.now_ms
    bench.replica.tick(bench.now_ms)
    assert [message.to for message, _ in bench.replica.ready.messages] == ["b", "c"]


def test_first_round_carries_the_entry_that_was_proposed_before_it() -> None:
    bench = Bench(with_log(1))
    bench.campaign()
    bench.replica.receive(bench.vote_of("b", 2), bench.now_ms)
    bench.replica.propose(b"takeover", 1_000, bench.now_ms)
    bench.replica.ask_round(bench.now_ms)
    sent = [message for message, _ in bench.replica.ready.messages]
    assert [[made.payload for made in message.entries] for message in sent] == [[b"takeover"], [b"takeover"]]


def test_member_alone_in_memory_tells_nothing_of_its_entries() -> None:
    """The way of a send to it is the one that pays for each call."""
    bench = Bench(voters=("a",), is_volatile=True)
    told(bench)
    for _ in range(3):
        bench.propose()
    assert bench.replica.commit_index == 3
    assert told(bench) == []
    assert bench.records[1:] == []


def test_snapshot_is_wanted_once_and_no_more_when_the_log_goes_on() -> None:
    bench = Bench(with_log(1, 1))
    bench.append("b", 1)
    told(bench)
    for index in (50, 60):
        bench.get(bench._of(Offer, "b", 1, index=index))
    assert told(bench) == [FellBehind("b", 50)]
    bench.append("b", 1, (2, 1), entry(3, 1))
    assert told(bench)[-1] == CaughtUp()


def test_silence_of_all_others_ends_a_mastership() -> None:
    bench = Bench()
    bench.win()
    told(bench)
    bench.tick(TIMING.election_max_ms)
    assert told(bench) == [LostMastership(0, "no majority was heard for 700 ms")]
