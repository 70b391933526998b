"""The life of the process: build, listen, serve, stop.

Stopping on SIGTERM or SIGINT: no new connections, long polls are answered
empty at once, replies under way go out, idle connections close; after
``stop_s`` the rest is cut; then what is pending goes to the disk. A node that fails its
invariants, or a disk that fails, ends the process with status 1 without
answering anybody.
"""

import asyncio
import errno
import gc
import logging
import os
import resource
import signal
import socket
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

from elasticq.http.bounds import Bounds
from elasticq.http.protocol import SqsProtocol
from elasticq.http.site import Site
from elasticq.node.node import Node
from elasticq.node.settings import NodeSettings
from elasticq.runtime.runtime import Runtime
from elasticq.server.settings import Settings
from elasticq.storage.directory import DataDirectory
from elasticq.storage.errors import DataError, DirectoryInUse, FormatTooNew
from elasticq.storage.interface import Storage
from elasticq.storage.memory import MemoryStorage
from elasticq.storage.sqlite import SqliteStorage

EXIT_STOPPED: Final = 0
EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_PORT_TAKEN: Final = 3
EXIT_DATA_IN_USE: Final = 4

BACKLOG: Final = 1_024
GC_THRESHOLDS: Final = (50_000, 20, 50)
"""Requests make almost no garbage that counting does not free; the default of 700 cost a third of a send."""

_log = logging.getLogger(__name__)


def serve(settings: Settings) -> int:
    """Run until a signal; the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    try:
        listener = _listen(settings)
    except OSError as error:
        return _not_listening(settings, error)
    _raise_file_limit()
    try:
        directory = _directory(settings)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_live(settings, directory, listener))
    except DataError as error:
        print(f"elasticq: {error}", file=sys.stderr)
        return EXIT_DATA_IN_USE if isinstance(error, (DirectoryInUse, FormatTooNew)) else EXIT_FAILURE
    finally:
        listener.close()


def _directory(settings: Settings) -> DataDirectory | None:
    """Locked before a client can be answered; None: nothing is kept."""
    if settings.storage.memory:
        return None
    return DataDirectory(Path(settings.storage.data_dir), settings.node.id)


def _listen(settings: Settings) -> socket.socket:
    """Before anything is built: a taken port is found at once, and clients wait in the backlog."""
    family = socket.AF_INET6 if ":" in settings.http.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.http.host, settings.http.port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def _not_listening(settings: Settings, error: OSError) -> int:
    address = f"{settings.http.host}:{settings.http.port}"
    if error.errno == errno.EADDRINUSE:
        print(f"elasticq: {address} is taken by another process; choose another with --port", file=sys.stderr)
        return EXIT_PORT_TAKEN
    print(f"elasticq: cannot listen on {address}: {error.strerror or error}", file=sys.stderr)
    return EXIT_FAILURE


def _raise_file_limit() -> None:
    """As many connections as the system allows; distributions still start processes with 1,024 files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


async def _live(settings: Settings, directory: DataDirectory | None, listener: socket.socket) -> int:
    loop = asyncio.get_running_loop()
    member = _Member(settings, directory, loop)
    try:
        return await _serve(settings, member, listener)
    finally:
        await member.close()


async def _serve(settings: Settings, member: "_Member", listener: socket.socket) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end, member.ended, EXIT_STOPPED)
    runtime = member.start()
    if not await member.can_serve():
        runtime.close()
        return member.ended.result()
    site = _site(settings, runtime, loop)
    server = await loop.create_server(lambda: SqsProtocol(site), sock=listener, backlog=BACKLOG)
    site.start()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    _announce(settings, listener)
    # aiohttp is most of a start's CPU: its import begins when the first requests can be answered already.
    loop.run_in_executor(None, import_module, "elasticq.http.slow")
    status = await member.ended
    server.close()
    if not runtime.stopped:
        await site.stop(settings.http.stop_s)
        runtime.close()
    return status


