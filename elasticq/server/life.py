"""The life of the process: build, listen, serve, stop.

A proxy, and a member of a cluster of several, listen from the start. A cluster of one listens when its first record
is durable.

On SIGHUP the process reads certificates, keys and secrets again (renewal.py). If it was started at a terminal, SIGHUP
means that the terminal was closed, and stops it.

On SIGTERM or SIGINT the process stops in this order:

1. A master hands over.
2. The ports accept no new connections. Long polls get an empty answer at once. Pending replies are sent, and idle
   connections are closed.
3. After ``stop_s`` all other connections are closed.
4. Pending writes go to the disk.

If the node violates its invariants or the disk fails, the process ends with status 1 and sends no more answers.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable
from importlib import import_module
from pathlib import Path
from typing import Final

from elasticq import BUILD
from elasticq.admin.port import AdminPort
from elasticq.http.admission.request_log import Observer, RequestLog
from elasticq.http.connection.bounds import Bounds
from elasticq.http.context import ServerContext
from elasticq.http.protocol import SqsProtocol
from elasticq.net.acceptor import Acceptor
from elasticq.runtime.meter import Meter
from elasticq.runtime.runtime import Runtime
from elasticq.server import collector, logs, spans
from elasticq.server.allocator import Trimmer, return_large_blocks
from elasticq.server.auth import allowed_hosts
from elasticq.server.cluster import PROXY
from elasticq.server.cluster_process import EXIT_STOPPED, ClusterProcess, end
from elasticq.server.declare import declare
from elasticq.server.events import EventKeeper
from elasticq.server.files import FILES_MAX, Shares, raise_file_limit, shares
from elasticq.server.member import Member
from elasticq.server.notify import READY, STOPPING, notify
from elasticq.server.ports import EXIT_FAILURE, is_supervised, not_listening, sqs_listener
from elasticq.server.proxy import ProxyProcess
from elasticq.server.pushes import Pushes
from elasticq.server.renewal import Part, has_terminal, renew
from elasticq.server.settings import (
    Admin,
    Http,
    Settings,
    SettingsError,
    admin_token,
    declarations,
    keys,
    tls,
    warnings,
)
from elasticq.server.view import View
from elasticq.server.watcher import Watcher
from elasticq.storage.directory import DataDirectory
from elasticq.storage.errors import DataError, DirectoryInUse, WrongFormat
from elasticq.wire.browsers import Browsers
from elasticq.wire.operations import SERVICES

EXIT_USAGE: Final = 2
EXIT_DATA_IN_USE: Final = 4

DECLARE_S: Final = 10.0
"""The longest time that a cluster of one waits for the creation of the settings' queues before it listens."""

_log = logging.getLogger(__name__)


def serve(settings: Settings) -> int:
    """Serve until a signal or a failure. Return the exit status."""
    logs.set_up(settings.log.format)
    return_large_blocks()
    if BUILD.is_unwanted:
        _log.info("this process runs as %s: a message takes up to twice the CPU time (docs/install.md)", BUILD)
    for warning in warnings(settings):
        print(f"elasticq: warning: {warning}", file=sys.stderr)
    files = shares(raise_file_limit(), settings.http.connections_max)
    try:
        listener = sqs_listener(settings.http.host, settings.http.port, files.backlog)
    except OSError as error:
        return not_listening(settings.http.host, settings.http.port, "--port", error)
    if files.http < settings.http.connections_max:
        text = "http.connections_max is %d, but the open-file limit allows only %d: raise it (ulimit -n, LimitNOFILE)"
        _log.warning(text, settings.http.connections_max, files.http)
    try:
        directory = _directory(settings)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(_live(settings, directory, listener, files))
    except SettingsError as error:
        print(f"elasticq: {error}", file=sys.stderr)
        return EXIT_USAGE
    except DataError as error:
        print(f"elasticq: {error}", file=sys.stderr)
        return EXIT_DATA_IN_USE if isinstance(error, (DirectoryInUse, WrongFormat)) else EXIT_FAILURE
    finally:
        listener.close()


