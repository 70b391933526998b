"""A member's simulated disk: the real log and the real rows on files that are synced late and torn by a crash.

The same contract as a storage: records are appended under a token, and the
token counts when a sync that began after the append is over. A crash keeps what
was synced and some of the rest. The rows follow in SQLite's memory, a
transaction at a time; what is under way in a crash never happened.

A member that lives in memory has a ``Memory`` in its place: all is durable when
it is made, and gone with the process.
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
from elasticq.storage.rows.restore import read_base
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
    """A snapshot: the bytes of a database of rows, and the place in the log that they stand for."""

    base: Base
    data: bytes


class DurableView:
    """What the synced records say, updated record by record, as the judges ask for it at each step."""

    def __init__(self) -> None:
        self.vote = Vote(0, None)
        self.entries: dict[int, Entry] = {}
        self.last_index = 0
        self.base_index = 0  # the rows hold what is committed up to here, whatever the log has

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
    """The log, the rows, and how long they take.

    unsynced: records with their tokens; the first of them may be written already.
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
        self.token = 0  # of the newest append
        self.is_slow = False

    def _open(self) -> None:
        self._log = SegmentLog(self.files, segment_bytes=SEGMENT_BYTES)
        self._rows = Rows()

    # --- log --------------------------------------------------------------------

    def append(self, records: list[Record], token: int) -> None:
        self.unsynced += [(record, token) for record in records]
        self.token = token

    def sync_us(self) -> int:
        """Return how long a sync takes: 200 us to 30 ms, most about 1 ms; rarely a stall of 100 ms."""
        random = self.random.random()
        if random < SYNC_STALL_SHARE:
            return SYNC_STALL_US
        duration_us = min(SYNC_MAX_US, SYNC_MIN_US + int(self.random.expovariate(1 / SYNC_USUAL_US)))
        return duration_us * SLOW_DISK_FACTOR if self.is_slow else duration_us

    def write(self, count: int) -> None:
        """Write the first ``count`` unsynced records to the file; they are not durable yet."""
        self._log.append([record for record, _ in self.unsynced[self._written : count]])
        self._written = max(self._written, count)

    def sync(self, count: int) -> None:
        """Make the first ``count`` unsynced records durable: those that were written when the sync began."""
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
        """Return how long a transaction of the rows takes."""
        return self.rows_random.randint(SYNC_MIN_US, SYNC_MAX_US)

    def begin_rows(self) -> Batch | None:
        return self._rows.begin()

    def store_rows(self, batch: Batch) -> int:
        """Store a batch as one transaction; return the index up to which the rows hold everything."""
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
        """Return the contents of these messages and of others in the same pages."""
        found = []
        for sql, parameters in self._rows.fetch(queue_id, sequences):
            found += self._connection.execute(sql, parameters).fetchall()
        return self._rows.decode(found)

    # --- snapshots ----------------------------------------------------------------

    def copy(self, index: int) -> Copy | None:
        """Return a snapshot of the rows; None if they do not reach ``index``."""
        base = read_base(self._connection)
        return Copy(base, self._connection.serialize()) if base.index >= index else None

    def install(self, copy: Copy, vote: Vote) -> Loaded:
        """Put the copy in the place of log and rows. What was appended is synced first, so that the vote counts."""
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
        """Lose what a power cut loses; with ``keeps_cache`` only the process died, and what it had written stays."""
        if keeps_cache:
            self._log.sync()
        else:
            self.files.crash(self.random)
        self.unsynced, self._written = [], 0

    def load(self) -> Loaded:
        """Read log and rows as a starting member does. The log's torn tail is cut; other damage must not happen."""
        self.token, self.unsynced, self._written = 0, [], 0
        self._open()
        image = self._log.load()
        applied, rows = self._rows.load(self._connection)
        durable = compose(image.vote, image.entries, applied)
        if 0 < image.last_index < applied.index:
            self._log.reset(image.vote)  # as SqliteStorage does: it cannot be continued where it ends
        before, self.view = self.view, DurableView()
        self.view.vote = image.vote
        self.view.last_index = self.view.base_index = applied.index
        self.view.entries = {index: entry for index, entry in before.entries.items() if index <= applied.index}
        for entry in durable.entries:
            self.view.take(entry)
        return Loaded(durable, rows)


class Memory(Disk):
    """The disk of a member that lives in memory: it keeps nothing."""

    def append(self, records: list[Record], token: int) -> None:
        for record in records:
            self.view.take(record)

    def forget_log(self, index: int) -> None:
        """There is nothing to free."""

    def take(self, committed: Committed) -> None:
        """There are no rows: the node keeps all contents itself."""

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
    """Return a snapshot of what a member has in memory; all of it must be committed."""
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
    """Return what ``make`` makes in a fork of this process, where a node may take back what is not committed."""
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
        told = pipe.read()
    os.waitpid(child, 0)
    return msgspec.msgpack.decode(told, type=Copy)


def _database(data: bytes = b"") -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    if data:
        connection.deserialize(data)
    schema.prepare(connection)
    return connection


def _everything(copy: Copy) -> Iterator[Mutation]:
    """Yield the rows of a snapshot, then every message once more with its content."""
    connection, rows = _database(copy.data), Rows()
    _, mutations = rows.load(connection)
    yield from mutations
    for messages in rows.read_contents(connection):
        yield from messages
    connection.close()
