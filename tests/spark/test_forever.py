"""Queries that fail and start again from their checkpoint, and what the listener tells of them."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from elasticq.spark import progress_listener, run_forever, watched
from elasticq.spark.forever import line, told
from tests.spark.servers import Server


class Stop(threading.Event):
    """Passes pauses at once and keeps how long they were to be."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.pauses.append(timeout)
        return self.is_set()


class FakeQuery:
    """Ends by itself, fails, or runs until it is stopped; ``batches`` before that."""

    def __init__(self, end: str, batches: int = 0, then: Callable[[], object] = lambda: None) -> None:
        self.end = end
        self.lastProgress = {"batchId": batches} if batches else None
        self.then = then
        self.is_stopped = False

    def awaitTermination(self, timeout: int) -> bool:
        self.then()
        if self.end == "fails":
            raise RuntimeError("Python worker exited unexpectedly")
        if self.end == "refuses":
            raise RuntimeError("...\nelasticq.spark.options.OptionError: format sqs has no option 'x'")
        return self.end == "ends"

    def stop(self) -> None:
        self.is_stopped = True


def builder(*queries: FakeQuery) -> Callable[[], Any]:
    waiting: Iterator[FakeQuery] = iter(queries)
    return lambda: next(waiting)


def test_a_failed_query_starts_again_with_longer_pauses_until_one_ends() -> None:
    stop = Stop()
    failing = [FakeQuery("fails") for _ in range(4)]
    assert run_forever(builder(*failing, FakeQuery("ends")), stop=stop) == 4
    assert stop.pauses == [1, 2, 4, 8]


def test_a_finished_batch_makes_the_pause_short_again() -> None:
    stop = Stop()
    queries = [FakeQuery("fails"), FakeQuery("fails"), FakeQuery("fails", batches=3), FakeQuery("ends")]
    run_forever(builder(*queries), stop=stop)
    assert stop.pauses == [1, 2, 1]


def test_a_query_that_gets_nowhere_raises_in_the_end() -> None:
    stop = Stop()
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        run_forever(builder(*(FakeQuery("fails") for _ in range(9))), stop=stop, failures_max=3)
    assert len(stop.pauses) == 3


def test_what_cannot_succeed_raises_at_once() -> None:
    stop = Stop()
    with pytest.raises(RuntimeError, match="has no option"):
        run_forever(builder(FakeQuery("refuses"), FakeQuery("ends")), stop=stop)
    assert stop.pauses == []


def test_sigterm_stops_the_query_and_the_handler_is_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    query = FakeQuery("runs", then=lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert run_forever(builder(query)) == 0
    assert query.is_stopped
    assert signal.getsignal(signal.SIGTERM) is before


def test_only_numbers_of_an_offset_are_told() -> None:
    assert told('{"batch": 3, "name": "x", "age_s": 1.5}') == {"batch": 3, "age_s": 1.5}
    assert told("no json") == told(None) == told("[1]") == {}
    assert json.loads(line("event", a=1))["event"] == "event"


@pytest.mark.spark
def test_spark_goes_on_from_the_checkpoint_and_the_listener_tells_each_batch(spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    rows = [{"body": str(number), "receiveCount": 1 + number % 2} for number in range(10)]
    (source / "rows.json").write_text("\n".join(map(json.dumps, rows)))
    tries: list[int] = []
    seen: list[str] = []

    def fail_at_first(frame: Any, batch: int) -> None:
        tries.append(batch)
        if len(tries) == 1:
            raise RuntimeError("at first")
        seen.extend(row.body for row in frame.collect())

    def build() -> Any:
        frame = watched(spark.readStream.schema("body string, receiveCount int").json(str(source)))
        stream = frame.writeStream.foreachBatch(fail_at_first).trigger(availableNow=True)
        return stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    lines: list[dict[str, Any]] = []
    ended = threading.Event()

    def keep(text: str) -> None:
        lines.append(json.loads(text))
        if lines[-1]["event"] == "sqs_query_ended" and lines[-1]["error"] is None:
            ended.set()

    listener = progress_listener(keep)
    spark.streams.addListener(listener)
    try:
        assert run_forever(build, stop=Stop()) == 1
        assert ended.wait(60)
    finally:
        spark.streams.removeListener(listener)
    assert tries == [0, 0]
    assert sorted(map(int, seen)) == list(range(10))
    (batch,) = [one for one in lines if one["event"] == "sqs_batch" and one["messages"]]
    assert (batch["batch"], batch["messages"], batch["redelivered"]) == (0, 10, 5)


@pytest.mark.spark
def test_a_thread_of_its_own_can_write_and_a_wrong_option_ends_it(
    spark: Any, elasticq_server: Server, make_queue: Callable[..., str], tmp_path: Path
) -> None:
    url = make_queue(elasticq_server)
    stop = Stop()
    ended: list[object] = []

    def start(**options: Any) -> Any:
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
        stream = rows.selectExpr("cast(value as string) body").writeStream.format("sqs").trigger(once=True)
        return stream.option("checkpointLocation", str(tmp_path / "checkpoint")).options(**options).start(url)

    def run() -> None:
        ended.append(run_forever(start, stop=stop))
        try:
            run_forever(lambda: start(rejectPaht="x"), stop=stop)
        except Exception as error:
            ended.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ended[0] == 0
    assert "did you mean rejectPath" in str(ended[1])
    assert stop.pauses == []
    assert sorted(message["Body"] for message in elasticq_server.drain(url)) == ["0", "1", "2"]
