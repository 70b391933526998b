"""The simulated disk of a member: the real log and the real rows, on files that a crash can tear.

It keeps the contract of a storage: records are appended under a token, and are durable after a sync that began after
the append. A crash keeps all synced records and a random part of the others. The rows are written later to an
in-memory SQLite database, one transaction at a time. A transaction that a crash interrupts has no effect.

A memory-only member has a ``Memory`` instead: its records are durable at once, and lost with the process.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from random import Random

import msgspec
from msgspec import Struct

from elasticq.engine.state import State
from elasticq.engine.stored.mutations import MessageStored, Mutation
from elasticq.engine.views.dump import dump
from elasticq.node.outputs import Committed, Fetch
from elasticq.replication.records import Base, Durable, Entry, Record, Truncation, Vote
from elasticq.sim.files import SimulatedFiles
from elasticq.storage.interface import Loaded
from elasticq.storage.log.segments import SegmentLog
from elasticq.storage.rows import schema
from elasticq.storage.rows.batches import Batch
from elasticq.storage.rows.reading import read_base
from elasticq.storage.rows.rows import Rows
from elasticq.storage.snapshot import flush
from elasticq.storage.start import compose

SYNC_MIN_US, SYNC_USUAL_US, SYNC_MAX_US = 200, 1_500, 30_000
SYNC_STALL_US, SYNC_STALL_SHARE = 100_000, 0.003
SLOW_DISK_FACTOR = 8
SEGMENT_BYTES = 16_384
FLUSH_US = (50_000, 3_000_000)
FETCH_US = (100, 20_000)


class Copy(Struct, frozen=True):
    """A snapshot: the bytes of a database of rows, and the position in the log up to which it reaches."""

    base: Base
    data: bytes


class DurableView:
    """The durable vote and entries. It is updated record by record, because the checks read it at each step."""

    def __init__(self) -> None:
        self.vote = Vote(0, None)
        self.entries: dict[int, Entry] = {}
        self.last_index = 0
        self.base_index = 0  # the rows contain all committed entries up to this index

    def take(self, record: Record) -> None:
        match record:
            case Entry():
                self.entries[record.index] = record
                self.last_index = record.index
            case Truncation():
                for index in range(record.index, self.last_index + 1):
                    self.entries.pop(index, None)
                self.last_index = min(self.last_index, record.index - 1)
            case Vote():
                self.vote = record

    def has(self, index: int, term: int) -> bool:
        entry = self.entries.get(index)
        return entry is not None and entry.term == term


class Disk:
    """The log and the rows of a member, and the durations of their operations.

    unsynced: appended records that are not synced, with their tokens. The first ones may be written already.
    """

    def __init__(self, random: Random, rows_random: Random) -> None:
        self.random = random
        self.rows_random = rows_random
        self.files = SimulatedFiles()
        self.view = DurableView()
        self.unsynced: list[tuple[Record, int]] = []
        self._written = 0
        self._connection = _database()
        self._open()
        self._log.load()
        self.token = 0  # token of the newest append
        self.is_slow = False

    def _open(self) -> None:
        self._log = SegmentLog(self.files, segment_bytes=SEGMENT_BYTES)
        self._rows = Rows()

    # --- log --------------------------------------------------------------------

    def append(self, records: list[Record], token: int) -> None:
        self.unsynced += [(record, token) for record in records]
        self.token = token

    def sync_us(self) -> int:
        """Return the duration of a sync: 200 us to 30 ms, mostly about 1 ms, rarely a stall of 100 ms.

        A slow disk takes SLOW_DISK_FACTOR times as long, except in a stall.
        """
        random = self.random.random()
        if random < SYNC_STALL_SHARE:
            return SYNC_STALL_US
        duration_us = min(SYNC_MAX_US, SYNC_MIN_US + int(self.random.expovariate(1 / SYNC_USUAL_US)))
        return duration_us * SLOW_DISK_FACTOR if self.is_slow else duration_us

    def write(self, count: int) -> None:
        """Write the first ``count`` unsynced records to the file. They are not durable yet."""
        self._log.append([record for record, _ in self.unsynced[self._written : count]])
        self._written = max(self._written, count)

    def sync(self, count: int) -> None:
        """Make the first ``count`` unsynced records durable. They must have been written before the sync began."""
        self._log.sync()
        for record, _ in self.unsynced[:count]:
            self.view.take(record)
        del self.unsynced[:count]
        self._written -= count

    def forget_log(self, index: int) -> None:
        self._log.drop_through(index)

    # --- rows -------------------------------------------------------------------

    def take(self, committed: Committed) -> None:
        self._rows.take(committed)

    def flush_us(self) -> int:
        return self.rows_random.randint(*FLUSH_US)

    def store_us(self) -> int:
        """Return the duration of a transaction of the rows, in microseconds."""
        return self.rows_random.randint(SYNC_MIN_US, SYNC_MAX_US)

    def begin_rows(self) -> Batch | None:
        return self._rows.begin()

    def store_rows(self, batch: Batch) -> int:
        """Store a batch in one transaction. Return the index up to which the rows then contain all entries."""
        self._connection.execute("BEGIN")
        for sql, parameters in batch.statements:
            self._connection.executemany(sql, parameters)
        self._connection.execute("COMMIT")
        self._rows.done()
        return batch.index

    def fetch_us(self) -> int:
        return self.rows_random.randint(*FETCH_US)

    def fetch(self, fetch: Fetch) -> list[MessageStored]:
        return self.read(fetch.queue_id, fetch.sequences)

    def read(self, queue_id: int, sequences: list[int]) -> list[MessageStored]:
        """Return the contents of these messages, and of the other messages in the same pages."""
        found = []
        for sql, parameters in self._rows.fetch(queue_id, sequences):
            found += self._connection.execute(sql, parameters).fetchall()
        return self._rows.decode(found)

    # --- snapshots ----------------------------------------------------------------

    def copy(self, index: int) -> Copy | None:
        """Return a snapshot of the rows, None if they do not reach ``index``."""
        base = read_base(self._connection)
        return Copy(base, self._connection.serialize()) if base.index >= index else None

    def install(self, copy: Copy, vote: Vote) -> Loaded:
        """Replace log and rows by the copy. First sync the appended records, so the newest vote is kept."""
        if self.unsynced:
            self.write(len(self.unsynced))
            self.sync(len(self.unsynced))
        vote = self.view.vote
        self._log.reset(vote if vote.term >= copy.base.term else Vote(copy.base.term, None))
        self._connection.close()
        self._connection = _database(copy.data)
        self.view = DurableView()
        return self.load()

    # --- life -------------------------------------------------------------------

    def crash(self, *, keeps_cache: bool = False) -> None:
        """Lose what a power cut loses. keeps_cache: only the process died, so all written records are kept."""
        if keeps_cache:
            self._log.sync()
        else:
            self.files.crash(self.random)
        self.unsynced, self._written = [], 0

    def load(self) -> Loaded:
        """Read log and rows like a starting member. The log cuts its torn end; other damage must not occur."""
        self.token, self.unsynced, self._written = 0, [], 0
        self._open()
        image = self._log.load()
        applied, rows = self._rows.load(self._connection)
        durable = compose(image.vote, image.entries, applied)
        if 0 < image.last_index < applied.index:
            self._log.reset(image.vote)  # as in SqliteStorage: the log ends before the rows, so it cannot be continued
        before, self.view = self.view, DurableView()
        self.view.vote = image.vote
        self.view.last_index = self.view.base_index = applied.index
        self.view.entries = {index: entry for index, entry in before.entries.items() if index <= applied.index}
        for entry in durable.entries:
            self.view.take(entry)
        return Loaded(durable, rows)


class Memory(Disk):
    """The disk of a memory-only member. It loses everything in a crash."""

    def append(self, records: list[Record], token: int) -> None:
        for record in records:
            self.view.take(record)

    def forget_log(self, index: int) -> None:
        """Do nothing: there is no log file."""

    def take(self, committed: Committed) -> None:
        """Do nothing: there are no rows, because the node keeps all contents in memory."""

    def crash(self, *, keeps_cache: bool = False) -> None:
        self.view = DurableView()

    def load(self) -> Loaded:
        return Loaded(Durable(Vote(0, None), []), iter(()))

    def copy(self, index: int) -> Copy | None:
        return None

    def install(self, copy: Copy, vote: Vote) -> Loaded:
        if vote.term < copy.base.term:
            vote = Vote(copy.base.term, None)
        self.view = DurableView()
        self.view.vote, self.view.last_index, self.view.base_index = vote, copy.base.index, copy.base.index
        return Loaded(Durable(vote, [], copy.base, copy.base.index), _everything(copy))


def copy_of_memory(state: State, base: Base) -> Copy:
    """Return a snapshot of a state in memory. All of it must be committed."""
    connection = _database()
    rows = Rows()
    rows.take_part(Committed(base.index, base.term, base.time_ms, [], base.voters))
    for mutations in dump(state):
        rows.take_part(Committed(base.index, base.term, base.time_ms, mutations))
        flush(connection, rows)
    flush(connection, rows)
    data = connection.serialize()
    connection.close()
    return Copy(base, data)


def in_a_fork(make: Callable[[], Copy]) -> Copy:
    """Return the result of ``make``, called in a fork of this process. In the fork it may roll back a node."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(msgspec.msgpack.encode(make()))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        encoded = pipe.read()
    os.waitpid(child, 0)
    return msgspec.msgpack.decode(encoded, type=Copy)


def _database(data: bytes = b"") -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    if data:
        connection.deserialize(data)
    schema.prepare(connection)
    return connection


def _everything(copy: Copy) -> Iterator[Mutation]:
    """Yield the mutations for the rows of a snapshot, then each message again with its content."""
    connection, rows = _database(copy.data), Rows()
    _, mutations = rows.load(connection)
    yield from mutations
    for messages in rows.read_contents(connection):
        yield from messages
    connection.close()
