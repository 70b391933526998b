"""The history of calls: ids of clients are kept for five minutes, those that members made for a part of that."""

import pytest

from elasticq.engine.stored import invocations
from elasticq.engine.stored.call_history import MEMBER_GENERATION_MS, MEMBER_WINDOW_MS, History, member_guid
from elasticq.engine.stored.invocations import KEY_BYTES, NOTHING, SWEPT
from elasticq.engine.stored.recorded_call import Recorded
from elasticq.model.limits import INVOCATION_WINDOW_MS
from elasticq.node.waits.waiting_calls import HELD_MS_MAX
from tests.engine.desk import START_MS

INCARNATION = "0123456789abcdef"
CLIENT = b"client's digest!"
MEMBER = member_guid(1, INCARNATION)


def filled() -> History:
    history = History()
    for key in (CLIENT, MEMBER):
        assert history.put(key, Recorded(START_MS, 0, 0, b"detail"))
    return history


def test_members_ids_differ_by_counter_and_incarnation() -> None:
    made = {member_guid(counter, text) for counter in (1, 2, 256, 2**39) for text in (INCARNATION, INCARNATION[::-1])}
    assert len(made) == 8
    assert {len(guid) for guid in made} == {KEY_BYTES}


def test_a_members_id_outlives_every_copy_of_its_call_and_goes_long_before_a_clients() -> None:
    history = filled()
    assert MEMBER_WINDOW_MS > HELD_MS_MAX
    assert history.get(MEMBER, START_MS + MEMBER_WINDOW_MS - 1) is not None
    assert history.get(MEMBER, START_MS + MEMBER_WINDOW_MS) is None
    assert history.get(CLIENT, START_MS + INVOCATION_WINDOW_MS - 1) is not None
    assert [key for key, _ in history.rows(START_MS)] == sorted((CLIENT, MEMBER))
    assert [key for key, _ in history.rows(START_MS + MEMBER_WINDOW_MS)] == [CLIENT]


def test_memory_of_members_ids_is_given_back_by_the_sweeper() -> None:
    history = filled()
    over_ms = START_MS + MEMBER_WINDOW_MS + MEMBER_GENERATION_MS
    assert not history.is_any_over(START_MS + MEMBER_WINDOW_MS - 1)
    assert history.is_any_over(over_ms)
    history.forget(over_ms)
    assert (history.count, history.get(MEMBER, START_MS)) == (1, None)
    assert not history.is_any_over(over_ms)


def test_a_row_is_taken_back_wherever_it_stands() -> None:
    history = filled()
    for key in (CLIENT, MEMBER):
        assert history.remove(key) == Recorded(START_MS, 0, 0, b"detail")
        assert history.remove(key) is None
    assert (history.count, history.details_bytes) == (0, 0)


def test_the_sweepers_row_is_none_of_a_member() -> None:
    history = History()
    history.put(SWEPT, Recorded(START_MS, 0, 0, NOTHING))
    assert history.get(SWEPT, START_MS + MEMBER_WINDOW_MS) is not None


@pytest.mark.pure
def test_bounds_are_for_both_together(monkeypatch: pytest.MonkeyPatch) -> None:
    history = filled()
    assert not history.is_full(START_MS)
    assert not history.are_details_full(START_MS)
    monkeypatch.setattr(invocations, "INVOCATIONS_MAX", 2)
    monkeypatch.setattr(invocations, "INVOCATION_DETAILS_BYTES_MAX", history.details_bytes)
    assert history.is_full(START_MS)
    assert history.are_details_full(START_MS)
