"""Changes of the voters: one at a time, in force when appended, told to those who go."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.replication.membership import Membership
from elasticq.replication.messages import Append, Join, PreVote, TimeoutNow
from elasticq.replication.records import BEGINNING, Entry, Truncation, Voter
from elasticq.replication.replica import FOLLOWER, MASTER
from tests.replication.bench import TIMING, Bench


def voters(names: str) -> tuple[Voter, ...]:
    return tuple(Voter(name) for name in names)


def master(names: str = "abc", *, syncs: bool = True) -> Bench:
    """It has committed an entry of its own term."""
    bench = Bench(voters=tuple(names))
    if len(names) > 1:
        bench.tick(TIMING.election_max_ms)
        for name in names[1:]:
            bench.pre_vote_reply(name, 1)
        for name in names[1:]:
            bench.vote_reply(name, 1)
    bench.propose()
    for name in names[1:]:
        bench.append_reply(name, bench.replica.log.last_index)
    assert bench.replica.may_change()
    bench.syncs = syncs
    return bench


def change(bench: Bench, names: str) -> list[object]:
    bench.replica.propose(b"", bench.replica.log.last_time_ms, bench.now_ms, voters=voters(names))
    return list(bench.drain())


def test_change_is_in_force_when_it_is_appended() -> None:
    bench = master()
    bench.get(bench._of(Join, "d", 0))
    change(bench, "abcd")
    assert (bench.replica.voters, bench.replica.quorum) == (tuple("abcd"), 3)
    last = bench.replica.log.last_index
    bench.append_reply("b", last)
    assert bench.replica.commit_index < last, "two of four are no majority"
    bench.append_reply("d", last)
    assert bench.replica.commit_index == last


def test_next_change_waits_for_the_commit_of_the_last() -> None:
    bench = master()
    change(bench, "ab")
    assert not bench.replica.may_change()
    with pytest.raises(AssertionError, match="one change"):
        change(bench, "a")
    bench.append_reply("b", bench.replica.log.last_index)
    assert bench.replica.may_change()


def test_two_voters_at_once_are_refused() -> None:
    bench = master()
    for names in ("a", "abcde", "abd", "d"):
        with pytest.raises(AssertionError, match="of one voter"):
            change(bench, names)
    with pytest.raises(AssertionError):
        change(bench, "")


def test_new_master_changes_nothing_before_it_committed_an_entry_of_its_term() -> None:
    """Ongaro's bug of 2015: two masters, each with a change that the other does not know."""
    bench = Bench()
    bench.win()
    assert not bench.replica.may_change()
    bench.propose()
    assert not bench.replica.may_change()
    bench.append_reply("b", 1)
    assert bench.replica.may_change()


def test_followers_take_no_proposals() -> None:
    bench = Bench()
    with pytest.raises(AssertionError):
        change(bench, "ab")


def test_removed_member_hears_the_log_until_it_knows() -> None:
    bench = master()
    change(bench, "ab")
    last = bench.replica.log.last_index
    assert "c" in bench.replica.followers
    assert bench.replica.followers["c"].is_leaving
    bench.append_reply("b", last)
    assert bench.replica.commit_index == last
    assert "c" in bench.replica.followers, "it has not got the entry yet"
    sent = bench.append_reply("c", last)
    told = [message for message in sent if isinstance(message, Append) and message.to == "c"]
    assert [message.commit_index for message in told] == [last]
    assert "c" not in bench.replica.followers


def test_removed_member_that_had_the_entry_is_told_its_commit() -> None:
    bench = master("abcd")
    change(bench, "abc")
    last = bench.replica.log.last_index
    bench.append_reply("d", last)
    bench.append_reply("b", last)
    told = [message for message in bench.sent if isinstance(message, Append) and message.to == "d"]
    assert told[-1].commit_index == last
    assert "d" not in bench.replica.followers


def test_removed_members_disk_counts_no_more() -> None:
    bench = master(syncs=False)
    change(bench, "ab")
    last = bench.replica.log.last_index
    bench.append_reply("c", last)
    bench.sync()
    assert bench.replica.commit_index < last
    bench.append_reply("b", last)
    assert bench.replica.commit_index == last


