"""Leases as rows: the one row that is their own stands beside their calls, and outlives them."""

import pytest

from elasticq.engine.apply import apply, row_changes
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.tables import Drop, Put
from elasticq.engine.writers.contract import Undo, roll_back

KEY = (7, "q", 1, 0)
CALLED = m.LeaseCalled(*KEY, 4, 1, 9, [5], [6])


@pytest.mark.parametrize("ended_ms", [0, 8])
def test_end_of_a_lease_drops_its_calls_before_its_own_row_is_written(ended_ms: int) -> None:
    itself = m.LeaseSet(*KEY, 1, 9, m.LEASE_COMMITTED if ended_ms else m.LEASE_OPEN, ended_ms, 1)
    dropped = [Drop(m.LEASES, KEY)] if ended_ms else []
    assert row_changes(CALLED) == [Put(m.LEASES, KEY, CALLED, 4)]
    assert row_changes(itself) == [*dropped, Put(m.LEASES, KEY, itself, m.LEASE_ITSELF)]


def test_end_and_forgetting_are_taken_back() -> None:
    state, undo = State(), Undo()
    apply(state, CALLED)
    lease = state.leases.get(KEY)
    apply(state, m.LeaseSet(*KEY, 1, 9, m.LEASE_COMMITTED, 8, 1), undo)
    apply(state, m.LeaseForgotten(*KEY), undo)
    assert len(state.leases) == 0
    roll_back(undo)
    assert state.leases.get(KEY) is lease
    assert list(state.leases.living) == [KEY]
