"""What a storage makes of vote, log and rows when it starts: the base, and what is missing between them."""

import pytest

from elasticq.replication.records import BEGINNING, Base, Durable, Entry, Vote, Voter
from elasticq.storage.errors import DataError
from elasticq.storage.start import compose
from tests.storage.test_storage import entry


def test_entries_that_the_rows_hold_stay_for_other_members() -> None:
    entries = [entry(index) for index in (1, 2, 3)]
    applied = Base(2, 1, 1_002)
    assert compose(Vote(1, None), entries, applied) == Durable(Vote(1, None), entries, BEGINNING, 2)
    assert compose(Vote(1, None), entries[1:], applied).base == Base(2, 1, entry(2).time_ms)
    assert compose(Vote(1, None), entries[2:], applied) == Durable(Vote(1, None), [entry(3)], applied, 2)


def test_base_names_the_voters_of_its_place() -> None:
    old, new = (Voter("a"),), (Voter("a"), Voter("b"))
    applied = Base(4, 1, 1_004, new)

    def composed(*entries: Entry) -> Durable:
        return compose(Vote(1, None), list(entries), applied)

    def named(index: int, voters: tuple[Voter, ...] | None = None) -> Entry:
        return Entry(index, 1, 1_000 + index, b"", voters)

    assert composed().base == applied
    assert composed(named(5)).base == applied
    assert composed(*map(named, range(1, 6))).base == BEGINNING
    assert composed(*map(named, range(2, 6))).base == Base(2, 1, 1_002, new)  # nobody since: as at the applied index
    assert composed(named(2, old), named(3, new), named(4)).base == Base(2, 1, 1_002, old)
    assert composed(named(2), named(3, new), named(4)).base == Base(2, 1, 1_002, None)  # of before nobody knows
    assert composed(named(2), named(3), named(4), named(5, old)).base == Base(2, 1, 1_002, new)


def test_entries_missing_between_rows_and_log_are_told() -> None:
    with pytest.raises(DataError, match="Entries 3 to 4 are missing"):
        compose(Vote(1, None), [entry(5)], Base(2, 1, 1_002))


def test_a_log_that_was_taken_away_is_told() -> None:
    with pytest.raises(DataError, match="missing or older"):
        compose(Vote(0, None), [], Base(2, 1, 1_002))
