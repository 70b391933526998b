"""What the charts of depth and rates are made of."""

from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.admin.history import (
    ALL,
    LINE_BYTES,
    LINES_MAX,
    PERIOD_S,
    TIERS,
    WINDOWS_S,
    History,
    Key,
    Series,
    _Line,
    added,
)
from elasticq.runtime.meter import Messages

KEY = ("000000000000", "q")


def known(_: Key) -> bool:
    return True


def counted(sent: int, received: int = 0, deleted: int = 0) -> Messages:
    messages = Messages()
    messages.sent, messages.received, messages.deleted = sent, received, deleted
    return messages


def test_a_point_has_the_depth_and_what_moved_since_the_one_before() -> None:
    history = History(0)
    history.update({KEY: (3, 1, 0)}, {KEY: counted(1_000)}, known)
    history.update({KEY: (5, 0, 2)}, {KEY: counted(1_000 + 2 * PERIOD_S, PERIOD_S, 4)}, known)
    series = history.series(KEY, 60)
    assert series == Series(
        now_s=2 * PERIOD_S,
        period_s=PERIOD_S,
        time_s=[0, PERIOD_S],
        visible=[3.0, 5.0],
        in_flight=[1.0, 0.0],
        delayed=[0.0, 2.0],
        sent=[0.0, 2.0],
        received=[0.0, 1.0],
        deleted=[0.0, 4 / PERIOD_S],
    )
    assert history.per_second(KEY, 600) == (1.0, 0.5, 2 / PERIOD_S)
    assert history.series(ALL, 60) == series


def test_a_coarse_point_keeps_the_highest_depth_and_the_mean_rate() -> None:
    history = History(0)
    samples = TIERS[1][0]
    for number in range(samples):
        history.update({KEY: (90 if number == 1 else 7, 0, 0)}, {KEY: counted(20 * number)}, known)
    series = history.series(KEY, 3_600)
    sent = 20 * (samples - 1)
    assert (series.visible, series.sent, series.time_s) == ([90.0], [sent / (samples * PERIOD_S)], [0])
    history.update({KEY: (1, 0, 0)}, {KEY: counted(sent + 10)}, known)
    series = history.series(KEY, 3_600)
    assert (series.visible, series.sent) == ([90.0, 1.0], [sent / (samples * PERIOD_S), 10 / PERIOD_S])
    assert series.time_s == [0, samples * PERIOD_S]
    assert (series.now_s, series.period_s) == ((samples + 1) * PERIOD_S, samples * PERIOD_S)


