"""The batch source. On elasticq it peeks at the queue, which changes nothing; elsewhere it receives messages.

Without ackMode, a batch read on elasticq peeks at all messages that were in the queue when Spark planned the query:
visible, in flight and delayed ones. With ackMode=none or commit, and on any other SQS, it receives messages. They are
invisible for visibilityTimeout, and ``elasticq.spark.ack(frame)`` deletes them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from elasticq.client.errors import SqsError, Unreachable
from elasticq.spark.clients import chosen
from elasticq.spark.collector import settle
from elasticq.spark.environment import Environment
from elasticq.spark.filters import Narrowed, narrowed
from elasticq.spark.offsets import Share
from elasticq.spark.options import PARTITIONS_DEFAULT, OptionError, Read
from elasticq.spark.plain import Plain
from elasticq.spark.queues import backlog_of, explained, find_queues
from elasticq.spark.receives import ROWS_AT_ONCE, gathered, receives_for
from elasticq.spark.schema import DEAD_LETTER, Message, Origin, Rows

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from elasticq.spark.deadletters import DeadLetters

PEEK_PAGE: Final = 1000
NO_BOUND: Final = 2**62


@dataclass(frozen=True)
class QueueView:
    """A peek at one queue for up to ``messages`` messages. ``narrowed`` also holds the end of the snapshot."""

    queue_url: str
    partition: int
    messages: int
    narrowed: Narrowed


class Pushdown:
    """The ``pushFilters`` method of a reader, which works with filter pushdown enabled or disabled.

    If spark.sql.python.filterPushdown.enabled is false, Spark refuses a reader that overrides pushFilters. Spark checks
    the method's ``__func__``, so this object shows it the base class's function. If the setting is true, Spark calls
    the object.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: "BatchReader") -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._reader.narrow(filters)


class BatchReader(DataSourceReader):
    """The reader of a batch. It plans on the driver; pickled copies of it read on executors."""

    def __init__(self, options: Read, schema: "StructType", environment: Environment | None = None) -> None:
        self._environment = environment = environment or Environment()
        self._rows = Rows(schema, options.value_format, options.on_parse_error)
        on_elasticq = environment.on_elasticq(options.connection)
        self._peeks = on_elasticq and not options.ack_mode
        if self._peeks:
            # Only the light client can peek. On elasticq nothing needs boto3.
            options = replace(options, client="light")
        # The driver chooses the client. Otherwise each new worker would ask the server whether it is elasticq.
        self._options = options = replace(options, client=chosen(options.connection))
        self._receives = receives_for(options, self._rows, on_elasticq, options.client == "light")
        self._dead_letters = self._new_dead_letters() if options.on_parse_error == DEAD_LETTER else None
        self._count = ending_count(options.ending_mode)
        self._narrowed = Narrowed()
        self.pushFilters: Any = Pushdown(self)

    def _new_dead_letters(self) -> "DeadLetters":
        from elasticq.spark.deadletters import DeadLetters

        return DeadLetters(self._options, self._environment)

    def narrow(self, filters: list[Filter]) -> Iterable[Filter]:
        """Store the filters that the server can apply, and return those that Spark still has to apply.

        Receives can apply filters on the queue only.
        """
        found, left = narrowed(filters)
        if self._peeks:
            self._narrowed = found
            return left
        self._narrowed = Narrowed(queues=found.queues)
        return [each for each in filters if getattr(each, "attribute", None) != ("queue",)]

    # --- the driver -------------------------------------------------------------------------------

    def partitions(self) -> list[InputPartition]:
        client = self._environment.connect(self._options.connection)
        urls = [url for url in find_queues(client, self._options) if self._is_wanted(url)]
        # Also for a peek: a wrong queue raises QueueError before any task starts.
        backlogs = [backlog_of(client, url, self._options.endpoint) for url in urls]
        if self._peeks:
            return [InputPartition(look) for look in self._looks(urls)]
        shares: list[Share] = []
        for url, backlog in zip(urls, backlogs, strict=True):
            shares += self._shares(url, backlog.visible, len(shares))
        return [InputPartition(share) for share in shares] or [InputPartition(None)]

    def _is_wanted(self, url: str) -> bool:
        return self._narrowed.queues is None or url.rpartition("/")[2] in self._narrowed.queues

    def _looks(self, urls: list[str]) -> list[QueueView | None]:
        now_ms = int(self._environment.now_s() * 1000) + 1
        until_ms = min(now_ms, self._narrowed.until_ms or now_ms)
        snapshot = replace(self._narrowed, until_ms=until_ms)
        count = NO_BOUND if self._count is None else self._count
        return [QueueView(url, number, count, snapshot) for number, url in enumerate(urls)] or [None]

    def _shares(self, url: str, visible: int, first: int) -> list[Share]:
        tasks = self._options.partitions or max(self._options.min_partitions, PARTITIONS_DEFAULT)
        bound = visible if self._options.ending_mode == "snapshot" else self._count
        counts = [NO_BOUND] * tasks
        if bound is not None:
            tasks = max(1, min(tasks, bound))
            counts = [bound // tasks + (index < bound % tasks) for index in range(tasks)]
        return [Share("batch", 0, first + index, "plain", url, count, 0) for index, count in enumerate(counts)]

    # --- executors --------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        what = partition.value
        if what is None:
            return iter(())
        return self._batches(what)

    def _batches(self, what: QueueView | Share) -> Iterator[Any]:
        settle()
        origin = Origin(what.queue_url.rpartition("/")[2], 0, what.partition)
        pages = self._peeked(what) if isinstance(what, QueueView) else self._received(what)
        for messages in gathered(pages, ROWS_AT_ONCE):
            batch, rejected = self._rows.batch(messages, origin)
            if self._dead_letters is not None and not self._peeks:
                self._dead_letters.send(what.queue_url, rejected)
            if batch is not None:
                yield batch
        settle()

    def _received(self, share: Share) -> Iterator[list[Message]]:
        return Plain(self._options, self._receives, self._environment).pages(share)

    def _peeked(self, look: QueueView) -> Iterator[list[Message]]:
        client = self._environment.connect(self._options.connection)
        sequence: int | None = 0
        taken = 0
        while sequence is not None and taken < look.messages:
            members = {
                **look.narrowed.members(),
                "FromSequence": sequence,
                "Limit": min(PEEK_PAGE, look.messages - taken),
            }
            try:
                answer = client.peek(QueueUrl=look.queue_url, **members)
            except (SqsError, Unreachable) as error:
                raise explained(error, look.queue_url, self._options.endpoint) from error
            yield [_as_received(message) for message in answer["Messages"]]
            taken += len(answer["Messages"])
            sequence = answer.get("NextSequence")


def ending_count(ending_mode: str) -> int | None:
    """Return the N of ``count:N``, or None for ``empty`` and ``snapshot``. Raise OptionError for anything else."""
    word, _, number = ending_mode.strip().partition(":")
    if word in ("empty", "snapshot") and not number:
        return None
    if word == "count" and number.isdigit() and 0 < int(number) < NO_BOUND:
        return int(number)
    raise OptionError(f"option endingMode: {ending_mode!r} is not empty, snapshot or count:N")


def _as_received(peeked: Message) -> Message:
    """Return a peeked message in the shape of a received one, without a receive time if it was never received."""
    attributes = peeked["Attributes"]
    if attributes.get("ApproximateFirstReceiveTimestamp") == "0":
        attributes = {name: value for name, value in attributes.items() if name != "ApproximateFirstReceiveTimestamp"}
    return {**peeked, "Attributes": attributes}