def _directory(settings: Settings) -> DataDirectory | None:
    """Open and lock the data directory. Return None if this process stores nothing on disk."""
    if settings.storage.memory or settings.cluster.role == PROXY:
        return None
    return DataDirectory(Path(settings.storage.data_dir), settings.node.id)


def loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


async def _live(settings: Settings, directory: DataDirectory | None, listener: socket.socket, files: Shares) -> int:
    loop = asyncio.get_running_loop()
    http_port: int = listener.getsockname()[1]
    http_url = settings.http.public_url or url_of(settings.http, http_port)
    events = EventKeeper()
    view = View(settings, _health(settings), http_url, events)
    admin: AdminPort | None = None
    if settings.admin.port >= 0:
        try:
            admin = AdminPort(
                view,
                settings.admin.host,
                settings.admin.port,
                token=admin_token(settings),
                browsers=_browsers(settings, settings.admin.host, settings.http.public_url, settings.admin.public_url),
                tls=tls("admin", settings.admin),
                connections_max=files.admin,
            )
        except OSError as error:
            return not_listening(settings.admin.host, settings.admin.port, "--admin-port", error)
    page_url, admin_port = _page_url(settings, admin), 0 if admin is None else admin.port
    member: ClusterProcess
    if settings.cluster.role == PROXY:
        member = ProxyProcess(
            settings,
            loop,
            http=http_url,
            admin=page_url,
            http_port=http_port,
            admin_port=admin_port,
            peer_connections_max=files.peers,
        )
    else:
        member = Member(
            settings,
            directory,
            loop,
            http=http_url,
            admin=page_url,
            http_port=http_port,
            admin_port=admin_port,
            peer_connections_max=files.peers,
        )
    events.listen()
    try:
        return await _serve(settings, member, view, admin, listener, files)
    finally:
        events.stop()
        if admin is not None:
            await admin.stop()
        await member.close()


async def _serve(
    settings: Settings,
    member: ClusterProcess,
    view: View,
    admin: AdminPort | None,
    listener: socket.socket,
    files: Shares,
) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, member.ended, EXIT_STOPPED)
    early: list[int] = []  # SIGHUPs that came before all parts were open
    if has_terminal():
        loop.add_signal_handler(signal.SIGHUP, end, member.ended, EXIT_STOPPED)
    else:
        loop.add_signal_handler(signal.SIGHUP, early.append, signal.SIGHUP)
    try:
        runtime = await member.start()
    except OSError as error:
        return not_listening(settings.cluster.peer_host, settings.cluster.peer_port, "--peer-port", error)
    is_alone = settings.cluster.nodes == 1 and settings.cluster.role != PROXY
    if is_alone and not await member.can_serve():
        runtime.close()
        return member.ended.result()
    declared = declarations(settings)
    declaring = loop.create_task(declare(runtime, declared, settings.node.account, view.endpoint))
    if is_alone:
        await asyncio.wait((declaring, member.ended), timeout=DECLARE_S, return_when=asyncio.FIRST_COMPLETED)
        if declaring.done() and (failed := declaring.result()):
            print(f"elasticq: {'; '.join(failed)}", file=sys.stderr)
            runtime.close()
            return EXIT_USAGE
    observer, end_spans = spans.make(settings.otel, settings.node.id)
    context = make_context(settings, runtime, loop, observer, files, _page_url(settings, admin))
    view.open(member, context)
    pushes = None
    if settings.cluster.role != PROXY:
        assert isinstance(member, Member), "a proxy posts nothing"
        pushes = Pushes(settings, member, loop)
        context.certificate = pushes.certificate
        view.pushing = pushes
        pushes.start()
    server = await _listen(settings, context, listener, files)
    if not has_terminal():
        parts = _renewed(settings, member, context, admin, server)
        loop.add_signal_handler(signal.SIGHUP, renew, parts)
        if early:
            renew(parts)
    context.start()
    trimmer, watcher = Trimmer(loop), Watcher(view, loop)
    trimmer.start()
    watcher.start()
    collector.tame()
    _announce(settings, listener)
    if admin is not None:
        print(f"admin listening on {url_of(settings.admin, admin.port)}", flush=True)
    if member.peer_address:
        print(f"peers listening on {member.peer_address}", flush=True)
    notify(READY)
    # The import of aiohttp takes most of a start's CPU time, so it begins when the first requests can be answered.
    context.importing = imported = loop.run_in_executor(None, import_module, "elasticq.http.pages.slow")
    opening = loop.create_task(_open_admin(admin, imported))
    status = await member.ended
    if not is_supervised():  # else this may be a restart, and the supervisor notifies systemd of a stop
        notify(STOPPING)
    opening.cancel()
    declaring.cancel()
    trimmer.stop()
    watcher.stop()
    view.stopping = True
    if pushes is not None:
        await pushes.stop()
    await member.hand_over()
    server.close()
    if not runtime.stopped:
        await context.stop(settings.http.stop_s)
        runtime.close()
    await loop.run_in_executor(None, end_spans)
    return status


