"""The effects of mutations on the histories: the calls that had an effect, and the taken deduplication ids."""

from typing import Final

from elasticq.engine import idempotency_window
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.invocations import SWEPT
from elasticq.engine.writers.contract import Undo, Writer


def _invocation_recorded(state: State, mutation: m.InvocationRecorded, undo: Undo | None) -> None:
    key, invocations = mutation.invocation, state.invocations
    if key == SWEPT:
        invocations.forget(mutation.recorded_ms)
        state.sent_ids.forget(mutation.recorded_ms)
    is_new = invocations.put(key, mutation)
    if is_new and undo is not None:
        undo.append((invocations.remove, key))


def _sent_id_taken(state: State, mutation: m.SentIdTaken, undo: Undo | None) -> None:
    is_new, old = idempotency_window.put(state.sent_ids, mutation)
    if is_new and undo is not None:
        undo.append((idempotency_window.take_back, state.sent_ids, mutation.key, old))


def _attempt_recorded(state: State, mutation: m.AttemptRecorded, undo: Undo | None) -> None:
    known = state.invocations.get(mutation.attempt, mutation.recorded_ms)
    if known is not None and known.recorded_ms >= mutation.recorded_ms and known.detail == mutation.detail:
        return
    forget_invocation(state, mutation.attempt, undo)
    if mutation.detail:
        _invocation_recorded(state, as_invocation(mutation), undo)


def as_invocation(mutation: m.AttemptRecorded) -> m.InvocationRecorded:
    """Return the invocation that records a receive attempt."""
    return m.InvocationRecorded(mutation.attempt, mutation.recorded_ms, 0, 0, mutation.detail)


def forget_invocation(state: State, key: bytes, undo: Undo | None) -> None:
    """Remove the newest row of ``key`` from the invocations, if there is one."""
    row = state.invocations.remove(key)
    if row is not None and undo is not None:
        undo.append((state.invocations.put, key, row))


WRITERS: Final[dict[type, Writer]] = {
    m.InvocationRecorded: _invocation_recorded,
    m.SentIdTaken: _sent_id_taken,
    m.AttemptRecorded: _attempt_recorded,
}
