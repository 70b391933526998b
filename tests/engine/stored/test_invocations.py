"""The history of calls: its rows against a dict, its window, its bound."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.stored import invocations
from elasticq.engine.stored.invocations import GENERATION_MS, NOTHING, Invocations
from elasticq.engine.stored.recorded_call import Recorded
from elasticq.model.limits import INVOCATION_WINDOW_MS
from tests.engine.desk import START_MS

# One bucket, and two third bytes: a row is told from others by the rest of its key.
DETAILS = [b"", b"detail", NOTHING]
KEYS = [bytes(text, "ascii") for text in ("a" * 16, "aab" + "a" * 13, "aabb" + "a" * 12, "a" * 15 + "b")]


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "remove", "wait"]), st.integers(0, 3), st.integers(0, 250_000)), max_size=40
    )
)
def test_history_behaves_like_a_dict_with_a_window(steps: list[tuple[str, int, int]]) -> None:
    history, model, now_ms = Invocations(), dict[bytes, Recorded](), START_MS
    for action, at, wait_ms in steps:
        key = KEYS[at]
        live = {k: row for k, row in model.items() if row.recorded_ms + INVOCATION_WINDOW_MS > now_ms}
        if action == "put" and key not in live:
            row = Recorded(now_ms, at, wait_ms, DETAILS[wait_ms % 3] if at else NOTHING)
            assert history.put(key, row)
            assert not history.put(key, row)
            model[key] = row
        elif action == "remove":
            history.remove(key)
            model.pop(key, None)
        else:
            now_ms += wait_ms
        live = {k: row for k, row in model.items() if row.recorded_ms + INVOCATION_WINDOW_MS > now_ms}
        assert history.rows(now_ms) == sorted(live.items())
        assert {k: history.get(k, now_ms) for k in KEYS} == {k: live.get(k) for k in KEYS}
        kept = [
            row.detail for row in live.values() if row.detail not in (b"", NOTHING) or (row.queue_id and row.detail)
        ]
        assert history.details_bytes >= sum(map(len, kept))
    history.forget(now_ms + INVOCATION_WINDOW_MS + 2 * GENERATION_MS)
    assert (history.rows(0), history.count, history.details_bytes) == ([], 0, 0)


def test_old_generations_are_dropped_whole() -> None:
    history = Invocations()
    for at in range(100):
        history.put(at.to_bytes(16, "big"), Recorded(START_MS + at, 0, 0, b""))
    later_ms = START_MS + INVOCATION_WINDOW_MS + 2 * GENERATION_MS
    history.put(b"z" * 16, Recorded(later_ms, 0, 0, b""))
    assert history.count == 1
    assert len(history.rows(0)) == 1


def test_a_replayed_old_row_is_counted_once_and_goes_again() -> None:
    """Replaying a log puts rows that were dropped already: the history must not keep them for ever."""
    history = Invocations()
    later_ms = START_MS + INVOCATION_WINDOW_MS + 2 * GENERATION_MS
    history.put(b"z" * 16, Recorded(later_ms, 0, 0, b""))
    history.put(b"a" * 16, Recorded(START_MS, 0, 0, b""))
    history.put(b"y" * 16, Recorded(later_ms + 1, 0, 0, b""))
    assert [key for key, _ in history.rows(0)] == [b"y" * 16, b"z" * 16]
    assert history.count == 2


def test_what_is_over_is_forgotten_though_nobody_calls_and_nothing_before() -> None:
    history = Invocations()
    history.put(b"a" * 16, Recorded(START_MS, 1, 1, b"told"))
    assert not history.is_any_over(START_MS + INVOCATION_WINDOW_MS)
    history.forget(START_MS + INVOCATION_WINDOW_MS)
    assert history.get(b"a" * 16, START_MS) is not None
    assert history.is_any_over(START_MS + INVOCATION_WINDOW_MS + 2 * GENERATION_MS)
    history.forget(START_MS + INVOCATION_WINDOW_MS + 2 * GENERATION_MS)
    assert (history.get(b"a" * 16, START_MS), history.count, history.details_bytes) == (None, 0, 0)


def test_deletes_leave_no_detail_each() -> None:
    history = Invocations()
    for number in range(100):
        history.put(number.to_bytes(16, "big"), Recorded(START_MS, 0, 0, NOTHING))
    assert history.details_bytes == 0
    assert history.get(bytes(16), START_MS) == Recorded(START_MS, 0, 0, NOTHING)


@pytest.mark.pure
def test_bound_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocations, "INVOCATIONS_MAX", 2)
    history = Invocations()
    for key in (b"a" * 16, b"b" * 16):
        assert not history.is_full(START_MS)
        history.put(key, Recorded(START_MS, 0, 0, b""))
    assert history.is_full(START_MS)
