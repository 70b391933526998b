"""The supervision of a streaming query: restarts from the checkpoint, an end on SIGTERM, log lines.

Spark retries a task whose worker died. But if the driver-side Python process of the source dies, the query ends.
"""

import json
import logging
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elasticq.spark.options import OptionError
from elasticq.spark.starting import activate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("elasticq.spark")

PAUSE_S_MIN = 1.0
PAUSE_S_MAX = 60.0
LOOK_S = 1  # seconds between two checks of the query and of signals
FAILURES_MAX = 20  # failures in a row, without a finished batch between them
OBSERVED = "sqs"


@dataclass(slots=True)
class Restarts:
    """The count of failures, which decides when a query starts again and when it is given up."""

    failures_max: int = FAILURES_MAX
    failures: int = 0
    total: int = 0

    def progressed(self) -> None:
        self.failures = 0

    def pause_s(self) -> float | None:
        """Count a failure. Return the seconds to wait before the next start, or None after too many in a row."""
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
    """Run a query, and start it again whenever it fails. Return the number of restarts at the end.

    build_query: makes and starts the query, which needs a checkpointLocation. It ends by itself (availableNow), by
    its own ``stop``, on SIGTERM (in the main thread only), or when ``stop`` is set. Raise the query's error at once if
    it cannot succeed (``cannot_pass``), or after more than ``failures_max`` failures in a row without a finished batch.
    """
    stop = stop or threading.Event()
    restarts = Restarts(failures_max)
    restore = on_sigterm(stop)
    try:
        while not stop.is_set():
            try:
                activate()
                query = build_query()
                watch(query, stop, restarts)
                return restarts.total
            except Exception as error:
                pause_s = None if cannot_pass(error) else restarts.pause_s()
                say("sqs_query_failed", error=f"{type(error).__name__}: {error}"[:2_000], restart_in_s=pause_s)
                if pause_s is None:
                    raise
                stop.wait(pause_s)
        return restarts.total
    finally:
        restore()


def cannot_pass(error: BaseException) -> bool:
    """Return whether a restart cannot help: a wrong option, a query that Spark refuses, or a mistake in the program.

    Spark reports an error of our source or sink as text, with the name of its class.
    """
    if f"{OptionError.__name__}: " in str(error):
        return True
    if isinstance(error, (OptionError, NameError, AttributeError, TypeError, ImportError, SyntaxError)):
        return True
    # Any failure of a Python process of a source is of this class, too.
    is_refused = "AnalysisException" in [kind.__name__ for kind in type(error).__mro__]
    return is_refused and "PYTHON_DATA_SOURCE_ERROR" not in str(error)


def on_sigterm(stop: threading.Event) -> Callable[[], object]:
    """Install a SIGTERM handler that sets ``stop``. Return a function that restores the earlier handler.

    Do nothing outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    return lambda: signal.signal(signal.SIGTERM, before)


def watch(query: "StreamingQuery", stop: threading.Event, restarts: Restarts) -> None:
    """Wait until the query has ended, and stop it if ``stop`` is set. Raise the query's error.

    Reset the count of failures if the query has finished a batch.
    """
    try:
        while not query.awaitTermination(LOOK_S):
            if stop.is_set():
                query.stop()
                return
    finally:
        if query.lastProgress is not None:
            restarts.progressed()


def watched(frame: "DataFrame") -> "DataFrame":
    """Return the frame with observed metrics for ``progress_listener``.

    They are the number of messages, the number of redelivered ones (with the column receiveCount), and the oldest
    sentTimestamp (with that column).
    """
    from pyspark.sql import functions

    figures = [functions.count(functions.lit(1)).alias("messages")]
    if "receiveCount" in frame.columns:
        figures.append(functions.count_if(functions.col("receiveCount") > 1).alias("redelivered"))
    if "sentTimestamp" in frame.columns:
        figures.append(functions.min("sentTimestamp").alias("oldestSent"))
    return frame.observe(OBSERVED, *figures)


def progress_listener(write: Callable[[str], object] = log.info) -> "StreamingQueryListener":
    """Return a listener for ``spark.streams.addListener``. It writes a line of JSON for each event.

    The events are the start of a query, each batch, and the end of a query.
    """
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
    """Return the figures of a batch: Spark's, those of the source's offsets, and those of ``watched``."""
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
    """Return the numbers in an offset's JSON, such as backlog and inFlight; {} if it is no JSON object."""
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
