"""The times of delayed messages against a dictionary, and what they take of memory."""

from collections import OrderedDict
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.ordering.delays import (
    CHUNK_MAX,
    COUNTED_MAX,
    LATER_MAX,
    NEAR_AT_ONCE,
    NEVER,
    Delays,
    enter,
    sorted_again,
)
from elasticq.engine.stored.delivery_rows import Row
from tests.engine.ordering.shelf import lines_run

BASE = 5 << 40
ALL = 1 << 40
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "add", "insert", "remove", "again", "pass", "restart"]),
        st.integers(0, 1 << 20),
        st.integers(-3, 60),
    ),
    max_size=80,
)


class Naive:
    """Each message with its time, and whether it was seen to be due."""

    def __init__(self) -> None:
        self.due_ms: dict[int, int] = {}
        self.over: set[int] = set()

    def take_due(self, now_ms: int, limit: int) -> list[tuple[int, int]]:
        due = sorted((time, each) for each, time in self.due_ms.items() if time <= now_ms and each not in self.over)
        due = due[:limit]
        self.over.update(each for _, each in due)
        return due


@given(steps=STEPS, per_chunk=st.sampled_from([1, 3, 40]))
@settings(max_examples=100)
def test_delays_say_what_a_dictionary_says(steps: list[tuple[str, int, int]], per_chunk: int) -> None:
    """``per_chunk``: so many messages are added by a step, so that some chunks get full and are cut."""
    delays, naive, now_ms, newest = Delays(), Naive(), 100, BASE
    for step, number, time_ms in steps:
        known = sorted(naive.due_ms)
        one = known[number % len(known)] if known else 0
        if step == "add":
            for _ in range(per_chunk):
                newest += 1 + number % 3
                _add(delays, naive, newest, now_ms + time_ms * (1 + newest % 5))
        elif step == "insert":
            if one and one - 1 not in naive.due_ms:
                _add(delays, naive, one - 1, now_ms + time_ms)
        elif step == "remove" and one:
            _remove(delays, naive, one)
        elif step == "again" and one:
            _remove(delays, naive, one)
            _add(delays, naive, one, now_ms + time_ms)
        elif step == "pass":
            now_ms += abs(time_ms)
            limit = 1 + number % 50
            assert delays.take_due(now_ms, limit) == naive.take_due(now_ms, limit)
        elif step == "restart":
            delays, naive.over = restored(delays), set()
        _check(delays, naive)


def _add(delays: Delays, naive: Naive, sequence: int, due_ms: int) -> None:
    delays.add(sequence, due_ms)
    naive.due_ms[sequence] = due_ms


def _remove(delays: Delays, naive: Naive, sequence: int) -> None:
    assert delays.remove(sequence) == (sequence not in naive.over)
    del naive.due_ms[sequence]
    naive.over.discard(sequence)


def _check(delays: Delays, naive: Naive) -> None:
    assert list(delays.items()) == sorted(naive.due_ms.items())
    assert delays.count == len(naive.due_ms)
    assert delays.waiting == len(naive.due_ms.keys() - naive.over)
    waiting = [time for each, time in naive.due_ms.items() if each not in naive.over]
    assert delays.next_ms <= min(waiting, default=NEVER), "never too late"
    for sequence in list(naive.due_ms)[:10]:
        assert delays.due_ms(sequence) == naive.due_ms[sequence]
        assert delays.is_over(sequence) == (sequence in naive.over)
        assert delays.waits(sequence) == (sequence not in naive.over)
    assert not delays.due_ms(BASE - 100)
    assert not delays.waits(1 << 62)
    assert not delays.is_over(1 << 62)


def restored(delays: Delays) -> Delays:
    """Others, as a start makes them: by pages."""
    after, items = Delays(), list(delays.items())
    for at in range(0, len(items), 7):
        sequences, times = zip(*items[at : at + 7], strict=True)
        after.add_all(list(sequences), list(times))
    return after


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_each_comes_at_its_time_however_many_chunks_there_are(is_shuffled: bool) -> None:
    count, random = 5 * CHUNK_MAX + 7, Random(7)
    times = [1_000 + 3 * number for number in range(count)]
    if is_shuffled:
        random.shuffle(times)
    delays = Delays()
    for number, time_ms in enumerate(times):
        delays.add(BASE + number, time_ms)
    taken = []
    for now_ms in range(1_000, 1_000 + 3 * count, 331):
        before = len(taken)
        taken += delays.take_due(now_ms, ALL)
        assert all(now_ms - 331 < time_ms <= now_ms for time_ms, _ in taken[before:])
        assert delays.next_ms > now_ms
    taken += delays.take_due(1 << 40, ALL)
    assert taken == sorted((time_ms, BASE + number) for number, time_ms in enumerate(times))
    assert delays.next_ms == NEVER


