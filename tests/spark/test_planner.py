"""The planner of a stream's batches, next to a real server."""

from collections.abc import Callable

import pytest

from elasticq.spark.environment import Environment
from elasticq.spark.options import Read, parse_queue
from elasticq.spark.schema import default_schema
from elasticq.spark.source import StreamReader
from tests.spark.servers import Server


@pytest.mark.parametrize(("options", "least_s", "most_s"), [({}, 0.01, 0.2), ({"pollInterval": "5"}, 4, 5)])
def test_an_idle_queue_is_asked_at_intervals(
    elasticq_server: Server, make_queue: Callable[..., str], options: dict[str, str], least_s: float, most_s: float
) -> None:
    url = make_queue(elasticq_server)
    slept_s: list[float] = []
    environment = Environment(now_s=lambda: 1_000.0 + sum(slept_s), sleep=slept_s.append)
    reader = StreamReader(parse_queue(Read, {"path": url, **options}), default_schema("string", False), environment)
    start = reader.initialOffset()
    for _ in range(3):
        assert reader.latestOffset(start, reader.getDefaultReadLimit()) == start
    reader.stop()
    assert len(slept_s) == 2
    assert all(least_s <= round(each, 6) <= most_s for each in slept_s)


def test_the_report_counts_the_dead_letters(elasticq_server: Server, make_queue: Callable[..., str]) -> None:
    url, bad = make_queue(elasticq_server), make_queue(elasticq_server)
    elasticq_server.fill(bad, ["a", "b"])
    given = {"path": url, "onParseError": "deadletter", "deadLetterQueue": bad.rpartition("/")[2]}
    reader = StreamReader(parse_queue(Read, given), default_schema("string", False))
    reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    report = reader.reportLatestOffset()
    assert report is not None
    assert {name: report[name] for name in ("backlog", "inFlight", "deadLetters")} == {
        "backlog": 0, "inFlight": 0, "deadLetters": 2,
    }  # fmt: skip
    reader.stop()
