"""The life of the process: build, listen, serve, stop.

Stopping on SIGTERM or SIGINT: no new connections, long polls are answered
empty at once, replies under way go out, idle connections close; after
``stop_s`` the rest is cut. A node that fails its invariants ends the process
with status 1 without answering anybody.
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
from typing import Final

from elasticq.http.bounds import Bounds
from elasticq.http.protocol import SqsProtocol
from elasticq.http.site import Site
from elasticq.node.node import Node
from elasticq.node.settings import NodeSettings
from elasticq.runtime.runtime import Runtime
from elasticq.server.settings import Settings
from elasticq.storage.memory import MemoryStorage

EXIT_STOPPED: Final = 0
EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_PORT_TAKEN: Final = 3

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
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_live(settings, listener))


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


async def _live(settings: Settings, listener: socket.socket) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()
    runtime = _runtime(settings, loop, ended)
    runtime.start()
    site = _site(settings, runtime, loop)
    server = await loop.create_server(lambda: SqsProtocol(site), sock=listener, backlog=BACKLOG)
    site.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end, ended, EXIT_STOPPED)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    _announce(settings, listener)
    # aiohttp is most of a start's CPU: its import begins when the first requests can be answered already.
    loop.run_in_executor(None, import_module, "elasticq.http.slow")
    status = await ended
    server.close()
    if not runtime.stopped:
        await site.stop(settings.http.stop_s)
        runtime.close()
    return status


def _runtime(settings: Settings, loop: asyncio.AbstractEventLoop, ended: "asyncio.Future[int]") -> Runtime:
    storage = MemoryStorage()
    member_id = f"{settings.node.id}-{os.urandom(8).hex()}"  # a start without memory is a new member
    node_settings = NodeSettings(
        member_id=member_id,
        voters=(member_id,),
        volatile=storage.volatile,
        region=settings.node.region,
        default_account=settings.node.account,
        sixty_second_rules=settings.node.sixty_second_rules,
    )
    node = Node(node_settings, storage.load(), os.urandom(32))

    def fail(failure: BaseException) -> None:
        _log.critical("node_failed", exc_info=failure)
        _end(ended, EXIT_FAILURE)

    return Runtime(node, storage, loop, fail)


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
        public_url=http.public_url,
        bounds=bounds,
    )


def _end(ended: "asyncio.Future[int]", status: int) -> None:
    if not ended.done():
        ended.set_result(status)


def _announce(settings: Settings, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    host = f"[{settings.http.host}]" if ":" in settings.http.host else settings.http.host
    reachable = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)
    print(f"elasticq listening on http://{host}:{port}")
    print(f"export AWS_ENDPOINT_URL_SQS=http://{reachable}:{port}", flush=True)
