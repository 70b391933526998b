"""The log against a plain list: terms, slices, truncation, compaction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.replication.log import ENTRY_BYTES, Log
from elasticq.replication.records import Base, Entry, Voter


def entry(index: int, term: int = 1, payload: bytes = b"x") -> Entry:
    return Entry(index, term, index * 10, payload)


def filled(count: int) -> Log:
    return Log([entry(index) for index in range(1, count + 1)])


def test_empty_log_knows_the_beginning() -> None:
    log = Log([])
    assert (log.last_index, log.last_term, log.last_time_ms, log.first_index) == (0, 0, 0, 1)
    assert log.term_at(0) == 0
    assert log.term_at(1) is None


def test_gaps_and_falling_terms_are_refused() -> None:
    log = Log([entry(1, 2)])
    for bad in (entry(1, 2), entry(3, 2), entry(2, 1)):
        with pytest.raises(AssertionError):
            log.append(bad)


def test_slice_keeps_both_bounds_and_gives_at_least_one() -> None:
    log = Log([entry(index, payload=b"x" * 100) for index in range(1, 11)])
    assert [x.index for x in log.slice(3, 2, 10_000)] == [3, 4]
    assert [x.index for x in log.slice(3, 100, 250)] == [3, 4]
    assert [x.index for x in log.slice(3, 100, 1)] == [3]
    assert log.slice(11, 5, 100) == []


def test_compacted_entries_cannot_be_sent_and_their_end_is_known() -> None:
    log = filled(5)
    log.compact(3)
    log.compact(2)
    assert (log.base_index, log.first_index, log.last_index, len(log)) == (3, 4, 5, 2)
    assert (log.term_at(3), log.term_at(2)) == (1, None)
    with pytest.raises(AssertionError):
        log.slice(3, 1, 100)


@given(st.lists(st.tuples(st.sampled_from(["append", "truncate", "compact"]), st.integers(0, 3)), max_size=40))
def test_log_behaves_like_a_list_above_its_base(steps: list[tuple[str, int]]) -> None:
    log, model, base, term = Log([]), list[Entry](), 0, 1
    for action, number in steps:
        if action == "append":
            term += number == 3
            made = entry(len(model) + 1, term)
            log.append(made)
            model.append(made)
        elif action == "truncate" and len(model) - number > base:
            index = len(model) - number
            log.truncate(index)
            del model[index - 1 :]
        elif action == "compact" and base + number <= len(model):
            base += number
            log.compact(base)
        last = model[-1] if model else Entry(0, 0, 0, b"")
        assert (log.last_index, log.last_term, log.last_time_ms) == (last.index, last.term, last.time_ms)
        assert log.base_index == base
        assert [log.entry(index) for index in range(base + 1, len(model) + 1)] == model[base:]
        assert [log.term_at(x.index) for x in model[base:]] == [x.term for x in model[base:]]
        assert log.base_term == (model[base - 1].term if base else 0)
        assert log.term_at(len(model) + 1) is None


# --- what is kept, and how much it is ----------------------------------------------


def sized(*sizes: int) -> Log:
    return Log([entry(index, payload=b"x" * size) for index, size in enumerate(sizes, 1)])


def test_floor_leaves_about_so_many_bytes() -> None:
    log = sized(1_000, 1_000, 1_000, 1_000)
    each = 1_000 + ENTRY_BYTES
    assert log.floor_of(0) == 4
    assert log.floor_of(1) == 3
    assert log.floor_of(each) == 3
    assert log.floor_of(each + 1) == 2
    assert log.floor_of(4 * each) == 0
    assert log.floor_of(10**9) == 0
    log.compact(2)
    assert log.floor_of(10**9) == 2
    assert log.floor_of(each) == 3


def test_empty_log_has_its_base_as_floor() -> None:
    log = Log([], Base(7, 2, 0))
    assert (log.floor_of(0), log.floor_of(100), log.size_bytes) == (7, 7, 0)


def test_base_knows_term_time_and_voters_at_any_place() -> None:
    log = Log([Entry(8, 3, 80, b""), Entry(9, 4, 90, b"")], Base(7, 2, 70))
    voters = (Voter("a"),)
    assert log.base_at(7, voters) == Base(7, 2, 70, voters)
    assert log.base_at(8, None) == Base(8, 3, 80, None)
    log.compact(9)
    assert log.base_at(9, voters) == Base(9, 4, 90, voters)


@given(st.lists(st.tuples(st.sampled_from(["append", "truncate", "compact"]), st.integers(0, 300)), max_size=40))
def test_size_is_that_of_what_is_there(steps: list[tuple[str, int]]) -> None:
    log = Log([])
    for action, number in steps:
        if action == "append":
            log.append(entry(log.last_index + 1, payload=b"x" * number))
        elif action == "truncate" and len(log):
            log.truncate(log.last_index - number % len(log))
        elif action == "compact":
            log.compact(log.base_index + number % (len(log) + 1))
        kept = [log.entry(index) for index in range(log.first_index, log.last_index + 1)]
        assert log.size_bytes == sum(len(each.payload) + ENTRY_BYTES for each in kept)
        floor = log.floor_of(number)
        left = sum(len(each.payload) + ENTRY_BYTES for each in kept if each.index > floor)
        assert left >= number or floor == log.base_index


def test_conflict_hint_skips_the_term_that_conflicts_and_stops_at_what_is_committed() -> None:
    log = Log([Entry(index, term, 1_000, b"") for index, term in enumerate((1, 1, 2, 2, 2), 1)])
    assert log.conflict_hint(5, commit_index=0) == 2
    assert log.conflict_hint(5, commit_index=4) == 4
    assert log.conflict_hint(9, commit_index=0) == 5, "a gap: its own end"
