"""The streaming source: plans batches on the driver, reads shares on executors, deletes what Spark has committed.

Spark calls ``commit(end)`` one batch late, so a batch is committed when the
next one is planned: ``latestOffset(start)`` is called, also after a restart,
only when all up to ``start`` stands in the commit log.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from elasticq.client import SqsError
from elasticq.spark.admission import Admission, divided
from elasticq.spark.clients import chosen
from elasticq.spark.collector import settle
from elasticq.spark.deadletters import DeadLetters
from elasticq.spark.driver import planned_batch, received_batch
from elasticq.spark.environment import Environment
from elasticq.spark.heartbeat import Heartbeat
from elasticq.spark.lease import Leases
from elasticq.spark.offsets import Json, Offset, Share, from_json, stream_name
from elasticq.spark.options import OptionError, Read
from elasticq.spark.plain import Plain
from elasticq.spark.queues import Backlog, backlog_of, find_queues
from elasticq.spark.receives import receives_for
from elasticq.spark.schema import Message, Origin, Rows
from elasticq.spark.wal import WriteAhead

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # Spark 4.1: latestOffset has no arguments, and availableNow makes one batch
    from elasticq.spark.spark41 import (  # type: ignore[assignment]
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PARTITIONS_DEFAULT: Final = 4
ROWS_AT_ONCE: Final = 1000
QUEUES_FOUND_S: Final = 60.0  # how long the queues of a prefix are taken as known
log = logging.getLogger(__name__)


def mode_of(options: Read, environment: Environment) -> str:
    """Returns lease, wal, driver, or plain if nothing is to be kept. Raises OptionError if auto finds no mode."""
    if options.ack_mode in ("none", "onRead"):
        return "plain"
    if options.mode in ("wal", "driver"):
        _store_of(options, environment)
        return options.mode
    if environment.on_elasticq(options.connection):
        return "lease"
    if options.mode == "lease":
        raise OptionError(f"mode=lease needs elasticq, and {options.endpoint or 'AWS'} is none: see mode=wal")
    if options.wal_location:
        _store_of(options, environment)
        return "wal"
    raise OptionError(
        f"{options.endpoint or 'AWS'} has no leases as elasticq has: give walLocation, a folder that driver and"
        " executors share or s3://bucket/path, for a write-ahead log (or ackMode=none or onRead)"
    )


def _store_of(options: Read, environment: Environment) -> None:
    store = environment.open_store(options.wal_location)
    if options.mode != "driver" and not store.is_exclusive:
        raise OptionError("option walLocation: mode=wal needs a shared folder or s3://; this one does for mode=driver")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream's reader. One plans in the driver-side process; another is sent to the executors, which read."""

    def __init__(self, options: Read, schema: "StructType", environment: Environment | None = None) -> None:
        self._options = options
        self._environment = environment = environment or Environment()
        self._rows = Rows(schema, options.value_format, options.on_parse_error)
        self._mode = mode_of(options, environment)
        on_elasticq = self._mode == "lease" or environment.on_elasticq(options.connection)
        is_light = chosen(options.connection) == "light"
        self._receives = receives_for(options, self._rows, on_elasticq, is_light)
        self._dead_letters = DeadLetters(options, environment)
        self._driver: Driver | None = None

    # --- the driver -----------------------------------------------------------------------------

    def _planner(self) -> "Driver":
        if self._driver is None:
            self._driver = Driver(self._options, self._mode, self._environment, self._delivery)
        return self._driver

    def initialOffset(self) -> Json:
        return self._planner().first().to_json()

    def latestOffset(self, start: Json | None = None, limit: ReadLimit | None = None) -> Json:
        return self._planner().next_batch(start, _messages_max(limit))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.max_messages_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        self._planner().only_what_waits()

    def reportLatestOffset(self) -> Json | None:
        return self._planner().report()

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        return [InputPartition(share) for share in self._planner().shares(start, end)]

    def commit(self, end: Json) -> None:
        """Does nothing: the batch's messages were deleted when the next batch was planned."""

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.stop()

    # --- executors ------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yields the record batches of a share, which is a partition made by ``partitions``."""
        share: Share = partition.value
        return self._batches(share)

    def _batches(self, share: Share) -> Iterator[Any]:
        settle()
        origin = Origin(share.queue_name, share.batch, share.partition)
        for messages in gathered(self._delivery(share.mode).pages(share), ROWS_AT_ONCE):
            batch, rejected = self._rows.batch(messages, origin)
            self._dead_letters.send(share.queue_url, rejected)
            if batch is not None:
                yield batch

    def _delivery(self, mode: str) -> Leases | WriteAhead | Plain:
        """Returns the delivery for the batch's mode: a replayed batch may be of another mode than the query."""
        if mode == "lease":
            return Leases(self._options, self._receives, self._environment)
        if mode in ("wal", "driver"):
            return WriteAhead(self._options, self._receives, self._environment)
        return Plain(self._options, self._receives, self._environment)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_driver": None}