def test_windows_are_as_long_as_they_say_and_a_line_has_the_bytes_that_it_states() -> None:
    history = History(0)
    for number in range(86_400 // PERIOD_S + 200):
        history.update({KEY: (1, 0, 0)}, {KEY: counted(number)}, known)
    for window_s, tier in WINDOWS_S.items():
        series = history.series(KEY, window_s)
        assert len(series.visible) == window_s // (PERIOD_S * TIERS[tier][0]), window_s
        assert series.now_s - series.time_s[0] <= window_s
        assert {round(each, 3) for each in series.sent[:-1]} == {1 / PERIOD_S}
    assert sum(each.itemsize * len(each) for tier in _Line(0).tiers for each in tier) == LINE_BYTES == 18_432


def test_a_queue_has_a_line_from_its_first_message_until_it_is_deleted() -> None:
    history = History(0)
    history.update({}, {}, known)
    assert not history.has(KEY)
    assert history.series(KEY, 600).visible == []
    history.update({KEY: (1, 0, 0)}, {}, known)
    history.update({}, {}, known)
    assert history.series(KEY, 600).visible == [1.0, 0.0]
    assert history.series(ALL, 600).visible == [0.0, 1.0, 0.0]
    history.update({}, {}, lambda _: False)
    assert not history.has(KEY)
    history.update({KEY: (2, 0, 0)}, {KEY: counted(2)}, known)
    assert history.series(KEY, 600).visible == [2.0]


def test_a_queue_that_was_empty_at_each_look_has_rates() -> None:
    history = History(0)
    history.update({}, {}, known)
    history.update({}, {KEY: counted(PERIOD_S)}, known)
    assert history.series(KEY, 60).sent == [1.0]
    history.update({}, {("", "unknown"): counted(1)}, lambda _: False)
    assert not history.has(("", "unknown"))


def test_a_queue_that_is_created_again_counts_from_nothing() -> None:
    history = History(0)
    history.update({KEY: (1, 0, 0)}, {KEY: counted(50)}, known)
    history.update({KEY: (1, 0, 0)}, {KEY: counted(3)}, known)
    assert history.series(KEY, 60).sent == [0.0, 0.0]


def test_lines_are_bounded_and_the_one_that_did_not_change_for_longest_is_replaced() -> None:
    history = History(0)
    depths = {("000000000000", f"q{number}"): (1, 0, 0) for number in range(LINES_MAX)}
    for _ in range(3):
        history.update(depths, {}, known)
    depths["000000000000", "q0"] = (2, 0, 0)
    for _ in range(3):
        history.update(depths, {}, known)
    newest, still = ("000000000000", "newest"), ("000000000000", "still")
    depths |= {newest: (1, 0, 0), still: (1, 0, 0)}
    history.update(depths, {newest: counted(1)}, known)
    assert history.has(newest)
    assert not history.has(still)
    assert history.has(("000000000000", "q0"))
    assert sum(history.has(key) for key in depths) == LINES_MAX


Moves = dict[str, tuple[int, int]]


@settings(max_examples=50)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(0, 5), st.integers(0, 9))), max_size=70))
def test_all_queues_together_are_the_sum_of_the_queues(periods: list[Moves]) -> None:
    history, depths = History(0), dict[Key, tuple[int, int, int]]()
    counts = {("000000000000", name): counted(0) for name in "abc"}
    history.update({}, counts, known)
    for period in periods:
        for name, (sent, visible) in period.items():
            counts["000000000000", name].sent += sent
            depths["000000000000", name] = (visible, 0, 0)
        history.update({key: depth for key, depth in depths.items() if any(depth)}, counts, known)
    whole = history.series(ALL, 600)
    assert whole.visible[-1] == sum(depth[0] for depth in depths.values())
    assert round(sum(whole.sent) * PERIOD_S) == sum(sent for period in periods for sent, _ in period.values())
    parts = [history.series(key, 600).sent for key in counts]
    assert abs(sum(map(sum, parts)) - sum(whole.sent)) < 1e-3


def test_a_cluster_has_the_rates_of_all_its_members_and_the_depths_of_one() -> None:
    own = Series(30, 10, [20], [7.0], [0.0], [0.0], [1.0], [2.0], [3.0])
    older = Series(40, 10, [10, 20, 30], [5.0, 6.0, 8.0], [1.0] * 3, [0.0] * 3, [4.0] * 3, [0.0] * 3, [1.0] * 3)
    whole = added([own, older])
    assert (whole.now_s, whole.period_s, whole.time_s) == (30, 10, [10, 20, 30])
    assert (whole.visible, whole.in_flight) == ([5.0, 7.0, 8.0], [1.0, 0.0, 1.0])
    assert (whole.sent, whole.received, whole.deleted) == ([4.0, 5.0, 4.0], [0.0, 2.0, 0.0], [1.0, 4.0, 1.0])
    assert added([own]) == own


def test_rates_are_those_of_queues_that_moved_in_the_last_minute() -> None:
    history, other = History(1_000), ("000000000000", "still")
    history.update({other: (4, 0, 0)}, {KEY: counted(0)}, known)
    history.update({other: (4, 0, 0)}, {KEY: counted(30)}, known)
    assert history.rates() == {KEY: (30 / PERIOD_S, 0.0, 0.0)}
    for _ in range(60 // PERIOD_S):
        history.update({}, {KEY: counted(30)}, known)
    assert history.rates() == {}
