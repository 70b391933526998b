"""What the page's charts are made of."""

from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.admin.rates import ALL, LINES_MAX, PERIOD_S, SLOTS, Rates
from elasticq.runtime.meter import Messages


def counted(sent: int, received: int = 0, deleted: int = 0) -> Messages:
    messages = Messages()
    messages.sent, messages.received, messages.deleted = sent, received, deleted
    return messages


def test_a_rate_is_what_moved_since_the_first_look() -> None:
    rates, key = Rates(), ("000000000000", "q")
    rates.update({key: counted(1_000)})
    rates.update({key: counted(1_010, 6, 4)})
    assert rates.per_second(key, 60) == (10 / (2 * PERIOD_S), 6 / (2 * PERIOD_S), 4 / (2 * PERIOD_S))
    assert rates.series(key, 60)["sent"] == [0.0, 10 / PERIOD_S]
    assert rates.series(key, 60)["age_s"] == [float(PERIOD_S), 0.0]
    assert rates.per_second(ALL, 60) == rates.per_second(key, 60)


def test_a_queue_that_begins_later_counts_from_its_first_message() -> None:
    rates, key = Rates(), ("000000000000", "q")
    rates.update({})
    rates.update({key: counted(8)})
    assert rates.series(key, PERIOD_S)["sent"] == [8 / PERIOD_S]


def test_a_queue_that_is_made_anew_counts_from_nothing() -> None:
    rates, key = Rates(), ("000000000000", "q")
    rates.update({key: counted(50)})
    rates.update({key: counted(3)})
    assert rates.series(key, PERIOD_S)["sent"] == [0.0]
    rates.update({})
    assert rates.per_second(key, 60) == (0.0, 0.0, 0.0)


def test_windows_are_as_long_as_they_say() -> None:
    rates, key = Rates(), ("000000000000", "q")
    for period in range(1, 2 * SLOTS):
        rates.update({key: counted(period)})
    assert len(rates.series(key, 60)["sent"]) == 60 // PERIOD_S
    assert len(rates.series(key, 3_600)["sent"]) == SLOTS
    assert set(rates.series(key, 3_600)["sent"]) == {1 / PERIOD_S}


def test_the_stillest_queue_gives_its_place() -> None:
    rates = Rates()
    rates.update({})
    counts = {("000000000000", f"q{number}"): counted(1) for number in range(LINES_MAX)}
    rates.update(counts)
    counts["000000000000", "q0"].sent += 1
    rates.update(counts)
    counts["000000000000", "newest"] = counted(1)
    rates.update(counts)
    assert rates.per_second(("000000000000", "newest"), PERIOD_S)[0] == 1 / PERIOD_S
    assert sum(rates.series(("000000000000", "q0"), 60)["sent"]) == 2 / PERIOD_S
    shown = sum(any(rates.series(key, 60)["sent"]) for key in counts)
    assert shown == LINES_MAX


def test_a_queue_that_gets_a_place_again_is_not_counted_from_its_beginning() -> None:
    rates, counts = Rates(), {("000000000000", f"q{number}"): counted(1_000) for number in range(LINES_MAX + 9)}
    rates.update({})
    for _ in range(3):
        rates.update(counts)
    assert all(rates.per_second(key, PERIOD_S) == (0.0, 0.0, 0.0) for key in counts)
    last = "000000000000", f"q{LINES_MAX + 8}"
    counts[last].sent += 1
    rates.update(counts)
    assert rates.series(last, PERIOD_S)["sent"] == [1 / PERIOD_S]


@settings(max_examples=50)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 5), min_size=1), min_size=1, max_size=30))
def test_all_queues_together_are_the_sum_of_the_queues(moves: list[dict[str, int]]) -> None:
    rates, counts = Rates(), {("000000000000", name): counted(0) for name in "abc"}
    rates.update(counts)
    for move in moves:
        for name, more in move.items():
            counts["000000000000", name].sent += more
        rates.update(counts)
    total = sum(sum(rates.series(key, 3_600)["sent"]) for key in counts)
    assert abs(total - sum(rates.series(ALL, 3_600)["sent"])) < 1e-3
    assert round(total * PERIOD_S) == sum(sum(move.values()) for move in moves)