def gathered(pages: Iterator[list[Message]], count: int) -> Iterator[list[Message]]:
    """Yields pages joined to about ``count`` messages: a record batch costs the same for ten rows as for a thousand."""
    kept: list[Message] = []
    for page in pages:
        kept += page
        if len(kept) >= count:
            yield kept
            kept = []
    if kept:
        yield kept


def _messages_max(limit: ReadLimit | None) -> int | None:
    if isinstance(limit, ReadMaxRows):
        return limit.max_rows
    if isinstance(limit, ReadAllAvailable):
        return None
    return -1  # none was given: the options decide


class Driver:
    """The state of the driver-side process: what is planned and committed, and what the queues answered last."""

    def __init__(self, options: Read, mode: str, environment: Environment, delivery: Any) -> None:
        self._options = options
        self._mode = mode
        self._environment = environment
        self._delivery_of = delivery
        self._deliveries: dict[str, Any] = {}
        self._admission = Admission(options, environment.now_s)
        self._heartbeat = self._new_heartbeat()
        self._queues: list[str] = []
        self._queues_found_s = 0.0
        self._backlogs: list[tuple[str, Backlog]] = []
        self._asked_s = float("-inf")
        self._idle = False
        self._last: Offset | None = None  # the newest batch that this process has seen
        self._planned: Offset | None = None  # the newest batch planned by this process
        self._committed: Offset | None = None

    def _new_heartbeat(self) -> Heartbeat | None:
        if self._options.heartbeat == "off" or self._mode == "plain":
            return None
        held_s = self._options.lease_seconds if self._mode == "lease" else self._options.visibility_timeout
        return self._environment.heartbeat(held_s / 3, self.renew)

    def _delivery(self, mode: str) -> Any:
        if mode not in self._deliveries:
            self._deliveries[mode] = self._delivery_of(mode)
        return self._deliveries[mode]

    # --- offsets ----------------------------------------------------------------------------------

    def first(self) -> Offset:
        """Returns the offset of a new stream: a name that nobody had before, and nothing read."""
        self._find_queues()
        wanted = self._options.lease_name or self._options.query_name
        self._last = Offset(stream_name(wanted, self._environment.random_part()), 0)
        return self._last

    def next_batch(self, start_json: Json | None, messages_max: int | None) -> Json:
        """Commits the batch that ends at ``start``; plans the next one; returns its end, ``start`` if there is none."""
        start = self._start(start_json)
        self.commit(start)
        if messages_max is not None and messages_max < 0:
            messages_max = self._options.max_messages_per_trigger
        offset = self._plan(start, messages_max)
        if offset is None:
            return start_json if start_json is not None else start.to_json()
        self._planned = self._last = offset
        return offset.to_json()

    def _start(self, start_json: Json | None) -> Offset:
        """Returns the start. If Spark (4.1) does not give it, it is the last batch seen, or a new stream."""
        if start_json is not None:
            return from_json(start_json)
        return self._last or self.first()

    def _plan(self, start: Offset, messages_max: int | None) -> Offset | None:
        draft = Offset(
            start.name,
            start.batch + 1,
            self._mode,
            int(self._environment.now_s() * 1000),
            int(self._options.lease_seconds * 1000),
            self._options.max_bytes_per_trigger,
        )
        if self._mode == "driver":
            found = planned_batch(self._store(), draft.name, draft.batch)
            if found is not None:
                return found
        messages = self._wanted(messages_max)
        if messages <= 0:
            return None
        tasks = self._options.partitions or PARTITIONS_DEFAULT
        parts = divided(self._backlogs, messages, tasks, self._delivery(self._mode).share_messages_max)
        offset: Offset | None = replace(draft, parts=parts)
        if self._mode == "driver":
            offset = received_batch(
                self._delivery("driver"), self._store(), self._client(), replace(draft, parts=parts), self._environment
            )
        if offset is not None:
            self._admission.admitted(
                sum(part.messages for part in offset.parts), [backlog for _, backlog in self._backlogs]
            )
        return offset

    def _wanted(self, messages_max: int | None) -> int:
        """Returns how many messages the next batch takes. An idle queue is asked at most once in pollInterval."""
        if self._idle:
            self._environment.sleep(max(0.0, self._asked_s + self._options.poll_interval - self._environment.now_s()))
        self._ask()
        wanted = self._admission.amount(
            [backlog for _, backlog in self._backlogs], messages_max, any(url.endswith(".fifo") for url in self._queues)
        )
        self._idle = wanted <= 0
        return wanted

    def only_what_waits(self) -> None:
        self._ask()
        self._admission.until([backlog for _, backlog in self._backlogs])

    def shares(self, start_json: Json, end_json: Json) -> list[Share]:
        """Returns the tasks of the batch that ends at ``end``."""
        start, end = from_json(start_json), from_json(end_json)
        if (start.name, start.batch) == (end.name, end.batch):
            return []
        self.commit(start)  # Spark 4.1 has not given ``start`` before, and begins a new name after a restart
        self._last = end
        if not end.parts:
            return []
        shares: list[Share] = end.shares()
        if end != self._planned:  # an earlier run planned it
            shares = self._delivery(end.mode).replayed(end)
            self._planned = end
            self.renew(end)
        if self._heartbeat is not None:
            self._heartbeat.cover(end)
        return shares

    def commit(self, offset: Offset) -> None:
        """Deletes the batch's messages, unless this process has done so."""
        if offset.batch == 0 or offset == self._committed:
            return
        if self._heartbeat is not None:
            self._heartbeat.cover(None)
        self._delivery(offset.mode).commit(offset)
        self._committed = offset

    def renew(self, offset: Offset) -> None:
        self._delivery(offset.mode).renew(offset)

    def stop(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()

    # --- queues -------------------------------------------------------------------------------------

    def _client(self) -> Any:
        return self._environment.connect(self._options.connection)

    def _store(self) -> Any:
        return self._environment.open_store(self._options.wal_location)

    def _find_queues(self) -> None:
        is_known = self._queues and not self._options.queue_prefix
        if not is_known and self._environment.now_s() - self._queues_found_s > QUEUES_FOUND_S:
            self._queues = find_queues(self._client(), self._options)
            self._queues_found_s = self._environment.now_s()

    def _ask(self) -> None:
        self._find_queues()
        client = self._client()
        self._backlogs = [(url, backlog_of(client, url, self._options.endpoint)) for url in self._queues]
        self._asked_s = self._environment.now_s()

    def report(self) -> Json | None:
        """Returns backlog, in flight and oldest age, for the progress of the query."""
        if not self._backlogs:
            return None
        report: Json = {
            "backlog": sum(backlog.visible for _, backlog in self._backlogs),
            "inFlight": sum(backlog.in_flight for _, backlog in self._backlogs),
            "delayed": sum(backlog.delayed for _, backlog in self._backlogs),
            "expired": sum(delivery.expired for delivery in self._deliveries.values()),
        }
        age_s = self._oldest_age_s()
        return report if age_s is None else {**report, "oldestAgeSeconds": age_s}

    def _oldest_age_s(self) -> int | None:
        """Returns the oldest message's age in seconds; None if unknown: only elasticq tells it, to the light client."""
        client = self._client()
        if self._mode != "lease" or not hasattr(client, "peek") or chosen(self._options.connection) != "light":
            return None
        try:
            pages = [client.peek(QueueUrl=url, Limit=1) for url in self._queues]
        except (SqsError, OSError) as error:
            log.debug("peek_failed error=%s", error)
            return None
        sent_ms = [int(message["SentTimestamp"]) for page in pages for message in page["Messages"]]
        if not sent_ms and any(page["NextSequence"] is not None for page in pages):
            return None  # the first page holds none: to look further would cost too much
        return max(0, int(self._environment.now_s() - min(sent_ms) / 1000)) if sent_ms else 0
