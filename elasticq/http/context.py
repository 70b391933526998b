"""The state that all connections of one SQS port share: runtime, readers, counters, and the sweep of deadlines."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from logging import getLogger
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

from elasticq.http.admission.authenticator import Authenticator
from elasticq.http.admission.caller import Callers
from elasticq.http.admission.request_log import RequestLog
from elasticq.http.connection.bounds import Bounds
from elasticq.http.connection.facts import Head
from elasticq.http.connection.head import HeadReader
from elasticq.http.connection.outbox import Outbox
from elasticq.http.connection.responses import Responses
from elasticq.http.faults import Faults, Submit
from elasticq.model.commands import Command, Origin, ReceiveMessage
from elasticq.model.errors import InternalFailure, SqsError
from elasticq.model.limits import SMALL_REQUEST_BYTES_MAX
from elasticq.model.results import Result, StaleResult
from elasticq.runtime.clock import Clock, boot_ms, wall_ms
from elasticq.runtime.meter import Meter
from elasticq.runtime.runtime import Runtime
from elasticq.wire.browsers import Browsers
from elasticq.wire.operations import SERVICES
from elasticq.wire.services import Services
from elasticq.wire.sigv4 import Key

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

_log = getLogger(__name__)

NEVER_MS: Final = 1 << 62
CLIENTS_MAX: Final = 10_000
"""The number of addresses whose requests are counted after their connections were closed."""
_ReceiveMessage: Final = ReceiveMessage  # compiled code reads a name of this module without a dict lookup
SWEEP_S = 1.0
BUSY_TEXT: Final = "The server is busy with other requests; try again."
STOPPING_TEXT: Final = "The server is stopping."
DECODED_TIMES: Final = 20
"""A list of short texts takes up to 20 times its JSON in memory: 80 bytes per text of one letter, and a pointer."""
WAITING_FREE_BYTES: Final = 10_240
"""The memory of a waiting command is counted only if it is larger. Nearly all commands are smaller."""
SMALL_BYTES: Final = 16_384
"""A connection may buffer this much even if all together exceed their bound, up to 1.5 times that bound."""


class Connection(Protocol):
    """A connection, as the server context and the slow path use it.

    address: the client's IP address; requests: the number of its requests that were answered.
    slow_request: head and body of the request that the slow path answers, or None.
    origin: the source of the client's calls, None if policies are not enforced.
    """

    address: str
    requests: int
    deadline_ms: int
    slow_request: tuple[Head, bytes] | None
    origin: Origin | None

    def expire(self) -> None:
        """End the connection because its deadline has passed."""

    def stop(self) -> None:
        """End the connection because the server stops: now, or after the reply of a request in progress."""

    def abort(self) -> None:
        """Break the connection at once."""

    def submit_by(self, submit: Submit) -> None:
        """Submit all later calls with this function."""

    def hold(self, size_bytes: int) -> None:
        """Count this much memory for this connection until the next ``hold``; 0 for none."""

    def slow_ended(self, *, keeps_open: bool) -> None:
        """Go on after the slow path has written its answer. ``keeps_open``: False if aiohttp closes the connection."""


class SlowPath(Protocol):
    """The aiohttp part of the port (pages/slow.py), as a connection and the server context use it."""

    def handler(self) -> "RequestHandler":
        """Return a protocol of aiohttp for one connection."""

    async def close(self) -> None:
        """End every request that is still in progress."""


def rest_bytes(body_bytes: int) -> int:
    """Return an upper bound of a REST body's memory in bytes. The number of texts in a long body is bounded."""
    return min(body_bytes * DECODED_TIMES, body_bytes + SMALL_REQUEST_BYTES_MAX * DECODED_TIMES)


def command_bytes(command: Command, body_bytes: int) -> int:
    """Return an upper bound of the memory of ``command`` in bytes while it waits.

    A send takes as much as its body. A receive may have lists of short texts, which take many times their JSON.
    """
    return body_bytes * DECODED_TIMES if type(command) is _ReceiveMessage else body_bytes


