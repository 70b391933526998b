"""The streaming source. It plans batches on the driver, reads them on executors and deletes committed messages.

Every new Spark worker imports this module. Functions therefore import what only the driver or one mode needs.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from elasticq.spark.clients import chosen
from elasticq.spark.collector import settle
from elasticq.spark.environment import Environment
from elasticq.spark.lease import Leases
from elasticq.spark.offsets import Json, Share
from elasticq.spark.options import OptionError, Read
from elasticq.spark.receives import ROWS_AT_ONCE, gathered, receives_for
from elasticq.spark.schema import DEAD_LETTER, Origin, Rows

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from elasticq.spark.deadletters import DeadLetters
    from elasticq.spark.plain import Plain
    from elasticq.spark.planner import Planner
    from elasticq.spark.wal import WriteAhead


def mode_of(options: Read, environment: Environment) -> str:
    """Return ``lease``, ``wal`` or ``driver``, or ``plain`` for a read that stores nothing.

    Raise OptionError if mode=auto finds no mode that works, or if the mode does not fit the server or walLocation.
    """
    if options.ack_mode in ("none", "onRead"):
        return "plain"
    if options.mode in ("wal", "driver"):
        _store_of(options, environment)
        return options.mode
    if environment.on_elasticq(options.connection):
        return "lease"
    if options.mode == "lease":
        raise OptionError(f"mode=lease needs elasticq, which {options.endpoint or 'AWS'} is not: use mode=wal")
    if options.wal_location:
        _store_of(options, environment)
        return "wal"
    raise OptionError(
        f"{options.endpoint or 'AWS'} is not elasticq and has no leases: give walLocation for a write-ahead log, a"
        " folder that driver and executors share or s3://bucket/path (or use ackMode=none or onRead)"
    )


def _store_of(options: Read, environment: Environment) -> None:
    store = environment.open_store(options.wal_location)
    if options.mode != "driver" and not store.is_exclusive:
        raise OptionError("option walLocation: mode=wal needs a shared folder or s3://; this one fits mode=driver only")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a stream. One copy plans in the driver-side Python process; pickled copies read on executors."""

    def __init__(self, options: Read, schema: "StructType", environment: Environment | None = None) -> None:
        self._environment = environment = environment or Environment()
        self._rows = Rows(schema, options.value_format, options.on_parse_error)
        self._mode = mode_of(options, environment)
        on_elasticq = self._mode == "lease" or environment.on_elasticq(options.connection)
        # The driver chooses the client. Otherwise each new worker would ask the server whether it is elasticq.
        self._options = options = replace(options, client=chosen(options.connection))
        self._receives = receives_for(options, self._rows, on_elasticq, options.client == "light")
        self._dead_letters = self._new_dead_letters() if options.on_parse_error == DEAD_LETTER else None
        self._driver: Planner | None = None

    def _new_dead_letters(self) -> "DeadLetters":
        from elasticq.spark.deadletters import DeadLetters

        return DeadLetters(self._options, self._environment)

    # --- the driver -----------------------------------------------------------------------------

    def _planner(self) -> "Planner":
        if self._driver is None:
            from elasticq.spark.planner import Planner  # executors plan nothing

            self._driver = Planner(self._options, self._mode, self._environment, self._delivery)
        return self._driver

    def initialOffset(self) -> Json:
        return self._planner().first().to_json()

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        return self._planner().next_batch(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.max_messages_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        self._planner().only_what_waits()

    def reportLatestOffset(self) -> Json | None:
        return self._planner().report()

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        return [InputPartition(share) for share in self._planner().shares(start, end)]

    def commit(self, end: Json) -> None:
        """Do nothing: the planner commits a batch when Spark asks it for the next one."""

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.stop()

    # --- executors ------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the record batches of one partition. Its value is a Share."""
        share: Share = partition.value
        return self._batches(share)

    def _batches(self, share: Share) -> Iterator[Any]:
        settle()
        origin = Origin(share.queue_name, share.batch, share.partition)
        for messages in gathered(self._delivery(share.mode).pages(share), ROWS_AT_ONCE):
            batch, rejected = self._rows.batch(messages, origin)
            if self._dead_letters is not None:
                self._dead_letters.send(share.queue_url, rejected)
            if batch is not None:
                yield batch
        settle()

    def _delivery(self, mode: str) -> "Leases | WriteAhead | Plain":
        """Return the object that reads in a mode. A replayed batch may have another mode than the query."""
        if mode == "lease":
            return Leases(self._options, self._receives, self._environment)
        if mode in ("wal", "driver"):
            from elasticq.spark.wal import WriteAhead

            return WriteAhead(self._options, self._receives, self._environment)
        from elasticq.spark.plain import Plain

        return Plain(self._options, self._receives, self._environment)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_driver": None}
