"""The listener of the admin port.

The import of aiohttp takes most of a start's CPU time, so it happens in ``start``. A full port closes an old
connection for each new one: first one without a whole request, then an idle one. So probes and scrapers always get an
answer.
"""

import asyncio
import ssl
from typing import TYPE_CHECKING, Final

from elasticq.admin.admission import ASKED, ORDERED, WAITING, AdminConnection
from elasticq.admin.source import AdminSource
from elasticq.model.limits import HEAD_BYTES_MAX
from elasticq.net.acceptor import Acceptor
from elasticq.net.connection_limits import choose_victim
from elasticq.runtime.listener import listen
from elasticq.wire.browsers import Browsers

if TYPE_CHECKING:
    from aiohttp.web import AppRunner

    from elasticq.admin.authenticator import Token

BACKLOG: Final = 64
CONNECTIONS_MAX: Final = 256
"""Enough for operators, probes and a scraper."""
STOP_S: Final = 1.0
SWEEP_S: Final = 1.0
LARGE_MAX: Final = 4
"""The number of connections that may buffer a long body at the same time."""


class AdminPort:
    """One listening socket, bound by the constructor, which raises OSError if the port is in use."""

    def __init__(
        self,
        source: AdminSource,
        host: str,
        port: int,
        *,
        token: str | None = "",
        browsers: Browsers | None = None,
        tls: ssl.SSLContext | None = None,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self._source = source
        self._token = token
        self._shared: Token | None = None  # of the application, once there is one
        self._browsers = browsers
        self._tls = tls
        self._connections_max = connections_max
        self._listener = listen(host, port, BACKLOG)
        self._runner: AppRunner | None = None
        self._acceptor: Acceptor | None = None
        self._connections: dict[AdminConnection, None] = {}  # the oldest first
        self._large: set[AdminConnection] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.host = host
        self.port: int = self._listener.getsockname()[1]

    async def start(self) -> None:
        """Start to answer. Clients that connected before wait in the backlog."""
        from aiohttp.web import AppRunner

        from elasticq.admin.app import make_app
        from elasticq.admin.authenticator import Token

        self._shared = Token(self._token)
        app = make_app(self._source, self._shared, self._browsers)
        self._runner = AppRunner(
            app,
            access_log=None,
            shutdown_timeout=STOP_S,
            max_line_size=HEAD_BYTES_MAX,  # AdminConnection limits heads first, and its answers have our headers
            max_field_size=HEAD_BYTES_MAX,
        )
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._acceptor = Acceptor(
            "admin",
            loop,
            [self._listener],
            lambda: AdminConnection(self, loop),
            count=lambda: len(self._connections),
            connections_max=self._connections_max + BACKLOG,  # ``admit`` makes space for each new one
            tls=self._tls,
        )
        self._acceptor.start()
        self._sweep()

    def renew_token(self, token: str | None) -> None:
        """Require this token from clients, from the next request on."""
        self._token = token
        if self._shared is not None:
            self._shared.value = token

    def renew_tls(self, tls: ssl.SSLContext | None) -> None:
        """Use another certificate for connections from now on."""
        self._tls = tls
        if self._acceptor is not None:
            self._acceptor.renew(tls)

    async def stop(self) -> None:
        """Stop, after at most STOP_S for requests in progress. Do nothing if the port was never started."""
        if self._timer is not None:
            self._timer.cancel()
        if self._acceptor is not None:
            self._acceptor.close()
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
        for connection in list(self._connections):
            connection.abort()
        self._listener.close()

    # --- called by connections (admission.Owner) ---------------------------------------

    def admit(self, connection: AdminConnection) -> asyncio.Protocol | None:
        server = None if self._runner is None else self._runner.server
        if server is None:
            return None
        while len(self._connections) >= self._connections_max:
            self._close_one()
        self._connections[connection] = None
        return server()

    def forget(self, connection: AdminConnection) -> None:
        self._connections.pop(connection, None)
        self._large.discard(connection)

    def claim_long_body(self, connection: AdminConnection) -> bool:
        if connection not in self._large and len(self._large) >= LARGE_MAX:
            return False
        self._large.add(connection)
        return True

    def release_long_body(self, connection: AdminConnection) -> None:
        self._large.discard(connection)

    def _close_one(self) -> None:
        for state in (WAITING, ASKED, ORDERED):
            places = {connection: connection.address for connection in self._connections if connection.state == state}
            if places:
                connection = choose_victim(places)
                del self._connections[connection]
                connection.abort()
                return

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        for connection in [connection for connection in self._connections if connection.until_s < now_s]:
            connection.abort()
        self._timer = loop.call_later(SWEEP_S, self._sweep)
