"""Keeps a streaming query running: restarts it from its checkpoint, ends on SIGTERM, logs what it does.

Spark tries a task again whose worker died, but a query whose driver-side Python source died ends.
"""

import json
import logging
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("elasticq.spark")

PAUSE_S_MIN = 1.0
PAUSE_S_MAX = 60.0
LOOK_S = 1  # between two looks at a query and at signals
FAILURES_MAX = 20  # failures without one finished batch between them
OBSERVED = "sqs"


@dataclass(slots=True)
class Restarts:
    """Decides when the query is started again, and when to stop trying."""

    failures_max: int = FAILURES_MAX
    failures: int = 0
    total: int = 0

    def progressed(self) -> None:
        self.failures = 0

    def pause_s(self) -> float | None:
        """Count a failure. Return the seconds to wait before the next start, None after too many without progress."""
        self.failures += 1
        self.total += 1
        if self.failures > self.failures_max:
            return None
        return min(PAUSE_S_MIN * 2.0 ** (self.failures - 1), PAUSE_S_MAX)


def run_forever(
    build_query: "Callable[[], StreamingQuery]",
    *,
    failures_max: int = FAILURES_MAX,
    stop: threading.Event | None = None,
) -> int:
    """Start the query that ``build_query`` makes (with a checkpointLocation) again whenever it fails.

    Return the number of restarts when the query ended by itself (availableNow, or somebody stopped it), on
    SIGTERM, or when ``stop`` is set. Raise the query's error when it failed ``failures_max`` times in a row
    without finishing a batch. Signals are only heard in the main thread.
    """
    stop = stop or threading.Event()
    restarts = Restarts(failures_max)
    restore = on_sigterm(stop)
    try:
        while not stop.is_set():
            try:
                query = build_query()
                watch(query, stop, restarts)
                return restarts.total
            except Exception as error:
                pause_s = restarts.pause_s()
                say("sqs_query_failed", error=f"{type(error).__name__}: {error}"[:2_000], restart_in_s=pause_s)
                if pause_s is None:
                    raise
                stop.wait(pause_s)
        return restarts.total
    finally:
        restore()


def on_sigterm(stop: threading.Event) -> Callable[[], object]:
    """Set ``stop`` on SIGTERM. Return a function that undoes that."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    return lambda: signal.signal(signal.SIGTERM, before)


def watch(query: "StreamingQuery", stop: threading.Event, restarts: Restarts) -> None:
    """Wait until the query has ended or was stopped. Raise its error. A finished batch counts as progress."""
    try:
        while not query.awaitTermination(LOOK_S):
            if stop.is_set():
                query.stop()
                return
    finally:
        if query.lastProgress is not None:
            restarts.progressed()


def watched(frame: "DataFrame") -> "DataFrame":
    """Return the frame with observed figures for ``progress_listener``: redelivered messages and the oldest age."""
    from pyspark.sql import functions

    figures = [functions.count(functions.lit(1)).alias("messages")]
    if "receiveCount" in frame.columns:
        figures.append(functions.count_if(functions.col("receiveCount") > 1).alias("redelivered"))
    if "sentTimestamp" in frame.columns:
        figures.append(functions.min("sentTimestamp").alias("oldestSent"))
    return frame.observe(OBSERVED, *figures)


def progress_listener(write: Callable[[str], object] = log.info) -> "StreamingQueryListener":
    """Return a listener for ``spark.streams.addListener`` that writes one JSON line for each batch and query's end."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            write(line("sqs_query_started", query=str(event.id), name=event.name))

        def onQueryProgress(self, event: Any) -> None:
            write(line("sqs_batch", **figures_of(event.progress)))

        def onQueryIdle(self, event: Any) -> None:
            """Write nothing."""

        def onQueryTerminated(self, event: Any) -> None:
            write(line("sqs_query_ended", query=str(event.id), error=event.exception))

    return Listener()


def figures_of(progress: Any) -> dict[str, Any]:
    """Return the figures of a batch: those of Spark, of the queues (from the source's offsets), and of ``watched``."""
    figures: dict[str, Any] = {
        "query": str(progress.id),
        "batch": progress.batchId,
        "messages": progress.numInputRows,
        "messages_per_s": round(progress.processedRowsPerSecond or 0.0, 1),
        "duration_ms": dict(progress.durationMs or {}),
    }
    for source in progress.sources or ():
        for offset in (source.endOffset, source.latestOffset):
            figures |= told(offset)
    observed = dict(progress.observedMetrics or {}).get(OBSERVED)
    if observed is not None:
        figures |= {name: value for name, value in observed.asDict().items() if value is not None}
    return figures


def told(offset: object) -> dict[str, Any]:
    """Return the numbers in an offset's JSON: backlog, in flight, ages."""
    try:
        content = json.loads(offset) if isinstance(offset, str) else {}
    except ValueError:
        return {}
    if not isinstance(content, dict):
        return {}
    return {name: value for name, value in content.items() if isinstance(value, int | float)}


def line(event: str, **fields: Any) -> str:
    return json.dumps({"event": event, "at": round(time.time(), 3), **fields}, default=str)


def say(event: str, **fields: Any) -> None:
    log.warning(line(event, **fields))