async def _listen(
    settings: Settings, context: ServerContext, listener: socket.socket, files: Shares
) -> Acceptor | asyncio.AbstractServer:
    """Listen on the SQS port.

    The server context counts connections after the TLS handshake, if there is one. The acceptor counts those in it.
    """
    ssl_context = tls("http", settings.http)
    if ssl_context is None:
        return await context.loop.create_server(lambda: SqsProtocol(context), sock=listener, backlog=files.backlog)
    acceptor = Acceptor(
        "http",
        context.loop,
        [listener],
        lambda: SqsProtocol(context),
        count=lambda: len(context.connections),
        connections_max=files.http + files.refused,
        tls=ssl_context,
        handshake_s=settings.http.header_s,
    )
    acceptor.start()
    return acceptor


def _renewed(
    settings: Settings,
    member: ClusterProcess,
    context: ServerContext,
    admin: AdminPort | None,
    server: Acceptor | asyncio.AbstractServer,
) -> list[Part]:
    """Return the parts that SIGHUP renews: those whose settings name a file."""
    http, cluster, parts = settings.http, settings.cluster, []
    if isinstance(server, Acceptor):
        parts.append(Part("http.tls_cert", lambda: server.renew(tls("http", http))))
    if admin is not None and settings.admin.tls_cert:
        parts.append(Part("admin.tls_cert", lambda: admin.renew_tls(tls("admin", settings.admin))))
    if admin is not None and settings.admin.token_file:
        parts.append(Part("admin.token_file", lambda: admin.renew_token(admin_token(settings))))
    authenticator = context.authenticator
    if authenticator is not None and settings.auth.keys_file:
        parts.append(Part("auth.keys_file", lambda: authenticator.renew(keys(settings))))
    files = [name for name in ("secret_file", "tls_cert") if getattr(cluster, name)]
    if files and cluster.discovery != "none":
        parts.append(Part(" and ".join(f"cluster.{name}" for name in files), member.renew_secrets))
    return parts


async def _open_admin(admin: AdminPort | None, imported: Awaitable[object]) -> None:
    """Start the admin port when aiohttp is imported. Its clients wait in the backlog until then.

    No caller awaits this task, so it logs its failure itself. The SQS port then runs without the admin port.
    """
    try:
        await imported
        if admin is not None:
            await admin.start()
    except Exception as failure:
        _log.error("admin_port_failed", exc_info=failure)


def _page_url(settings: Settings, admin: AdminPort | None) -> str:
    """Return the URL at which operators reach this member's admin port, empty without one.

    The member announces it to the others. So all links between members, on pages and in commands, are this URL.
    """
    return "" if admin is None else settings.admin.public_url or url_of(settings.admin, admin.port)