class _Member:
    """Node, storage and runtime of this process, and how it ends."""

    def __init__(self, settings: Settings, directory: DataDirectory | None, loop: asyncio.AbstractEventLoop) -> None:
        self.ended: asyncio.Future[int] = loop.create_future()
        self._settings = settings
        self._directory = directory
        self._loop = loop
        self._storage = self._open()
        self._runtime: Runtime | None = None

    def start(self) -> Runtime:
        """Read what is kept and begin; a cluster of one is master at the latest when its first record is durable."""
        settings, storage = self._settings, self._storage
        # A start without a directory is a new member.
        kept = self._directory
        member_id = kept.member_id if kept is not None else f"{settings.node.id}-{os.urandom(8).hex()}"
        node_settings = NodeSettings(
            member_id=member_id,
            voters=(member_id,),
            volatile=storage.volatile,
            region=settings.node.region,
            default_account=settings.node.account,
            sixty_second_rules=settings.node.sixty_second_rules,
            memory_bytes=settings.storage.memory_mb * 1_048_576,
        )
        loaded = storage.load()
        node = Node(node_settings, loaded.durable, os.urandom(32), loaded.rows)
        self._runtime = Runtime(node, storage, self._loop, self._node_failed)
        self._runtime.start()
        return self._runtime

    async def can_serve(self) -> bool:
        """True once commands can be executed, False if the end comes before that."""
        assert self._runtime is not None
        ready = self._loop.create_future()
        self._runtime.when_ready(lambda: ready.set_result(None))
        await asyncio.wait((ready, self.ended), return_when=asyncio.FIRST_COMPLETED)
        return not self.ended.done()

    async def close(self) -> None:
        """Release what is open, also after a failure."""
        if isinstance(self._storage, SqliteStorage):
            await self._storage.aclose()

    def _open(self) -> Storage:
        if self._directory is None:
            return MemoryStorage()
        return SqliteStorage(
            self._directory,
            self._loop,
            durability=self._settings.storage.durability,
            reserve_bytes=self._settings.storage.reserve_mb * 1_048_576,
            on_failure=self._storage_failed,
            on_full=self._set_full,
        )

    def _set_full(self, reason: str | None) -> None:
        _log.warning("disk_full" if reason else "disk_has_space_again")
        if self._runtime is not None:
            self._runtime.set_full(reason)

    def _storage_failed(self, failure: BaseException) -> None:
        _log.critical("storage_failed", exc_info=failure)
        if self._runtime is not None:
            self._runtime.fail(failure)
        _end(self.ended, EXIT_FAILURE)

    def _node_failed(self, failure: BaseException) -> None:
        _log.critical("node_failed", exc_info=failure)
        _end(self.ended, EXIT_FAILURE)


def _site(settings: Settings, runtime: Runtime, loop: asyncio.AbstractEventLoop) -> Site:
    http = settings.http
    bounds = Bounds(
        connections_max=http.connections_max,
        header_ms=http.header_s * 1_000,
        body_ms=http.body_s * 1_000,
        body_bytes_per_s=http.body_bytes_per_s,
        idle_ms=http.idle_s * 1_000,
    )
    return Site(
        runtime,
        loop,
        os.urandom(16),
        node_name=settings.node.id,
        default_account=settings.node.account,
        health=_health(settings),
        public_url=http.public_url,
        bounds=bounds,
    )


def _health(settings: Settings) -> str:
    """What GET /health says; durability is named where it is not the full one."""
    storage = settings.storage
    return "OK" if storage.memory or storage.durability == "fsync" else f"OK durability={storage.durability}"


def _end(ended: "asyncio.Future[int]", status: int) -> None:
    if not ended.done():
        ended.set_result(status)


def _announce(settings: Settings, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    host = f"[{settings.http.host}]" if ":" in settings.http.host else settings.http.host
    reachable = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)
    print(f"elasticq listening on http://{host}:{port}")
    print(f"export AWS_ENDPOINT_URL_SQS=http://{reachable}:{port}", flush=True)
    storage = settings.storage
    if storage.memory:
        print("messages live in memory only: a restart forgets them", flush=True)
    elif storage.durability != "fsync":
        print(f"durability={storage.durability}: a reply does not wait for the disk", flush=True)
