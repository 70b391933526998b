"""The transfer of snapshots between members: each over its own connection, resumable, and verified by a digest.

    fetcher: PULL(id, offset, index) ──> source
             <── IDLE ... while the snapshot is made, HEAD(id, index, size, offset),
                 CHUNK ..., IDLE ..., END(digest)

The name of the partial file contains the snapshot's id. So a fetch can resume after a broken connection or a restart of
the fetcher, while the source still has that snapshot. The source keeps a snapshot for KEPT_S after its last reader.
Threads read, seal, hash and write the files.
"""

import asyncio
import os
import re
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import blake2b
from logging import getLogger
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from elasticq.node.outputs import Wanted
from elasticq.peers.connection import Connection
from elasticq.peers.errors import BadMessage, TransferBroken, UnexpectedKind
from elasticq.peers.frames import CHUNK, CHUNK_BYTES_MAX, END, HEAD, IDLE, PULL, REFUSED
from elasticq.peers.messages import UNSERVED, End, Head, Pull, Refused, decode, encode

READERS_MAX = 4
KEPT_S = 60.0
SILENT_S = 10.0  # the timeout for the other side's next frame
STUCK_S = 30.0  # the source gives up if the fetcher reads nothing for this long
ALIVE_S = 1.0  # the interval of IDLE frames during long work
QUEUED_CHUNKS_MAX = 4
SOURCE_TRIES = 3  # attempts at the source that offered the snapshot, before other members are tried
PAUSE_MIN_S = 0.05
PAUSE_MAX_S = 1.0
_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_log = getLogger("elasticq.peers")
_Value = TypeVar("_Value")