def url_of(ports: Http | Admin, port: int) -> str:
    return f"{_scheme(ports)}://{f'[{ports.host}]' if ':' in ports.host else ports.host}:{port}"


def _scheme(ports: Http | Admin) -> str:
    return "https" if ports.tls_cert else "http"


def _browsers(settings: Settings, host: str, *public_urls: str) -> Browsers | None:
    auth = settings.auth
    if auth.csrf == "off":
        return None
    hosts = allowed_hosts(auth, host, *public_urls)
    return Browsers(hosts, auth.allowed_origins, are_gets_strict=auth.csrf == "strict")


def make_context(
    settings: Settings,
    runtime: Runtime,
    loop: asyncio.AbstractEventLoop,
    observer: Observer | None = None,
    files: Shares | None = None,
    page_url: str = "",
) -> ServerContext:
    http = settings.http
    if files is None:
        files = shares(FILES_MAX, http.connections_max)
    bounds = Bounds(
        connections_max=files.http,
        refused_max=files.refused,
        connections_per_address=http.connections_per_address,
        streams_per_address=http.streams_per_address,
        buffers_bytes_max=http.buffers_mb * 1_048_576,
        header_ms=http.header_s * 1_000,
        body_ms=http.body_s * 1_000,
        body_bytes_per_s=http.body_bytes_per_s,
        idle_ms=http.idle_s * 1_000,
    )
    return ServerContext(
        runtime,
        loop,
        os.urandom(16),
        node_name=settings.node.id,
        default_account=settings.node.account,
        own_region="" if settings.node.single_region else settings.node.region,
        health=_health(settings),
        public_url=http.public_url,
        context_path=http.context_path,
        scheme=_scheme(http),
        keys=keys(settings),
        auth=settings.auth.mode,
        browsers=_browsers(settings, http.host, http.public_url),
        bounds=bounds,
        meter=Meter([name for service in SERVICES for name in service.operations], settings.log.slow_ms / 1_000),
        request_log=RequestLog(settings.log.requests, observer),
        has_testing=settings.testing.enabled,
        page_url=page_url,
    )


def _health(settings: Settings) -> str:
    """Return the answer to GET /health: OK, the durability if it is reduced, the build if compiled, the supervisor.

    It is exactly ``OK`` for an uncompiled build without a supervisor whose durability is not reduced.
    """
    storage = settings.storage
    fields = ["OK"]
    if not storage.memory and storage.durability != "fsync":
        fields.append(f"durability={storage.durability}")
    if BUILD.is_compiled:
        fields.append("build=compiled")
    if is_supervised():
        fields += [f"pid={os.getpid()}", f"supervisor={os.getppid()}"]
    return " ".join(fields)


def _announce(settings: Settings, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    host = f"[{settings.http.host}]" if ":" in settings.http.host else settings.http.host
    reachable = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)
    scheme = _scheme(settings.http)
    print(f"elasticq listening on {scheme}://{host}:{port}")
    print(f"export AWS_ENDPOINT_URL_SQS={scheme}://{reachable}:{port}")
    print(f"AWS CLI v1 does not read that variable: aws --endpoint-url {scheme}://{reachable}:{port} sqs list-queues")
    print(_storage_line(settings), flush=True)


def _storage_line(settings: Settings) -> str:
    """Return a line on where messages are stored, and whether a reply waits for the disk."""
    storage = settings.storage
    if settings.cluster.role == PROXY:
        return "a proxy: it stores nothing and passes calls on to its cluster"
    if storage.memory:
        return "messages are stored in memory only: a restart loses them"
    kept = f"messages are stored in {Path(storage.data_dir).resolve()}"
    if storage.durability == "fsync":
        return kept
    return f"{kept}, durability={storage.durability}: a reply does not wait for the disk"
