"""The effects of mutations on the cluster's own state: its id and key, its master, and the clock that tests advance."""

from typing import Final

from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.comparisons import RowsCompared
from elasticq.engine.stored.identity import Identity
from elasticq.engine.stored.tables import AHEAD_MS, Change, Put, Raise, RowChange
from elasticq.engine.writers.contract import Declare, Undo, Writer

GRACE_SPANS_MAX: Final = 64  # the oldest spans are dropped; none matters after 12 h, the longest visibility timeout


def _cluster_founded(state: State, mutation: m.ClusterFounded, undo: Undo | None) -> None:
    if undo is not None:
        undo.append((_set_cluster, state, state.cluster_id, state.mac_key, state.feature_level))
    _set_cluster(state, mutation.cluster_id, mutation.mac_key, mutation.feature_level)


def _cluster_founded_rows(mutation: m.ClusterFounded) -> list[RowChange]:
    return [Put(m.META, m.CLUSTER, mutation)]


def _cluster_renamed(state: State, mutation: m.ClusterRenamed, undo: Undo | None) -> None:
    if undo is not None:
        undo.append((_set_cluster, state, state.cluster_id, state.mac_key, state.feature_level))
    _set_cluster(state, mutation.cluster_id, state.mac_key, state.feature_level)


def _cluster_renamed_rows(mutation: m.ClusterRenamed) -> list[RowChange]:
    return [Change(m.META, m.CLUSTER, {"cluster_id": mutation.cluster_id})]


def _set_cluster(state: State, cluster_id: str, mac_key: bytes, feature_level: int) -> None:
    state.cluster_id, state.mac_key, state.feature_level = cluster_id, mac_key, feature_level
    state.identity = Identity(mac_key)


def _took_over(state: State, mutation: m.TookOver, undo: Undo | None) -> None:
    span = (mutation.grace_from_ms, mutation.grace_until_ms)
    if mutation.term <= state.takeover_term:
        return
    if undo is not None:
        undo.append((_undo_takeover, state, state.takeover_term, list(state.grace.spans)))
    state.takeover_term = mutation.term
    if span[0] < span[1]:
        # Drop spans that ended over 12 h ago: no open deadline lies in them. Entry time decides, so members agree.
        state.grace.spans = [known for known in state.grace.spans if known[1] > span[0] - 43_200_000]
        state.grace.spans = [*state.grace.spans, span][-GRACE_SPANS_MAX:]
        for queue in (*state.queues.values(), *state.deleted_queues.values()):
            queue.order.recheck_returned(span[0])


def _took_over_rows(mutation: m.TookOver) -> list[RowChange]:
    return [Put(m.TAKEOVERS, mutation.term, mutation)]


def _undo_takeover(state: State, term: int, spans: list[tuple[int, int]]) -> None:
    state.takeover_term = term
    state.grace.spans = spans
    for queue in (*state.queues.values(), *state.deleted_queues.values()):
        queue.order.forget_grace()


def _clock_advanced(state: State, mutation: m.ClockAdvanced, undo: Undo | None) -> None:
    if mutation.ahead_ms > state.ahead_ms:
        if undo is not None:
            undo.append((setattr, state, "ahead_ms", state.ahead_ms))
        state.ahead_ms = mutation.ahead_ms


def _clock_advanced_rows(mutation: m.ClockAdvanced) -> list[RowChange]:
    return [Raise(AHEAD_MS, mutation.ahead_ms)]


def _rows_compared_rows(mutation: RowsCompared) -> list[RowChange]:
    """None: the journal has each member hash its rows."""
    return []


WRITERS: Final[dict[type, Writer]] = {
    m.ClusterFounded: _cluster_founded,
    m.ClusterRenamed: _cluster_renamed,
    m.TookOver: _took_over,
    m.ClockAdvanced: _clock_advanced,
}

ROWS: Final[dict[type, Declare]] = {
    m.ClusterFounded: _cluster_founded_rows,
    m.ClusterRenamed: _cluster_renamed_rows,
    m.TookOver: _took_over_rows,
    m.ClockAdvanced: _clock_advanced_rows,
    RowsCompared: _rows_compared_rows,
}
