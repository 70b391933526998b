"""The validation of mutations in entries of other members.

A committed entry must be applied. So an entry that ``apply`` or the rows on disk could not handle is refused here,
before it enters the log. The codec has already validated each number and text by itself.
"""

from collections.abc import Callable
from typing import Any, Final

from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.comparisons import RowsCompared
from elasticq.engine.stored.invocations import KEY_BYTES

MAC_KEY_BYTES_MAX: Final = 64  # of the keyed hash
_TASK_STATES: Final = (m.RUNNING, m.COMPLETED, m.CANCELLING, m.CANCELLED, m.FAILED)
_LEASE_STATES: Final = (m.LEASE_OPEN, m.LEASE_SEALED, m.LEASE_COMMITTED, m.LEASE_GIVEN_BACK, m.LEASE_EXPIRED)


class Unfit(Exception):
    """An entry cannot be applied; the text gives the reason."""


def validate(mutations: list[m.Mutation], index: int, voters: int) -> None:
    """Raise Unfit if one of the mutations cannot be applied.

    index: index of the entry; voters: the number of voters that the entry names.
    """
    for mutation in mutations:
        kind = type(mutation)
        is_fit = _CHECKS.get(kind)
        if is_fit is not None and not is_fit(mutation):
            raise Unfit(f"{kind.__name__} has fields that do not fit together")
        if kind is m.ClusterFounded and index != 1:
            raise Unfit("ClusterFounded is allowed in the first entry only")
        if kind is m.ClusterRenamed and voters != 1:
            raise Unfit("ClusterRenamed is allowed only in an entry with a single voter")
        if kind is RowsCompared and len(mutations) > 1:
            raise Unfit("RowsCompared is allowed only in an entry of its own")


def _are_equally_long(*columns: list[int]) -> bool:
    """Return whether all columns have the same length."""
    return len({len(column) for column in columns}) == 1


def _never(mutation: m.Mutation) -> bool:
    """Return False: such a mutation comes only from the member's own rows on disk, or from a dump."""
    return False


_CHECKS: Final[dict[type, Callable[[Any], bool]]] = {
    m.ClusterFounded: lambda x: bool(x.cluster_id) and 0 < len(x.mac_key) <= MAC_KEY_BYTES_MAX,
    m.MessagesReceived: lambda x: _are_equally_long(
        x.sequences, x.delivery_numbers, x.receive_counts, x.first_received_ms
    ),
    m.VisibilityChanged: lambda x: _are_equally_long(x.sequences, x.until_ms),
    m.ReceiveReturned: lambda x: (
        len(x.invocation) in (0, KEY_BYTES)
        and _are_equally_long(x.sequences, x.delivery_numbers, x.receive_counts, x.first_received_ms)
    ),
    m.RangeRemoved: lambda x: x.first <= x.last,
    m.MoveTaskSet: lambda x: x.status in _TASK_STATES,
    m.LeaseCalled: lambda x: _are_equally_long(x.sequences, x.delivery_numbers),
    m.LeaseSet: lambda x: x.state in _LEASE_STATES,
    m.PrioritiesSet: lambda x: _are_equally_long(x.sequences, x.priorities),
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