def test_master_that_takes_itself_out_hands_over_when_that_is_committed() -> None:
    bench = master()
    change(bench, "bc")
    last = bench.replica.log.last_index
    assert bench.replica.role == MASTER
    bench.append_reply("b", last)
    assert bench.replica.role == MASTER, "its own disk counts no more"
    bench.append_reply("c", last)
    assert bench.replica.commit_index == last
    assert bench.replica.role == FOLLOWER
    assert [message.to for message in bench.sent if isinstance(message, TimeoutNow)] in (["b"], ["c"])
    sent = bench.tick(TIMING.election_max_ms)
    assert not any(isinstance(message, PreVote) for message in sent)


def test_cluster_of_one_grows_and_shrinks_again() -> None:
    bench = master("a")
    bench.get(bench._of(Join, "b", 0))
    bench.append_reply("b", bench.replica.log.last_index)
    change(bench, "ab")
    last = bench.replica.log.last_index
    assert bench.replica.commit_index < last, "two of two"
    assert not bench.replica.lease_is_valid(bench.now_ms)
    bench.append_reply("b", last)
    assert bench.replica.commit_index == last
    change(bench, "a")
    assert bench.replica.commit_index == last + 1
    assert bench.replica.lease_is_valid(bench.now_ms)


def test_truncated_change_gives_the_old_quorum_back() -> None:
    bench = Bench()
    bench.append("b", 1, (0, 0), Entry(1, 1, 0, b""), Entry(2, 1, 0, b"", voters("abcd")))
    assert (bench.replica.voters, bench.replica.quorum) == (tuple("abcd"), 3)
    bench.append("c", 2, (1, 1), Entry(2, 2, 0, b""))
    assert Truncation(2) in bench.records
    assert (bench.replica.voters, bench.replica.quorum) == (tuple("abc"), 2)


def test_follower_that_is_named_by_an_uncommitted_entry_is_a_voter() -> None:
    bench = Bench(voters=("b", "c"))
    bench.replica.cluster = "x"
    bench.append("b", 1, (0, 0), Entry(1, 1, 0, b"", voters("abc")))
    assert bench.replica.membership.is_voter
    sent = bench.tick(TIMING.election_max_ms)
    assert [type(message) for message in sent] == [PreVote, PreVote]


def majorities(names: tuple[str, ...]) -> list[set[str]]:
    return [set(chosen) for chosen in combinations(names, len(names) // 2 + 1)]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=20))
def test_any_two_adjacent_majorities_share_a_member(steps: list[tuple[bool, int]]) -> None:
    membership = Membership("a", ("a", "b", "c"), BEGINNING)
    for index, (is_added, number) in enumerate(steps, 1):
        name = "abcdefg"[number]
        before = membership.ids
        after = (*before, name) if is_added else tuple(each for each in before if each != name)
        proposed = voters("".join(dict.fromkeys(after)))
        if not membership.allows(proposed):
            assert not proposed
            continue
        membership.appended(Entry(index, 1, 0, b"", proposed))
        assert membership.quorum == len(membership.ids) // 2 + 1
        for old in majorities(before):
            assert all(old & new for new in majorities(membership.ids))


@given(st.sets(st.sampled_from("abcdefg"), min_size=1), st.sets(st.sampled_from("abcdefg")))
def test_what_is_allowed_is_exactly_one_step(old: set[str], new: set[str]) -> None:
    membership = Membership("a", tuple(sorted(old)), BEGINNING)
    assert membership.allows(voters("".join(sorted(new)))) == (bool(new) and len(old ^ new) <= 1)


@pytest.mark.parametrize("names", ["bc", "ab"])
def test_answer_that_commits_a_removal_while_more_is_in_the_log_does_no_harm(names: str) -> None:
    """The follower that answered, or the whole mastership, is gone in the midst of its answer."""
    bench = master()
    change(bench, names)
    last = bench.replica.log.last_index
    bench.propose()
    bench.append_reply("b", last)
    bench.replica.followers["c"].probing = True  # it has more coming
    bench.append_reply("c", last)
    assert bench.replica.commit_index == last
    assert "c" not in bench.replica.followers
    assert (bench.replica.role == MASTER) == ("a" in names)
