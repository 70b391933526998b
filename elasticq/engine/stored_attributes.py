"""The search for stored attributes of queues that cannot be read.

Values in calls are checked before they are stored (actions/queue_attributes.py). So a stored value that cannot be read
is damaged. It counts as absent, stays stored, and is reported. It never keeps a member from starting.
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
"""The function that parses each attribute which is not plain text. It raises ValueError or SqsError for a bad value."""


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
