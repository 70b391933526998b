"""The examples do what they say; the first runs as a user runs it, on a machine without Java."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.cloudpickle import register_pickle_by_value

from tests.spark.conftest import commands_without_java
from tests.spark.servers import ROOT, Server

pytestmark = pytest.mark.spark
EXAMPLES = ROOT / "examples" / "spark"
DEMO_S_MAX = 400
WINDOWS = [
    ("12:00:00", "/cart", 4, 6.0),  # 12:04 came late and counts
    ("12:00:00", "/home", 2, 3.0),
    ("12:05:00", "/cart", 2, 3.0),
    ("12:05:00", "/home", 3, 4.5),
    ("12:20:00", "/cart", 3, 4.5),
    ("12:20:00", "/home", 2, 3.0),
    ("12:25:00", "/home", 1, 1.5),
]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    def load(name: str) -> ModuleType:
        monkeypatch.syspath_prepend(str(EXAMPLES))
        module = __import__(name)
        register_pickle_by_value(module)  # as Spark does with the functions of a script
        return module

    return load


def test_the_demo_runs_without_java_and_counts_late_events_as_it_says(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {
        "PATH": commands_without_java(tmp_path / "commands"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": str(ROOT),
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    command = [sys.executable, str(EXAMPLES / "events_to_parquet.py"), "--output", str(tmp_path / "output")]
    ran = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=DEMO_S_MAX, check=False
    )
    assert ran.returncode == 0, ran.stdout[-2_000:] + ran.stderr[-5_000:]
    shown = [line.strip("|").split("|") for line in ran.stdout.splitlines() if line.startswith("|2026")]
    rows = [(start.split()[1], page.strip(), int(count), float(amount)) for start, page, count, amount in shown]
    assert rows == WINDOWS
    assert "run 3: 2 events, 1 too late" in ran.stdout
    assert list((tmp_path / "output" / "windows").glob("*.parquet"))


def test_triage_sends_back_what_it_mended_and_deletes_exactly_that(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str], example: Callable[[str], ModuleType]
) -> None:
    triage = example("dead_letter_triage")
    dead, source = make_queue(elasticq_server), make_queue(elasticq_server)
    commas = [json.dumps({"order": n, "amount": f"{n},5", "count": 2}) for n in range(7)]
    lacking = [json.dumps({"order": n, "amount": "1"}) for n in range(3)]
    hopeless = ["no json", json.dumps({"order": 1, "amount": "much"})]
    colour = {"colour": {"DataType": "String", "StringValue": "grün"}}
    elasticq_server.fill(dead, commas + lacking + hopeless, MessageAttributes=colour)

    letters = triage.read_letters(spark, dead)
    summary = {row.exception: (row.letters, row.repaired) for row in triage.summary(letters).collect()}
    assert summary["KeyError: 'count'"] == (3, 3)
    assert sum(letters for letters, _ in summary.values()) == 12
    assert triage.replay(letters, source, elasticq_server.endpoint) == 10

    sent = elasticq_server.drain(source)
    assert sorted(triage.handle(json.loads(message["Body"])) for message in sent) == sorted(
        [(n + 0.5) * 2 for n in range(7)] + [1.0] * 3
    )
    assert all(message["MessageAttributes"] == colour for message in sent)
    assert elasticq_server.counts(dead) == (0, 2)  # the hopeless are hidden, and come back


def test_a_backfill_keeps_groups_in_order_at_its_rate_and_may_run_again(
    spark: Any,
    elasticq_server: Server,
    make_queue: Callable[..., str],
    example: Callable[[str], ModuleType],
    tmp_path: Path,
) -> None:
    url = make_queue(elasticq_server, ".fifo")
    orders = spark.range(120).selectExpr("id % 5 as customer", "119 - id as at")
    orders.write.parquet(str(tmp_path / "orders"))
    rows = spark.read.parquet(str(tmp_path / "orders"))
    backfill = example("parquet_to_fifo").backfill
    for _ in range(2):
        backfill(rows, url, group="customer", order_by="at", rate=1_000, write_id="orders")
    groups: dict[int, list[int]] = {}
    for message in elasticq_server.drain(url):
        order = json.loads(message["Body"])
        groups.setdefault(order["customer"], []).append(order["at"])
    assert groups == {n: [at for at in range(120) if (119 - at) % 5 == n] for n in range(5)}


def test_statistics_tell_of_a_queue_and_leave_it_as_it_was(
    spark: Any,
    elasticq_server: Server,
    make_queue: Callable[..., str],
    example: Callable[[str], ModuleType],
    tmp_path: Path,
) -> None:
    url = make_queue(elasticq_server, ".fifo", ContentBasedDeduplication="true")
    elasticq_server.fill(url, [f"{n:03}" for n in range(40)], MessageGroupId="large")
    elasticq_server.fill(url, [f"{n:05}" for n in range(10)], MessageGroupId="small")
    statistics = example("queue_statistics")
    messages = statistics.look(spark, url)
    figures = statistics.figures(messages)
    assert (figures["messages"], figures["groups"], figures["largest_bytes"]) == (50, 2, 5)
    assert figures["mean_size_bytes"] == pytest.approx(3.4)
    assert 0 <= figures["median_age_s"] <= figures["oldest_s"]
    assert statistics.largest_groups(messages) == [("large", 40), ("small", 10)]
    statistics.plot(messages, tmp_path / "queue.png")
    assert (tmp_path / "queue.png").read_bytes().startswith(b"\x89PNG")
    assert elasticq_server.counts(url) == (50, 0)
    assert all(m["Attributes"]["ApproximateReceiveCount"] == "1" for m in elasticq_server.drain(url))
