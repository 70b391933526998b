"""When a message is delivered that says so itself: its attribute ElasticqDeliverAt, in ms of the epoch."""

from typing import Final

from elasticq.engine.stored.contents import whole_number
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model import limits
from elasticq.model.errors import InvalidParameterValue

DELIVER_AT: Final = "ElasticqDeliverAt"
"""An attribute of a message."""
SCHEDULE: Final = "ElasticqSchedule"
"""An attribute of a queue: messages may be sent for in ten years, and are kept from their delivery on."""


def is_scheduled_queue(attributes: dict[str, str]) -> bool:
    return attributes.get(SCHEDULE) == "true"


def ahead_ms_max(attributes: dict[str, str]) -> int:
    """Returns how far ahead messages of a queue with these attributes may be scheduled."""
    if is_scheduled_queue(attributes):
        return limits.SCHEDULE_MS_MAX
    return int(attributes.get("MessageRetentionPeriod", limits.RETENTION_S_DEFAULT)) * 1_000


def is_scheduled(stored: MessageStored) -> bool:
    return bool(stored.attributes) and DELIVER_AT in (stored.attributes or ())


def deliver_at_ms(stored: MessageStored, now_ms: int, ahead_max_ms: int) -> int:
    """Returns the time that the attributes of a message say; 0 where it is past. Raises InvalidParameterValue."""
    time_ms = whole_number((stored.attributes or {})[DELIVER_AT])
    if time_ms is None:
        raise _invalid("Must be of type Number and an integer, the milliseconds of the epoch")
    return checked_ms(time_ms, now_ms, ahead_max_ms)


def checked_ms(time_ms: int, now_ms: int, ahead_max_ms: int) -> int:
    """Returns ``time_ms``, 0 where it is past. Raises InvalidParameterValue where it is too far ahead."""
    if time_ms > now_ms + ahead_max_ms:
        raise _invalid(f"Must be at most {ahead_max_ms // 1_000} seconds ahead in this queue")
    return time_ms if time_ms > now_ms else 0


def _invalid(reason: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"The message attribute '{DELIVER_AT}' is invalid. Reason: {reason}.")
