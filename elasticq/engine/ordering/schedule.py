"""Scheduled delivery: the message attribute ElasticqDeliverAt is the time of delivery, in ms since the epoch."""

from typing import Final

from elasticq.engine.stored.contents import whole_number
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model import limits
from elasticq.model.errors import InvalidParameterValue

DELIVER_AT: Final = "ElasticqDeliverAt"
"""An attribute of a message."""
SCHEDULE: Final = "ElasticqSchedule"
"""An attribute of a queue: messages may be scheduled up to ten years ahead; retention starts with their delivery."""


def is_scheduled_queue(attributes: dict[str, str]) -> bool:
    return attributes.get(SCHEDULE) == "true"


def ahead_ms_max(attributes: dict[str, str]) -> int:
    """Return how far ahead messages of a queue with these attributes may be scheduled, in milliseconds."""
    if is_scheduled_queue(attributes):
        return limits.SCHEDULE_MS_MAX
    return int(attributes.get("MessageRetentionPeriod", limits.RETENTION_S_DEFAULT)) * 1_000


def is_scheduled(stored: MessageStored) -> bool:
    return bool(stored.attributes) and DELIVER_AT in (stored.attributes or ())


def deliver_at_ms(stored: MessageStored, now_ms: int, ahead_max_ms: int) -> int:
    """Return the time in the attributes of a scheduled message; 0 if it is past.

    Raise InvalidParameterValue if it is not a whole number or more than ``ahead_max_ms`` ahead.
    """
    time_ms = whole_number((stored.attributes or {})[DELIVER_AT])
    if time_ms is None:
        raise _invalid("Must be of type Number and an integer, the milliseconds since the epoch")
    return checked_ms(time_ms, now_ms, ahead_max_ms)


def checked_ms(time_ms: int, now_ms: int, ahead_max_ms: int) -> int:
    """Return ``time_ms``, or 0 if it is past. Raise InvalidParameterValue if it is more than ``ahead_max_ms`` ahead."""
    if time_ms > now_ms + ahead_max_ms:
        raise _invalid(f"Must be at most {ahead_max_ms // 1_000} seconds ahead in this queue")
    return time_ms if time_ms > now_ms else 0


def _invalid(reason: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"The message attribute '{DELIVER_AT}' is invalid. Reason: {reason}.")
