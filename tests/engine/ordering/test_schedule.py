"""When a scheduled message comes: its attribute's values, and AWS-shaped errors for others."""

import pytest

from elasticq.engine.ordering.schedule import ahead_ms_max, checked_ms, deliver_at_ms, is_scheduled
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.errors import InvalidParameterValue
from elasticq.model.limits import SCHEDULE_MS_MAX


def stored(value: str, data_type: str = "Number") -> MessageStored:
    return MessageStored(
        7, 1, "x", 100, "me", attributes={"ElasticqDeliverAt": MessageAttributeValue(data_type, value)}
    )


@pytest.mark.parametrize(("value", "time_ms"), [("101", 101), ("+200", 200), ("1100", 1_100), ("100", 0), ("-5", 0)])
def test_time_is_in_milliseconds_and_past_ones_are_at_once(value: str, time_ms: int) -> None:
    assert deliver_at_ms(stored(value), 100, 1_000) == time_ms
    assert is_scheduled(stored(value))
    assert not is_scheduled(MessageStored(7, 1, "x", 100, "me"))


@pytest.mark.parametrize("wrong", [stored("1.5"), stored("soon"), stored(""), stored("1e3"), stored("200", "String")])
def test_what_is_no_integer_is_refused(wrong: MessageStored) -> None:
    with pytest.raises(InvalidParameterValue, match="Number and an integer"):
        deliver_at_ms(wrong, 100, 1_000)


def test_time_beyond_the_retention_is_refused() -> None:
    with pytest.raises(InvalidParameterValue, match="at most 1 seconds ahead"):
        checked_ms(1_101, 100, 1_000)
    assert ahead_ms_max({"MessageRetentionPeriod": "60"}) == 60_000
    assert ahead_ms_max({}) == 345_600_000
    assert ahead_ms_max({"MessageRetentionPeriod": "60", "ElasticqSchedule": "true"}) == SCHEDULE_MS_MAX