class ServerContext:
    """The state that all connections of the port share. One sweep a second checks all deadlines, without timers.

    context_path: a prefix such as "/x" of all paths, also in queue URLs.
    auth: off, lax or strict.
    browsers: decides which web pages may send requests; None if all may (csrf = "off").
    submit: submits a call to the runtime; ``Faults.submit`` while a test's faults are in force.
    page_url: the URL of the admin port's pages; empty if there are none.
    own_region: node.region; empty if all regions share their queues.
    slow_path: the aiohttp part; None until a connection needs it and sets it.
    importing: the import of the slow path by another thread, for which requests wait; None if it is imported on demand.
    services: the APIs of the port. Only the first one also has JSON 1.0.
    certificate: returns the PEM text that verifies notifications; None until the start of the server sets it.
    """

    __slots__ = (
        "_due_s",
        "_is_strict",
        "_logged_attributes",
        "_past_requests",
        "_timer",
        "_wall_clock",
        "addresses",
        "authenticator",
        "bounds",
        "browsers",
        "buffers_bytes",
        "callers",
        "certificate",
        "clock",
        "connections",
        "context_path",
        "faults",
        "has_testing",
        "health",
        "hot_requests",
        "idle_until_ms",
        "importing",
        "loop",
        "meter",
        "node_name",
        "now_ms",
        "outbox",
        "page_url",
        "public_url",
        "reader",
        "request_log",
        "responses",
        "runtime",
        "scheme",
        "services",
        "slow_path",
        "slow_requests",
        "stopping",
        "streams",
        "submit",
    )

    def __init__(
        self,
        runtime: Runtime,
        loop: asyncio.AbstractEventLoop,
        entropy: bytes,
        *,
        node_name: str,
        default_account: str,
        own_region: str = "",
        health: str = "OK",
        public_url: str = "",
        context_path: str = "",
        scheme: str = "http",
        keys: Sequence[Key] = (),
        auth: str = "off",
        browsers: Browsers | None = None,
        bounds: Bounds | None = None,
        meter: Meter | None = None,
        request_log: RequestLog | None = None,
        has_testing: bool = False,
        page_url: str = "",
        services: Services = SERVICES,
        clock: Clock = boot_ms,
        wall_clock: Clock = wall_ms,
    ) -> None:
        self.runtime = runtime
        self.submit: Submit = runtime.submit
        self.has_testing = has_testing
        self.page_url = page_url
        self.faults = Faults(runtime, loop, self._submit_by)
        self.loop = loop
        self.node_name = node_name
        self.health = health
        self.bounds = bounds or Bounds()
        self.meter = meter or Meter([name for service in services for name in service.operations])
        self.request_log = request_log or RequestLog("off")
        self.clock = clock
        self._wall_clock = wall_clock
        self.public_url = public_url and f"{public_url}{context_path}"
        self.context_path = context_path
        self.services = services
        self.certificate: Callable[[], Awaitable[bytes | None]] | None = None
        self.scheme = scheme
        self._is_strict = auth == "strict"
        self.browsers = browsers
        self.reader = HeadReader(self.public_url, scheme, context_path, self._is_foreign, services[0])
        self.callers = Callers(default_account, own_region)
        wall_s = wall_clock() // 1_000
        self.authenticator = (
            None
            if auth == "off"
            else Authenticator(keys, self.callers, wall_s, is_strict=self._is_strict, services=services)
        )
        self.responses = Responses(entropy, wall_s)
        self.connections: set[Connection] = set()
        self.addresses: Counter[str] = Counter()  # connections by address, if these are bounded
        self.streams: Counter[str] = Counter()  # event streams of REST, by address
        self.outbox = Outbox(loop)
        self.buffers_bytes = 0
        self.hot_requests = 0
        self.slow_requests = 0
        self.stopping = False
        self.now_ms = clock()
        self.idle_until_ms = self.now_ms + self.bounds.idle_ms
        self.slow_path: SlowPath | None = None
        self.importing: asyncio.Future[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._logged_attributes: set[str] = set()
        self._past_requests: Counter[str] = Counter()  # of closed connections, by address

    def _submit_by(self, submit: Submit) -> None:
        self.submit = submit
        for connection in self.connections:
            connection.submit_by(submit)

    def _is_foreign(self, host: str) -> bool:
        """Return whether ``host`` may belong to a foreign web page, so that ``refusal`` must check the request.

        With auth = strict it is False: a page has no secret to sign with.
        """
        return self.browsers is not None and not self._is_strict and not self.browsers.is_allowed_host(host)

    def refusal(self, header: Callable[[str], str | None]) -> str:
        """Return why a request with these headers must be refused; empty if it may be answered."""
        return "" if self.browsers is None else self.browsers.refusal(header, is_unsigned=not self._is_strict)

    def buffer(self, old_bytes: int, new_bytes: int) -> bool:
        """Count ``new_bytes`` for a connection instead of ``old_bytes``. Return False if that is too much."""
        self.buffers_bytes += new_bytes - old_bytes
        return new_bytes <= old_bytes or self._fits(self.buffers_bytes, new_bytes)

    @property
    def is_importing(self) -> bool:
        """Return whether another thread imports the slow path, so that importing it here would block the loop."""
        return self.importing is not None and not self.importing.done()

    @property
    def is_full(self) -> bool:
        """Return whether connections buffer so much that the answers of receives are no longer written."""
        return self.buffers_bytes > self.bounds.buffers_bytes_max

    def has_room(self, new_bytes: int) -> bool:
        """Return whether one connection may buffer ``new_bytes`` more."""
        return self._fits(self.buffers_bytes + new_bytes, new_bytes)

    def _fits(self, buffers_bytes: int, of_one_bytes: int) -> bool:
        bytes_max = self.bounds.buffers_bytes_max
        if buffers_bytes <= bytes_max:
            return True
        return of_one_bytes <= SMALL_BYTES and buffers_bytes <= bytes_max * 3 // 2

    def start(self) -> None:
        self._due_s = perf_counter() + SWEEP_S
        self._timer = self.loop.call_later(SWEEP_S, self._tick)

    def _tick(self) -> None:
        self.meter.lag.observe(max(0.0, perf_counter() - self._due_s))
        self.start()
        self.sweep()
        self.request_log.tick()

    def count(
        self,
        request_id: str,
        action: str,
        account: str,
        command: Command | None,
        outcome: Result | SqsError,
        status: int,
        began_s: float,
        head: Head,
    ) -> None:
        """Count an answered request, and log it if the settings ask for it. The hot path does both for plain successes.

        action: empty if the request named none. command: None if none could be read.
        """
        is_slow, code = False, "OK"
        if isinstance(outcome, StaleResult):
            outcome = outcome.result
        if isinstance(outcome, SqsError):
            code = outcome.code
            self.meter.failed(action, code)
        elif status == 200:
            is_slow = self.meter.counts[action](command, account, outcome, began_s)
        else:  # it was executed, but its answer could not be encoded
            code = InternalFailure.code
            self.meter.failed(action, code)
        if is_slow or status != 200 or self.request_log.everything:
            self.request_log.answered(
                request_id, action, account, command, began_s, head.lines, status=status, code=code, is_slow=is_slow
            )

    def note_requests(self, address: str, requests: int) -> None:
        """Count the requests of a connection that was closed."""
        if requests:
            if len(self._past_requests) >= CLIENTS_MAX and address not in self._past_requests:
                self._past_requests.clear()
            self._past_requests[address] += requests

    def clients(self) -> dict[str, tuple[int, int]]:
        """Return, by address, the number of requests that were answered, and of open connections."""
        requests, connections = self._past_requests.copy(), Counter[str]()
        for each in self.connections:
            requests[each.address] += each.requests
            connections[each.address] += 1
        return {address: (count, connections[address]) for address, count in requests.items()}

    def sweep(self) -> None:
        """Update clock and date, and end every connection whose deadline has passed."""
        self.now_ms = now_ms = self.clock()
        self.idle_until_ms = now_ms + self.bounds.idle_ms
        wall_s = self._wall_clock() // 1_000
        self.responses.refresh(wall_s)
        self._log_ignored_attributes()
        if self.authenticator is not None:
            self.authenticator.now_s = wall_s
        for connection in [one for one in self.connections if one.deadline_ms < now_ms]:
            connection.expire()

    def _log_ignored_attributes(self) -> None:
        """Log each queue attribute that the node ignored, once per name. The node bounds their number."""
        for name in sorted(self.runtime.ignored_attributes() - self._logged_attributes):
            _log.warning("unknown_attribute_ignored", extra={"fields": {"attribute": name}})
            self._logged_attributes.add(name)

    async def stop(self, patience_s: float) -> None:
        """End every connection: idle ones at once, others after their reply, all after ``patience_s`` seconds."""
        self.stopping = True
        self.faults.stop()
        until_ms = self.clock() + int(patience_s * 1_000)
        while self.connections and self.clock() < until_ms:
            self.runtime.close_waiters()  # in each round, because more requests may have become complete
            for connection in list(self.connections):
                connection.stop()
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.abort()
        if self.slow_path is not None:
            await self.slow_path.close()
        if self._timer is not None:
            self._timer.cancel()
