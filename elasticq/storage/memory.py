"""The storage of ``--memory``: it keeps nothing, so each start is a new member.

It makes snapshots with a fork: the child has a copy of the memory at that moment and writes it to a file, while the
parent continues. The child closes the parent's files, so connections end when the parent closes them. The child ends
in here and never returns to its caller.
"""

import asyncio
import gc
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NoReturn

import msgspec

from elasticq.engine.state import State
from elasticq.engine.stored.mutations import Mutation
from elasticq.engine.views.dump import dump
from elasticq.node.outputs import Committed, Fetch
from elasticq.replication.records import Base, Durable, Record, Vote
from elasticq.storage.interface import Loaded, OnFetched, OnStored, OnSynced, Storage
from elasticq.storage.rows.rows import Rows
from elasticq.storage.snapshot import Snapshot, SnapshotRefused, Snapshots, check, fill

SnapshotSource = Callable[[], tuple[State, Base]]
"""The source of the committed state and its base. The forked child calls it, so it may change the state in place."""

_FIRST_FILE: Final = 3  # after those of the standard streams
_FILES_MAX: Final = 1 << 20


class MemoryStorage(Storage):
    """The storage that keeps nothing.

    snapshot_source: needed to make snapshots. vote_source: returns the member's vote, for an install; this storage
    does not know it, as it does not keep records.
    """

    volatile = True

    def __init__(
        self, snapshot_source: SnapshotSource | None = None, vote_source: Callable[[], Vote] | None = None
    ) -> None:
        self._snapshot_source = snapshot_source
        self._vote_source = vote_source
        self._directory: TemporaryDirectory[str] | None = None
        self._snapshots: Snapshots | None = None
        self._children: set[int] = set()

    def load(self) -> Loaded:
        return Loaded(Durable(Vote(0, None), []), iter(()))

    def append(self, records: list[Record], token: int, on_synced: OnSynced) -> None:
        """Do nothing: the node treats its records as durable from the start."""

    def rows(self, committed: list[Committed], on_stored: OnStored) -> None:
        """Do nothing: the node keeps everything in memory."""

    def fetch(self, fetch: Fetch, on_fetched: OnFetched) -> None:
        raise AssertionError("nothing is ever stored, so nothing can be fetched")

    def forget_log(self, index: int) -> None:
        """Do nothing: there is nothing to free."""

    async def snapshot(self, index: int) -> Snapshot:
        if self._snapshot_source is None:
            raise SnapshotRefused("there is no state to be written down")
        if self._snapshots is None:
            self._directory = TemporaryDirectory(prefix="elasticq-", ignore_cleanup_errors=True)
            self._snapshots = Snapshots(Path(self._directory.name), self._write)
        return await self._snapshots.open(index, index)  # the newest index is unknown: only the child may compute it

    def release(self, snapshot: Snapshot) -> None:
        assert self._snapshots is not None, "a snapshot was opened before"
        self._snapshots.release(snapshot)

    async def install(self, path: Path, is_wanted: Callable[[], bool]) -> Loaded:
        """Return the state of the snapshot with all contents, as memory is their only place."""
        assert self._vote_source is not None, "a member that installs has a vote"
        applied = await asyncio.to_thread(check, path)
        if not is_wanted():
            raise SnapshotRefused("the log has caught up: the snapshot is not needed any more")
        vote = self._vote_source()  # nothing runs between this and the start of the new node
        if vote.term < applied.term:
            vote = Vote(applied.term, None)
        return Loaded(Durable(vote, [], applied, applied.index), _with_contents(path))

    def close(self) -> None:
        for child in self._children:
            os.kill(child, signal.SIGKILL)
        if self._directory is not None:
            self._directory.cleanup()

    async def _write(self, file: Path, index: int) -> Base:
        reader, child = self._fork(file)
        self._children.add(child)
        try:
            told = await _read_all(reader)
        finally:
            os.close(reader)
            os.kill(child, signal.SIGKILL)  # it has ended, unless the caller was cancelled
            self._children.remove(child)
            os.waitpid(child, 0)
        try:
            base = msgspec.msgpack.decode(told, type=Base)
        except msgspec.MsgspecError:
            raise SnapshotRefused(f"the snapshot was not written: {told.decode(errors='replace')}") from None
        if base.index < index:
            raise SnapshotRefused(f"the state is at index {base.index}, not at {index} yet")
        return base

    def _fork(self, file: Path) -> tuple[int, int]:
        """Fork; return the read end of the pipe with the child's result, and the child's process id."""
        assert self._snapshot_source is not None, "asked before"
        sys.stdout.flush()
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            _live_and_end(self._snapshot_source, file, writer)
        os.close(writer)
        return reader, child


def _live_and_end(source: SnapshotSource, file: Path, writer: int) -> NoReturn:
    """Run the child: write ``file``, send its base or the error to the pipe, and end without Python's exit handlers."""
    try:
        gc.disable()  # a collection would write to, and so copy, all of memory
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.closerange(_FIRST_FILE, writer)
        os.closerange(writer + 1, min(os.sysconf("SC_OPEN_MAX"), _FILES_MAX))
        state, base = source()
        fill(file, base, dump(state))
        os.write(writer, msgspec.msgpack.encode(base))
    except BaseException as failure:
        os.write(writer, repr(failure).encode())
    finally:
        os._exit(0)


async def _read_all(descriptor: int) -> bytes:
    """Return all bytes from the pipe, up to the moment when the other side closes it."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    told = bytearray()

    def take() -> None:
        part = os.read(descriptor, 65_536)
        told.extend(part)
        if not part and not ended.done():
            loop.remove_reader(descriptor)
            ended.set_result(None)

    loop.add_reader(descriptor, take)
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
    return bytes(told)


def _with_contents(path: Path) -> Iterator[Mutation]:
    """Yield the mutations of the file, then every message again, with its content. Remove the file at the end."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)
    try:
        rows = Rows()
        _, mutations = rows.load(connection)
        yield from mutations
        for messages in rows.read_contents(connection):
            yield from messages
    finally:
        connection.close()
        path.unlink(missing_ok=True)