def test_of_many_that_come_at_once_the_first_come_first() -> None:
    count = 9 * CHUNK_MAX
    delays = Delays()
    delays.add_all([BASE + number for number in range(count)], [1_000] * count)
    for begin in range(0, count, 500):
        assert delays.next_ms == 1_000
        found = delays.take_due(1_000, 500)
        assert found == [(1_000, BASE + number) for number in range(begin, min(begin + 500, count))]
    assert (delays.waiting, delays.next_ms) == (0, NEVER)


def test_chunk_that_gets_too_full_is_cut() -> None:
    delays, naive, random = Delays(), Naive(), Random(5)
    for number in range(CHUNK_MAX):
        _add(delays, naive, BASE + 4 * number, 1_000 + random.randrange(500))
    assert delays.take_due(1_100, ALL) == naive.take_due(1_100, ALL)
    others = [BASE + 4 * number + 1 + number % 3 for number in range(CHUNK_MAX)] + [BASE - 1, BASE - 3]
    random.shuffle(others)
    for sequence in others:
        _add(delays, naive, sequence, 1_000 + random.randrange(500))
    _check(delays, naive)
    for now_ms in range(1_100, 1_600, 50):
        assert delays.take_due(now_ms, ALL) == naive.take_due(now_ms, ALL)
        _check(delays, naive)


def test_message_takes_less_than_twenty_four_bytes() -> None:
    random, count = Random(3), 60_000
    delays = Delays()
    for number in range(count):
        delays.add(BASE + number, 1_000 + random.randrange(31_536_000_000))
    assert delays.size_bytes() / count < 18
    for now_ms in range(0, 500_000_000, 10_000_000):  # each chunk was looked at
        delays.take_due(now_ms, ALL)
    assert delays.size_bytes() / delays.count < 24 + 128 * NEAR_AT_ONCE / CHUNK_MAX
    assert restored(delays).size_bytes() / count < 18


def test_times_that_are_changed_over_and_over_cost_no_memory() -> None:
    delays = Delays()
    for number in range(100):
        delays.add(BASE + number, 1_000 + number)
    delays.take_due(1_010, ALL)
    few_bytes = delays.size_bytes()
    for round_ms in range(10_000):
        delays.remove(BASE + 50)
        delays.add(BASE + 50, 1_050 if round_ms % 2 else 1_011 + round_ms)
    assert delays.size_bytes() < few_bytes + 64_000
    assert delays.take_due(1 << 40, ALL)[-1] == (1_099, BASE + 99)


def test_one_removed_twice_is_a_broken_invariant() -> None:
    delays = Delays()
    delays.add(BASE, 5)
    delays.add(BASE + 2, 5)
    delays.remove(BASE + 2)
    with pytest.raises(AssertionError, match="once"):
        delays.remove(BASE + 2)
    with pytest.raises(AssertionError, match="once"):
        delays.add(BASE, 6)


def test_messages_available_at_the_same_time_are_ordered_by_deadline_receives_and_sequence() -> None:
    rows = {5: Row(9, 1), 7: Row(20, 1), 6: Row(20, 1), 4: Row(10, 1), 8: Row(19, 1), 9: Row(20, 1, 2)}
    due_ms = {5: 10, 7: 20, 6: 20, 4: 10, 8: 20, 9: 20}
    known = OrderedDict[int, int]()
    assert all(enter(known, sequence, due_ms[sequence], rows) for sequence in (5, 9, 7, 8, 6, 4))
    assert list(known) == [5, 4, 8, 6, 7, 9]
    assert list(sorted_again(OrderedDict(due_ms), rows)) == list(known)


def test_messages_that_were_never_received_are_ordered_by_sequence() -> None:
    known = OrderedDict[int, int]()
    assert all(enter(known, sequence, 20, {}) for sequence in (7, 8, 6))
    assert list(known) == [6, 7, 8]


def test_message_far_from_its_place_is_added_at_the_end_until_all_are_sorted() -> None:
    known = OrderedDict((sequence, 20) for sequence in range(1, LATER_MAX + 2))
    assert not enter(known, 0, 20, {})
    assert next(reversed(known)) == 0
    assert next(iter(sorted_again(known, {}))) == 0


@pytest.mark.pure
def test_count_of_due_messages_visits_a_bounded_number() -> None:
    delays = Delays()
    count = 3 * COUNTED_MAX
    delays.add_all(list(range(1, count + 1)), [10_000 if at % 2 else 90_000 for at in range(count)])
    delays.take_due(10_000, 1)
    assert delays.passed(9_999) == 0
    assert COUNTED_MAX // 2 - 1 <= delays.passed(10_000) <= COUNTED_MAX // 2 + CHUNK_MAX
    few, many = (lines_run(delays.passed, now_ms) for now_ms in (9_999, 10_000))
    assert few < many < 2 * COUNTED_MAX + 1_000