class Snapshot(Protocol):
    """An open snapshot. Its file does not change until it is released."""

    @property
    def path(self) -> Path: ...
    @property
    def id(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...


class Snapshots(Protocol):
    """The source of snapshots for other members. ``open`` may take minutes, and may raise any exception."""

    async def open(self, index: int) -> Snapshot:
        """Return a snapshot at ``index`` or above. Its id matches [A-Za-z0-9][A-Za-z0-9_.-]{0,99} and is unique."""

    def release(self, snapshot: Snapshot) -> None:
        """Release a snapshot. Called once for each ``open``."""


class TokenBucket:
    """A rate limit for bytes that all transfers share. A burst of 0.1 s worth of bytes is allowed. 0: no limit."""

    def __init__(self, rate_bytes_per_s: int) -> None:
        self._rate = rate_bytes_per_s
        self._full_at_s = 0.0

    def take(self, size_bytes: int, now_s: float) -> float:
        """Return how many seconds the caller must wait before it sends these bytes."""
        if not self._rate:
            return 0.0
        start_s = max(self._full_at_s, now_s - 0.1)
        self._full_at_s = start_s + size_bytes / self._rate
        return max(0.0, start_s - now_s)

    @property
    def chunk_bytes(self) -> int:
        """Return the size of a chunk in bytes. At a low rate it is small, so chunks are sent several times a second."""
        return min(CHUNK_BYTES_MAX, max(16_384, self._rate // 8)) if self._rate else CHUNK_BYTES_MAX


class Held:
    """An open snapshot with the number of its readers and its digest."""

    def __init__(self, snapshot: Snapshot, digest: asyncio.Future[bytes]) -> None:
        self.snapshot = snapshot
        self.digest = digest
        self.readers = 0
        self.timer: asyncio.TimerHandle | None = None


class TransferServer:
    """The server of snapshots for members that ask, at most READERS_MAX at the same time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, snapshots: Snapshots, rate_bytes_per_s: int) -> None:
        self._loop = loop
        self._snapshots = snapshots
        self._bucket = TokenBucket(rate_bytes_per_s)
        self._held: dict[str, Held] = {}
        self._holding: set[asyncio.Task[Held]] = set()
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.bytes_served = 0

    def session(self, connection: Connection) -> "Serving":
        return Serving(self, connection, self._loop)

    def start(self, connection: Connection, pull: Pull) -> asyncio.Task[None] | None:
        """Return the task that serves a connection. If READERS_MAX are being served, refuse it and return None."""
        if len(self._tasks) >= READERS_MAX:
            connection.refuse(UNSERVED, f"{READERS_MAX} snapshots are being served already")
            return None
        task = self._loop.create_task(self._serve(connection, pull))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        tasks = [*self._tasks, *self._holding]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for held in list(self._held.values()):
            self._release(held)

    async def _serve(self, connection: Connection, pull: Pull) -> None:
        """Send one snapshot. If its file cannot be made or read, end only this connection."""
        holding = self._loop.create_task(self._hold(pull))
        self._holding.add(holding)
        holding.add_done_callback(self._holding.discard)
        try:
            held = await _with_keep_alives(connection, holding)
        except asyncio.CancelledError:
            holding.add_done_callback(self._abandoned)  # the snapshot is kept for the next attempt
            raise
        except Exception as error:  # this package does not know the storage's errors
            _log.warning("snapshot_not_served to=%s: %s", connection.place, error)
            connection.refuse(UNSERVED, f"no snapshot: {error}")
            return
        try:
            await self._stream(connection, held, pull)
        except OSError as error:  # also TimeoutError: the other side stopped reading
            _log.warning("snapshot_not_served to=%s: %s", connection.place, error)
            connection.refuse(UNSERVED, f"the snapshot cannot be read: {error}")
        finally:
            self._reader_left(held)

    async def _hold(self, pull: Pull) -> Held:
        async with self._opening:  # so concurrent joiners share one snapshot
            held = self._held.get(pull.id) or self._newest(pull.index)
            if held is None or held.snapshot.index < pull.index:
                snapshot = await self._snapshots.open(pull.index)
                held = self._held.get(snapshot.id)
                if held is None:
                    digest = self._loop.run_in_executor(None, file_digest, snapshot.path)
                    held = self._held[snapshot.id] = Held(snapshot, digest)
                else:
                    self._snapshots.release(snapshot)
            held.readers += 1
            if held.timer is not None:
                held.timer.cancel()
            return held

    def _newest(self, index: int) -> Held | None:
        fitting = [held for held in self._held.values() if held.snapshot.index >= index]
        return max(fitting, key=lambda held: held.snapshot.index, default=None)

    def _abandoned(self, holding: "asyncio.Task[Held]") -> None:
        if not holding.cancelled() and holding.exception() is None:
            self._reader_left(holding.result())

    def _reader_left(self, held: Held) -> None:
        held.readers -= 1
        if not held.readers:
            held.timer = self._loop.call_later(KEPT_S, self._release, held)

    def _release(self, held: Held) -> None:
        if held.timer is not None:
            held.timer.cancel()
        if self._held.pop(held.snapshot.id, None) is not None:
            self._snapshots.release(held.snapshot)

    async def _stream(self, connection: Connection, held: Held, pull: Pull) -> None:
        snapshot = held.snapshot
        offset = pull.offset if pull.id == snapshot.id and pull.offset <= snapshot.size_bytes else 0
        connection.send(HEAD, encode(Head(snapshot.id, snapshot.index, snapshot.size_bytes, offset)))
        run = partial(self._loop.run_in_executor, None)
        with await run(open, snapshot.path, "rb") as file:
            while offset < snapshot.size_bytes and not connection.is_closed:
                size_bytes = min(self._bucket.chunk_bytes, snapshot.size_bytes - offset)
                await asyncio.sleep(self._bucket.take(size_bytes, self._loop.time()))
                connection.send_sealed(await run(_sealed_chunk, connection, file, offset, size_bytes))
                offset += size_bytes
                self.bytes_served += size_bytes
                await asyncio.wait_for(connection.drained(), STUCK_S)
        digest = await _with_keep_alives(connection, held.digest)
        connection.send(END, encode(End(digest)))
        is_whole = not connection.is_closed
        connection.close()
        if is_whole:
            to = connection.theirs.peer.name if connection.theirs is not None else connection.place
            text = "snapshot_sent: The snapshot at index %d was sent to %s, %d bytes in all."
            _log.info(text, snapshot.index, to, snapshot.size_bytes)


def _sealed_chunk(connection: Connection, file: BinaryIO, offset: int, size_bytes: int) -> list[bytes]:
    file.seek(offset)
    chunk = file.read(size_bytes)
    if len(chunk) != size_bytes:
        raise OSError(f"{file.name} ends at {offset + len(chunk)}")
    pieces: list[bytes] = []
    connection.writer.add(pieces, CHUNK, chunk)
    return pieces


async def _with_keep_alives(connection: Connection, work: "asyncio.Future[_Value]") -> _Value:
    """Return the result of ``work``. Until then, send the other side an IDLE frame every ALIVE_S."""
    while not work.done():
        await asyncio.wait({work}, timeout=ALIVE_S)
        connection.send(IDLE, b"")
    return work.result()


class Serving:
    """The session on the source's side. It accepts one PULL."""

    def __init__(self, server: TransferServer, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._connection = connection
        self._task: asyncio.Task[None] | None = None
        self._timer = loop.call_later(SILENT_S, connection.abort)  # the deadline of its PULL

    def take(self, kind: int, body: bytes) -> None:
        if kind == IDLE:
            return
        if kind != PULL or self._task is not None:
            raise UnexpectedKind(f"a frame of kind {kind} arrived instead of a single PULL")
        pull = decode(body, Pull)
        if pull.offset < 0 or pull.index < 0:
            raise BadMessage("Pull: negative offset or index")
        self._timer.cancel()
        self._task = self._server.start(self._connection, pull)

    def ended(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()


class Fetching:
    """The session on the fetcher's side: a short queue of frames. While it is full, the connection reads nothing."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._frames: deque[tuple[int, bytes]] = deque()
        self._changed = asyncio.Event()

    def take(self, kind: int, body: bytes) -> None:
        self._frames.append((kind, body))
        self._changed.set()
        if len(self._frames) >= QUEUED_CHUNKS_MAX:
            self._connection.hold()

    def ended(self) -> None:
        self._changed.set()

    async def next(self) -> tuple[int, bytes]:
        """Return the next frame that is not IDLE.

        Raise TransferBroken if the source refuses, closes the connection, or sends nothing for SILENT_S.
        """
        while True:
            while self._frames:
                kind, body = self._frames.popleft()
                if len(self._frames) < QUEUED_CHUNKS_MAX // 2:
                    self._connection.resume()
                if kind == REFUSED:
                    raise TransferBroken(f"the source refused: {decode(body, Refused).reason}")
                if kind != IDLE:
                    return kind, body
            if self._connection.is_closed:
                raise TransferBroken("the connection ended")
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), SILENT_S)
            except TimeoutError:
                raise TransferBroken(f"the source was silent for {SILENT_S:g} s") from None


class Fetch:
    """A fetch of one snapshot into the file ``into``.

    connect: returns an established transfer connection to a member, or raises TransferBroken.
    others: returns the ids of members that may have a snapshot at the moment.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        wanted: Wanted,
        into: Path,
        connect: Callable[[str], Awaitable[Connection]],
        others: Callable[[], list[str]],
    ) -> None:
        self._loop = loop
        self._wanted = wanted
        self._into = into
        self._connect = connect
        self._others = others

    async def run(self) -> None:
        """Fetch until ``into`` is whole, verified and synced. Retry forever. Raise OSError if the own disk fails."""
        pause_s = PAUSE_MIN_S
        while True:
            sources = [self._wanted.source] * SOURCE_TRIES
            sources += [other for other in self._others() if other != self._wanted.source]
            for source in sources:
                if await self._try(source):
                    return
                await asyncio.sleep(pause_s)
                pause_s = min(PAUSE_MAX_S, pause_s * 2)

    async def _try(self, source: str) -> bool:
        try:
            connection = await self._connect(source)
            try:
                await self._pull(connection)
            finally:
                connection.abort()
        except (TransferBroken, BadMessage) as error:
            _log.warning("snapshot_fetch_failed from=%s: %s", source, error)
            return False
        return True

    async def _pull(self, connection: Connection) -> None:
        session = connection.session
        assert isinstance(session, Fetching)
        old_id, offset = self._partial()
        connection.send(PULL, encode(Pull(old_id, offset, self._wanted.index)))
        kind, body = await session.next()
        if kind != HEAD:
            raise TransferBroken(f"a frame of kind {kind} arrived instead of HEAD")
        head = decode(body, Head)
        self._check(head, old_id, offset)
        part = self._part(head.id)
        if head.id != old_id or head.offset == 0:
            self._drop_parts()
        digest = await self._receive(session, head, part)
        await self._finish(part, digest)

    def _check(self, head: Head, old_id: str, offset: int) -> None:
        if not _SAFE_ID.fullmatch(head.id) or head.size_bytes < 0:
            raise TransferBroken("the snapshot's id or size in HEAD is invalid")
        if head.index < self._wanted.index:
            raise TransferBroken(f"its snapshot has index {head.index}, but {self._wanted.index} is needed")
        if head.offset != (offset if head.id == old_id else 0) and head.offset != 0:
            raise TransferBroken(f"it starts at byte {head.offset}, but the partial file has {offset} bytes")

    async def _receive(self, session: Fetching, head: Head, part: Path) -> bytes:
        run = partial(self._loop.run_in_executor, None)
        offset = head.offset
        with await run(_open_part, part) as file:
            while True:
                kind, body = await session.next()
                if kind == END:
                    break
                offset += len(body)
                if kind != CHUNK or offset > head.size_bytes:
                    raise TransferBroken(f"a frame of kind {kind} arrived, or more bytes than HEAD announced")
                await run(_write, file, body)
            if offset != head.size_bytes:
                raise TransferBroken(f"it ended at {offset} of {head.size_bytes} bytes")
            await run(os.fsync, file.fileno())
        return decode(body, End).digest

    async def _finish(self, part: Path, digest: bytes) -> None:
        if await self._loop.run_in_executor(None, file_digest, part) != digest:
            part.unlink(missing_ok=True)
            raise TransferBroken("the received file has another digest and was deleted")
        await self._loop.run_in_executor(None, _rename, part, self._into)

    def _part(self, snapshot_id: str) -> Path:
        return self._into.with_name(f"{self._into.name}.{snapshot_id}.part")

    def _partial(self) -> tuple[str, int]:
        """Return the snapshot id and the length of a partial file of an earlier attempt, ("", 0) if there is none."""
        for part in parts_of(self._into):
            snapshot_id = part.name[len(self._into.name) + 1 : -len(".part")]
            if _SAFE_ID.fullmatch(snapshot_id):
                return snapshot_id, part.stat().st_size
        return "", 0

    def _drop_parts(self) -> None:
        for part in parts_of(self._into):
            part.unlink()


def parts_of(into: Path) -> list[Path]:
    """Return the partial files of earlier attempts to fetch ``into``, also those of an earlier process."""
    before, after = f"{into.name}.", ".part"
    return [path for path in into.parent.iterdir() if path.name.startswith(before) and path.name.endswith(after)]


def file_digest(path: Path) -> bytes:
    digest = blake2b(digest_size=32)
    with open(path, "rb") as file:
        while piece := file.read(CHUNK_BYTES_MAX):
            digest.update(piece)
    return digest.digest()


def _open_part(part: Path) -> BinaryIO:
    """Open a partial file to append to. Only its owner may read it, because it contains messages."""
    part.touch(0o600)
    return part.open("ab")


def _write(file: BinaryIO, body: bytes) -> None:
    file.write(body)
    file.flush()


def _rename(part: Path, into: Path) -> None:
    os.replace(part, into)
    folder = os.open(into.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
