"""Which mutations of another member's entry may enter the log: those that ``apply`` and the rows on disk can take.

The codec has judged each number and text by itself. What is committed must be applied, so what cannot be is refused
here, before it is in the log.
"""

from collections.abc import Callable
from typing import Any, Final

from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.comparisons import RowsCompared
from elasticq.engine.stored.invocations import KEY_BYTES

MAC_KEY_BYTES_MAX: Final = 64  # of the keyed hash
_TASKS: Final = (m.RUNNING, m.COMPLETED, m.CANCELLING, m.CANCELLED, m.FAILED)
_LEASES: Final = (m.LEASE_OPEN, m.LEASE_SEALED, m.LEASE_COMMITTED, m.LEASE_GIVEN_BACK, m.LEASE_EXPIRED)


class Unfit(Exception):
    """The entry cannot be applied; the text says why."""


def validate(mutations: list[m.Mutation], index: int, voters: int) -> None:
    """index: of the entry; voters: how many it names. Raises Unfit."""
    for mutation in mutations:
        kind = type(mutation)
        is_fit = _JUDGES.get(kind)
        if is_fit is not None and not is_fit(mutation):
            raise Unfit(f"{kind.__name__} does not fit together")
        if kind is m.ClusterFounded and index != 1:
            raise Unfit("a cluster is founded by the first entry only")
        if kind is m.ClusterRenamed and voters != 1:
            raise Unfit("a cluster is renamed where one member is made a cluster of its own")
        if kind is RowsCompared and len(mutations) > 1:
            raise Unfit("rows are compared between entries that change them")


def _columns(*columns: list[int]) -> bool:
    return len({len(column) for column in columns}) == 1


def _never(mutation: m.Mutation) -> bool:
    """Only from rows on disk, or in a dump."""
    return False


_JUDGES: Final[dict[type, Callable[[Any], bool]]] = {
    m.ClusterFounded: lambda x: bool(x.cluster_id) and 0 < len(x.mac_key) <= MAC_KEY_BYTES_MAX,
    m.MessagesReceived: lambda x: _columns(x.sequences, x.delivery_numbers, x.receive_counts, x.first_received_ms),
    m.VisibilityChanged: lambda x: _columns(x.sequences, x.until_ms),
    m.ReceiveReturned: lambda x: (
        len(x.invocation) in (0, KEY_BYTES)
        and _columns(x.sequences, x.delivery_numbers, x.receive_counts, x.first_received_ms)
    ),
    m.RangeRemoved: lambda x: x.first <= x.last,
    m.MoveTaskSet: lambda x: x.status in _TASKS,
    m.LeaseCalled: lambda x: _columns(x.sequences, x.delivery_numbers),
    m.LeaseSet: lambda x: x.state in _LEASES,
    m.PrioritiesSet: lambda x: _columns(x.sequences, x.priorities),
    m.SubscriptionSet: lambda x: x.is_pending or not x.is_left,
    m.PrioritiesRestored: _never,
    m.TurnsSet: lambda x: (
        len({len(x.paths), len(x.starts), len(x.weights), len(x.clocks)}) == 1 and all(each >= -1 for each in x.weights)
    ),
    m.QueueRestored: _never,
    m.UntouchedRestored: _never,
    m.RowsRestored: _never,
    m.DelaysRestored: _never,
    m.GroupsRestored: _never,
    m.GroupsServed: _never,
}
