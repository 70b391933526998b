"""Which of Spark's filters the server applies, and which are left to Spark."""

from datetime import UTC, datetime, timedelta

from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, LessThan, StringContains

from elasticq.spark.filters import Narrowed, narrowed

TIME = datetime(2026, 1, 31, 12, 0, 0, 500, UTC)
TIME_MS = 1_769_860_800_000


def test_filters_that_the_server_knows_are_its_own() -> None:
    known, left = narrowed([EqualTo(("messageGroupId",), "g"), In(("queue",), ("a", "b")), EqualTo(("queue",), "b")])
    assert known == Narrowed(frozenset(["b"]), "g")
    assert left == []


def test_bounds_of_time_are_applied_by_both() -> None:
    filters = [GreaterThanOrEqual(("sentTimestamp",), TIME), LessThan(("sentTimestamp",), TIME + timedelta(seconds=1))]
    known, left = narrowed(filters)
    assert known.members() == {"SentFromMs": TIME_MS, "SentUntilMs": TIME_MS + 1001}
    assert left == filters


def test_other_filters_are_left_to_spark() -> None:
    filters = [StringContains(("body",), "x"), EqualTo(("messageGroupId",), "a"), EqualTo(("messageGroupId",), "b")]
    known, left = narrowed(filters)
    assert known.group == "a"
    assert left == [filters[0], filters[2]]
