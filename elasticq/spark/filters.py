"""The choice of Spark's filters that the server applies: queue, messageGroupId, and bounds of sentTimestamp."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)


@dataclass(frozen=True)
class Narrowed:
    """The filters that the server applies: queues, message group, and sent in [from_ms, until_ms). None: no filter."""

    queues: frozenset[str] | None = None
    group: str | None = None
    from_ms: int | None = None
    until_ms: int | None = None

    def members(self) -> dict[str, Any]:
        """Return the members of a peek for the group and the times. The reader itself chooses the queues."""
        found = {"MessageGroupId": self.group, "SentFromMs": self.from_ms, "SentUntilMs": self.until_ms}
        return {name: value for name, value in found.items() if value is not None}


def narrowed(filters: Iterable[Filter]) -> tuple[Narrowed, list[Filter]]:
    """Return the filters for the server, and the filters that Spark still has to apply.

    A bound on sentTimestamp is in both, because the server compares milliseconds and Spark microseconds.
    """
    known = Narrowed()
    left: list[Filter] = []
    for each in filters:
        taken = _taken(known, each)
        if taken is None:
            left.append(each)
            continue
        known, is_exact = taken
        if not is_exact:
            left.append(each)
    return known, left


def _taken(known: Narrowed, each: Filter) -> tuple[Narrowed, bool] | None:
    match each:
        case EqualTo(("queue",), str(name)):
            return _of_queues(known, frozenset([name])), True
        case In(("queue",), names):
            return _of_queues(known, frozenset(names)), True
        case EqualTo(("messageGroupId",), str(group)) if known.group in (None, group):
            return replace(known, group=group), True
        case GreaterThan(("sentTimestamp",), datetime() as moment) | GreaterThanOrEqual(
            ("sentTimestamp",), datetime() as moment
        ):
            from_ms = _milliseconds(moment)
            return replace(known, from_ms=max(from_ms, known.from_ms or 0)), False
        case LessThan(("sentTimestamp",), datetime() as moment) | LessThanOrEqual(
            ("sentTimestamp",), datetime() as moment
        ):
            until_ms = _milliseconds(moment) + 1
            return replace(known, until_ms=until_ms if known.until_ms is None else min(until_ms, known.until_ms)), False
        case EqualTo(("sentTimestamp",), datetime() as moment):
            at_ms = _milliseconds(moment)
            return replace(known, from_ms=at_ms, until_ms=at_ms + 1), False
        case IsNotNull(("queue",)) | IsNotNull(("sentTimestamp",)) | IsNotNull(("messageId",)):
            return known, True  # these columns are never null
    return None


def _of_queues(known: Narrowed, names: frozenset[str]) -> Narrowed:
    return replace(known, queues=names if known.queues is None else known.queues & names)


def _milliseconds(moment: datetime) -> int:
    """Return the milliseconds since the epoch, rounded down. A time without a zone is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000
