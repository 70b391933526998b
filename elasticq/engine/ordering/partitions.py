"""The order of FIFO queues with partitions: a receive may request messages of one partition.

The name of a group determines its partition: crc32 of its UTF-8 bytes modulo the number of partitions, which never
changes. Order within groups is that of any FIFO queue. A receive without a partition works as in any FIFO queue. Each
partition with a free group has its own line, as well as the line of the queue, with the same entries. A receive of a
partition only visits groups of this partition.

    _lines      partition -> its line; a partition without free groups has none
    Line.free   first message of a free group -> time since which it is free, as in the queue's ``_free``

Each line needs its own table of free groups. After a roll-back, a sequence may be given to a message of another
partition. With one table for all lines, an outdated heap entry would then look valid.
"""

from collections.abc import Set
from typing import Final
from zlib import crc32

from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.ordering.fifo import FifoOrder, lined_up
from elasticq.engine.ordering.groups import Group
from elasticq.engine.stored.ages import Ages
from elasticq.engine.stored.delivery_rows import Grace, Row
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model.limits import PARTITIONS_MAX, PARTITIONS_MIN

PARTITIONS: Final = "ElasticqPartitions"
"""An attribute of a queue, set when it is created: the number of its partitions."""
RANGE: Final = (PARTITIONS_MIN, PARTITIONS_MAX)


def partitions_of(attributes: dict[str, str]) -> int:
    """Return the number of partitions of a FIFO queue with these attributes; 0 without partitions."""
    value = attributes.get(PARTITIONS, "")
    count = int(value) if value.isascii() and value.isdigit() and len(value) <= len(str(PARTITIONS_MAX)) else 0
    return count if PARTITIONS_MIN <= count <= PARTITIONS_MAX else 0


class Line:
    """The free groups of one partition in the order in which they became free. ``entries`` is a heap."""

    __slots__ = ("entries", "free")

    def __init__(self) -> None:
        self.entries: list[tuple[int, int]] = []
        self.free: dict[int, int] = {}


class PartitionedOrder(FifoOrder):
    """The index of one FIFO queue with partitions."""

    __slots__ = ("_count", "_lines")

    def __init__(
        self, rows: dict[int, Row], contents: dict[int, MessageStored], grace: Grace, ages: Ages, count: int
    ) -> None:
        super().__init__(rows, contents, grace, ages)
        self._count = count
        self._lines: dict[int, Line] = {}

    # --- written by apply ---------------------------------------------------

    def _enter_line(self, group: Group, first: int, since_ms: int) -> None:
        super()._enter_line(group, first, since_ms)
        partition = self.partition_of(group.name)
        line = self._lines.get(partition)
        if line is None:
            line = self._lines[partition] = Line()
        line.entries = lined_up(line.entries, line.free, first, since_ms)

    def _leave_line(self, group: Group) -> None:
        partition = self.partition_of(group.name)
        line = self._lines[partition]
        del line.free[group.listed]
        if not line.free:
            del self._lines[partition]
        super()._leave_line(group)

    # --- read by handlers -----------------------------------------------------

    def partition_of(self, name: str) -> int:
        return crc32(name.encode()) % self._count

    def open_partitions(self, now_ms: int) -> Set[int]:
        self.advance(now_ms)
        return self._lines.keys()

    def choose_in(self, partition: int, now_ms: int, limit: int, sent_after_ms: int) -> list[int]:
        if self._delay_ms or self._late or (self._heap and self._heap[0][0] <= now_ms):
            self.advance(now_ms)
        line = self._lines.get(partition)
        if line is None:
            return []
        try:
            return self._choose_from(line.entries, line.free, limit, sent_after_ms)
        except ContentsMissing as missing:
            raise missing.with_ahead(self._missing_of(line.entries, line.free)) from None
