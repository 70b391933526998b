"""JSON values as Spark's types: each value that fits, and the errors of those that do not."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types

from elasticq.spark.bodies import BadBody, decode, json_reader

NESTED = types.StructType().add("a", types.ArrayType(types.ShortType())).add("b", "string")


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (types.ByteType(), -128, -128),
        (types.LongType(), (1 << 63) - 1, (1 << 63) - 1),
        (types.DoubleType(), 3, 3.0),
        (types.BooleanType(), False, False),
        (types.StringType(), {"a": [1, None]}, '{"a":[1,null]}'),
        (types.TimestampType(), "2026-01-31T12:00:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (
            types.TimestampType(),
            "2026-01-31T12:00:00+02:00",
            datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2))),
        ),
        (types.DateType(), "2024-02-29", date(2024, 2, 29)),
        (types.BinaryType(), "AP8=", b"\0\xff"),
        (types.DecimalType(4, 2), 12.3, Decimal("12.30")),
        (types.MapType(types.StringType(), types.IntegerType()), {"a": 1, "b": None}, [("a", 1), ("b", None)]),
        (NESTED, {"a": [1, None], "c": 1}, {"a": [1, None], "b": None}),
        (NESTED, None, None),
    ],
)
def test_a_value_that_fits_is_read(kind: types.DataType, value: Any, read: Any) -> None:
    assert json_reader(kind)(value) == read


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (types.ByteType(), 128, "128 is no integer of 8 bits"),
        (types.LongType(), 1.0, "no integer of 64 bits"),
        (types.DoubleType(), True, "true is no number"),
        (types.DateType(), "2026-02-29", "is no date"),
        (types.DecimalType(4, 2), 100, "is no decimal(4,2)"),
        (types.DecimalType(4, 2), "NaN", "is no decimal(4,2)"),
        (types.ArrayType(types.StringType()), "x" * 100, "... is no array"),
        (NESTED, [], "[] is no object"),
    ],
)
def test_what_does_not_fit_is_never_a_silent_null(kind: types.DataType, value: Any, told: str) -> None:
    with pytest.raises(BadBody) as caught:
        json_reader(kind)(value)
    assert told in str(caught.value)


def test_a_type_without_json_and_a_text_without_json_are_told() -> None:
    with pytest.raises(BadBody, match="interval"):
        json_reader(types.DayTimeIntervalType())
    for text in ("", "{", "[" * 100_000):
        with pytest.raises(BadBody, match="no JSON"):
            decode(text)
    assert decode('{"a": 1}') == {"a": 1}
