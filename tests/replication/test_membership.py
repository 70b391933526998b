"""Who the voters are: the newest entry that names them, through appends, truncations and commits."""

from hypothesis import given
from hypothesis import strategies as st

from elasticq.replication.membership import Membership
from elasticq.replication.records import BEGINNING, Base, Entry, Voter


def voters(names: str) -> tuple[Voter, ...]:
    return tuple(Voter(name, f"{name}:9326") for name in names)


def naming(index: int, names: str | None) -> Entry:
    return Entry(index, 1, 0, b"", None if names is None else voters(names))


def test_founders_are_the_voters_until_somebody_names_others() -> None:
    membership = Membership("a", ("a", "b", "c"), BEGINNING)
    assert (membership.ids, membership.others, membership.quorum) == (("a", "b", "c"), ("b", "c"), 2)
    assert membership.is_voter
    assert membership.index == 0


def test_base_wins_over_the_founders() -> None:
    membership = Membership("a", ("a",), Base(7, 2, 0, voters("bcde")))
    assert (membership.ids, membership.quorum, membership.is_voter) == (("b", "c", "d", "e"), 3, False)
    assert membership.index == 7
    assert membership.others == ("b", "c", "d", "e")


def test_nobody_is_a_voter_before_the_founding() -> None:
    membership = Membership("a", (), BEGINNING)
    assert (membership.ids, membership.is_voter, membership.quorum) == ((), False, 1)
    assert membership.appended(naming(1, "abc"))
    assert membership.is_voter


def test_entries_that_name_nobody_change_nothing() -> None:
    membership = Membership("a", ("a",), BEGINNING)
    assert not membership.appended(naming(1, None))
    assert membership.index == 0


def test_quorum_is_the_majority_of_any_size() -> None:
    for size, quorum in ((1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)):
        membership = Membership("a", tuple("abcdefg"[:size]), BEGINNING)
        assert membership.quorum == quorum
        assert len(membership.others) == size - 1


def test_truncation_brings_the_earlier_voters_back() -> None:
    membership = Membership("a", ("a", "b", "c"), BEGINNING)
    membership.appended(naming(4, "abcd"))
    membership.appended(naming(6, "bcd"))
    assert not membership.truncated(7)
    assert membership.truncated(5)
    assert (membership.ids, membership.index) == (("a", "b", "c", "d"), 4)
    assert membership.truncated(1)
    assert (membership.ids, membership.index) == (("a", "b", "c"), 0)
    assert not membership.truncated(1)


def test_committed_voters_follow_the_commit_and_not_the_log() -> None:
    membership = Membership("a", ("a", "b", "c"), BEGINNING)
    membership.appended(naming(4, "abcd"))
    membership.appended(naming(6, "abcde"))
    membership.committed(3)
    assert [voter.id for voter in membership.committed_voters] == list("abc")
    membership.committed(5)
    assert [voter.id for voter in membership.committed_voters] == list("abcd")
    assert membership.ids == tuple("abcde")
    membership.committed(9)
    assert [voter.id for voter in membership.committed_voters] == list("abcde")


def test_only_one_voter_may_come_or_go_and_one_must_stay() -> None:
    membership = Membership("a", ("a", "b"), BEGINNING)
    assert membership.allows(voters("abc"))
    assert membership.allows(voters("a"))
    assert membership.allows(voters("b"))
    assert membership.allows(voters("ba"))
    for names in ("abcd", "ac", "c", ""):
        assert not membership.allows(voters(names)), names


@given(st.lists(st.tuples(st.sampled_from(["append", "plain", "truncate", "commit"]), st.integers(0, 5)), max_size=40))
def test_membership_is_what_a_scan_of_the_log_finds(steps: list[tuple[str, int]]) -> None:
    membership = Membership("a", ("a", "b", "c"), BEGINNING)
    log: list[Entry] = []
    committed = 0
    for action, number in steps:
        if action in ("append", "plain"):
            log.append(naming(len(log) + 1, "abcdef"[: number + 1] if action == "append" else None))
            membership.appended(log[-1])
        elif action == "truncate" and len(log) - number > committed:
            index = len(log) - number
            del log[index - 1 :]
            membership.truncated(index)
        elif action == "commit":
            committed = min(len(log), committed + number)
            membership.committed(committed)
        named = [entry.voters for entry in log if entry.voters is not None]
        certain = [entry.voters for entry in log[:committed] if entry.voters is not None]
        assert membership.ids == (tuple(voter.id for voter in named[-1]) if named else tuple("abc"))
        assert tuple(v.id for v in membership.committed_voters) == (
            tuple(v.id for v in certain[-1]) if certain else tuple("abc")
        )
        assert len(membership._named) <= len(named) + 1
