"""The effects of mutations on leases."""

from typing import Final

from elasticq.engine.ordering.leases import Key, Lease, key_of
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.tables import Drop, Put, RowChange
from elasticq.engine.writers.contract import Declare, Undo, Writer


def _lease_called(state: State, mutation: m.LeaseCalled, undo: Undo | None) -> None:
    key = key_of(mutation)
    lease = state.leases.get(key)
    if lease is None:
        lease = Lease(mutation.opened_ms, mutation.deadline_ms)
        if undo is not None:
            undo.append((state.leases.remove, key))
        state.leases.put(key, lease)
    elif lease.ended_ms or mutation.call in lease.calls:
        return
    if undo is not None:
        undo.append((_undo_call, lease, mutation.call, lease.state))
    lease.calls[mutation.call] = mutation
    lease.messages += len(mutation.sequences)
    if not mutation.sequences:
        lease.state = m.LEASE_SEALED


def _lease_called_rows(mutation: m.LeaseCalled) -> list[RowChange]:
    return [Put(m.LEASES, key_of(mutation), mutation, mutation.call)]


def _undo_call(lease: Lease, call: int, state: str) -> None:
    lease.messages -= len(lease.calls.pop(call).sequences)
    lease.state = state


def _lease_set(state: State, mutation: m.LeaseSet, undo: Undo | None) -> None:
    """Replace the lease by a new Lease object; a roll-back restores the old object.

    A living lease keeps its calls. A lease that has ended stays ended when the log is applied again.
    """
    key = key_of(mutation)
    old = state.leases.get(key)
    if old is not None and old.ended_ms and not mutation.ended_ms:
        return
    lease = Lease(mutation.opened_ms, mutation.deadline_ms)
    lease.state, lease.ended_ms, lease.messages = mutation.state, mutation.ended_ms, mutation.messages
    if old is not None and not mutation.ended_ms:
        lease.state, lease.messages, lease.calls = old.state, old.messages, old.calls
    if undo is not None:
        undo.append((_put_lease, state, key, old))
    state.leases.put(key, lease)


def _lease_set_rows(mutation: m.LeaseSet) -> list[RowChange]:
    """Return the changes to the rows: the lease's own row, and the removal of its calls if the lease ended."""
    key = key_of(mutation)
    itself = Put(m.LEASES, key, mutation, m.LEASE_ITSELF)
    return [Drop(m.LEASES, key), itself] if mutation.ended_ms else [itself]


def _lease_forgotten(state: State, mutation: m.LeaseForgotten, undo: Undo | None) -> None:
    key = key_of(mutation)
    old = state.leases.get(key)
    if old is not None:
        if undo is not None:
            undo.append((_put_lease, state, key, old))
        state.leases.remove(key)


def _lease_forgotten_rows(mutation: m.LeaseForgotten) -> list[RowChange]:
    return [Drop(m.LEASES, key_of(mutation))]


def _put_lease(state: State, key: Key, lease: Lease | None) -> None:
    if lease is None:
        state.leases.remove(key)
    else:
        state.leases.put(key, lease)


WRITERS: Final[dict[type, Writer]] = {
    m.LeaseCalled: _lease_called,
    m.LeaseSet: _lease_set,
    m.LeaseForgotten: _lease_forgotten,
}

ROWS: Final[dict[type, Declare]] = {
    m.LeaseCalled: _lease_called_rows,
    m.LeaseSet: _lease_set_rows,
    m.LeaseForgotten: _lease_forgotten_rows,
}
