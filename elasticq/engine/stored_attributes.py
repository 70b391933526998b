"""Stored attributes of queues that cannot be read, found by the readers that the engine applies to them.

What a call may store is checked where it is called (queue_attributes.py). A stored value that cannot be read is
damage: it counts as absent, is kept as it is, and is reported. It never keeps a member from starting.
"""

from collections.abc import Callable
from typing import Final

from elasticq.engine.ordering.priority import DEFAULT_PRIORITY
from elasticq.engine.ordering.sharing import IN_FLIGHT_MAX, WEIGHTS, read_weights
from elasticq.engine.ordering.standard import IDEMPOTENCY_WINDOW
from elasticq.engine.stored.redrive_policies import POLICY, read_policy
from elasticq.model.errors import SqsError
from elasticq.model.names import DEFAULT_ACCOUNT

READERS: Final[dict[str, Callable[[str], object]]] = {
    **dict.fromkeys(
        (
            "DelaySeconds",
            "MaximumMessageSize",
            "MessageRetentionPeriod",
            "ReceiveMessageWaitTimeSeconds",
            "VisibilityTimeout",
            DEFAULT_PRIORITY,
            IDEMPOTENCY_WINDOW,
            IN_FLIGHT_MAX,
        ),
        int,
    ),
    WEIGHTS: read_weights,
    POLICY: lambda value: read_policy(value, DEFAULT_ACCOUNT),
}
"""How the engine reads each attribute that is more than a text. A reader raises ValueError or SqsError."""


def unreadable(attributes: dict[str, str]) -> frozenset[str]:
    """Return the names of the attributes that cannot be read."""
    return frozenset(name for name, value in attributes.items() if not _is_readable(name, value))


def _is_readable(name: str, value: str) -> bool:
    reader = READERS.get(name)
    if reader is None:
        return True
    try:
        reader(value)
    except (ValueError, SqsError):
        return False
    return True
