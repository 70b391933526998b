"""Listens on the admin port.

aiohttp is most of a start's CPU, so nothing here imports it before ``start``.
"""

import asyncio
import ssl
from typing import TYPE_CHECKING, Final, cast

from elasticq.admin.source import AdminSource
from elasticq.runtime.listener import listen
from elasticq.wire.browsers import Browsers

if TYPE_CHECKING:
    from aiohttp.web import AppRunner

BACKLOG: Final = 64
CONNECTIONS_MAX: Final = 256
"""Operators, probes and a scraper are few; further connections are closed at once."""
STOP_S: Final = 1.0
HANDSHAKE_S: Final = 10


class AdminPort:
    """One listening socket, taken at birth: ``port`` is known and a taken one is an OSError at once."""

    def __init__(
        self,
        source: AdminSource,
        host: str,
        port: int,
        *,
        token: str | None = "",
        browsers: Browsers | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._source = source
        self._token = token
        self._browsers = browsers
        self._tls = tls
        self._listener = listen(host, port, BACKLOG)
        self._runner: AppRunner | None = None
        self._server: asyncio.Server | None = None
        self.host = host
        self.port: int = self._listener.getsockname()[1]

    async def start(self) -> None:
        """Answer; clients that came before wait in the backlog."""
        from aiohttp.web import AppRunner

        from elasticq.admin.app import make_app

        app = make_app(self._source, self._token, self._browsers)
        self._runner = AppRunner(app, access_log=None, shutdown_timeout=STOP_S)
        await self._runner.setup()
        handshake_s = None if self._tls is None else HANDSHAKE_S
        self._server = await asyncio.get_running_loop().create_server(
            self._protocol, sock=self._listener, ssl=self._tls, ssl_handshake_timeout=handshake_s
        )

    async def stop(self) -> None:
        """Requests under way get a moment; harmless when it never started."""
        if self._server is not None:
            self._server.close()
        if self._runner is not None:
            await self._runner.cleanup()
        self._listener.close()

    def _protocol(self) -> asyncio.BaseProtocol:
        assert self._runner is not None
        server = self._runner.server
        if server is None or len(server.connections) >= CONNECTIONS_MAX:
            return _Refused()
        return server()


class _Refused(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()
