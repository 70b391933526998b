"""What the connections of one SQS port share: runtime, readers, counters, and the sweep of deadlines."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from logging import getLogger
from time import perf_counter
from typing import TYPE_CHECKING, Final, Protocol

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
from elasticq.wire.operations import SNS, SQS
from elasticq.wire.services import Services
from elasticq.wire.sigv4 import Key

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

_log = getLogger(__name__)

NEVER_MS = 1 << 62
SWEEP_S = 1.0
BUSY_TEXT: Final = "The server is busy with other requests; try again."
STOPPING_TEXT: Final = "The server is stopping."
DECODED_TIMES: Final = 20
"""How many times its JSON a list of short texts takes in memory: 80 bytes for a text of one letter, and its place."""
WAITING_FREE_BYTES: Final = 10_240
"""A waiting command that takes no more memory is not counted; nearly none takes more."""
SMALL_BYTES: Final = 16_384
"""One connection may buffer so much though all together exceed their bound, until they exceed it by half."""


class Connection(Protocol):
    """What the server context and the slow path want of a connection.

    slow_request: head and body of the request that the slow path answers, None between two.
    origin: where the client's calls come from, None where no policy asks for it.
    """

    deadline_ms: int
    slow_request: tuple[Head, bytes] | None
    origin: Origin | None

    def expire(self) -> None:
        """End, as the deadline is past."""

    def stop(self) -> None:
        """The server stops: end now if no request is in progress, else after its reply."""

    def abort(self) -> None:
        """Break the connection at once."""

    def submit_by(self, submit: Submit) -> None:
        """Submit calls by this function from now on."""

    def hold(self, size_bytes: int) -> None:
        """Count so much memory to this connection until the next call; 0: none."""

    def slow_ended(self, *, keeps_open: bool) -> None:
        """The slow path has written its answer; ``keeps_open`` is False where it closes the connection after it."""


class SlowPath(Protocol):
    """What a connection and the server context want of aiohttp's part of the port (slow.py)."""

    def handler(self) -> "RequestHandler":
        """A protocol of aiohttp for one connection."""

    async def close(self) -> None:
        """End every request that it still has."""


def rest_bytes(body_bytes: int) -> int:
    """Return how much memory a body of REST takes at most: of a long one the number of texts is bounded."""
    return min(body_bytes * DECODED_TIMES, body_bytes + SMALL_REQUEST_BYTES_MAX * DECODED_TIMES)


def command_bytes(command: Command, body_bytes: int) -> int:
    """Return how much memory ``command`` takes at most while it waits.

    A send takes its message; a receive may be lists of short texts, which take many times their JSON.
    """
    return body_bytes * DECODED_TIMES if type(command) is ReceiveMessage else body_bytes


class ServerContext:
    """What all connections of the port share. One sweep a second judges deadlines, instead of a timer for each.

    context_path: "/x" before all paths, in queue URLs too.
    auth: off, lax or strict; browsers: judges which web pages may ask, None where all may (csrf = "off").
    submit: the function by which calls reach the runtime; another one only while a test's faults are in force.
    page_url: of the admin port, which shows the queues to people; empty where there is none.
    own_region: node.region, or empty where queues are not told apart by regions.
    slow_path: aiohttp's part; None until a connection needs it and sets it.
    services: the APIs that are spoken on the port; the first one has JSON 1.0, too.
    certificate: gives the PEM text that notifications are verified with; None until whoever signs them sets it.
    """

    __slots__ = (
        "_due_s",
        "_is_strict",
        "_timer",
        "_told",
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
        services: Services = (SQS, SNS),
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
        self.addresses: Counter[str] = Counter()  # connections of each, where they are bounded
        self.streams: Counter[str] = Counter()  # of REST, by address
        self.outbox = Outbox(loop)
        self.buffers_bytes = 0
        self.hot_requests = 0
        self.slow_requests = 0
        self.stopping = False
        self.now_ms = clock()
        self.idle_until_ms = self.now_ms + self.bounds.idle_ms
        self.slow_path: SlowPath | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._told: set[str] = set()

    def _submit_by(self, submit: Submit) -> None:
        self.submit = submit
        for connection in self.connections:
            connection.submit_by(submit)

    def _is_foreign(self, host: str) -> bool:
        """Tell whether a web page could have been served under this host name, so that the request must be judged.

        With auth = strict none is: no page has the secret to sign with.
        """
        return self.browsers is not None and not self._is_strict and not self.browsers.is_allowed_host(host)

    def refusal(self, header: Callable[[str], str | None]) -> str:
        """Return why a request with these headers is refused; empty if it may be answered."""
        return "" if self.browsers is None else self.browsers.refusal(header, is_unsigned=not self._is_strict)

    def buffer(self, old_bytes: int, new_bytes: int) -> bool:
        """Note that a connection buffers ``new_bytes`` instead of ``old_bytes``; False if there is no room for them."""
        self.buffers_bytes += new_bytes - old_bytes
        return new_bytes <= old_bytes or self._is_bearable(self.buffers_bytes, new_bytes)

    @property
    def is_full(self) -> bool:
        """Whether connections buffer so much that no more long replies are written."""
        return self.buffers_bytes > self.bounds.buffers_bytes_max

    def has_room(self, new_bytes: int) -> bool:
        """Tell whether one connection may buffer so many bytes more."""
        return self._is_bearable(self.buffers_bytes + new_bytes, new_bytes)

    def _is_bearable(self, buffers_bytes: int, of_one_bytes: int) -> bool:
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
        """Count an answered request, and log it where asked to; the hot path does both itself for plain successes.

        action: empty where the request named none; command: None where none could be read.
        """
        is_slow, code = False, "OK"
        if isinstance(outcome, StaleResult):
            outcome = outcome.result
        if isinstance(outcome, SqsError):
            code = outcome.code
            self.meter.failed(action, code)
        elif status == 200:
            is_slow = self.meter.counts[action](command, account, outcome, began_s)
        else:  # it was done, and could not be written
            code = InternalFailure.code
            self.meter.failed(action, code)
        if is_slow or status != 200 or self.request_log.everything:
            self.request_log.answered(
                request_id, action, account, command, began_s, head.lines, status=status, code=code, is_slow=is_slow
            )

    def sweep(self) -> None:
        """Renew clock and date, and end every connection that is past its deadline."""
        self.now_ms = now_ms = self.clock()
        self.idle_until_ms = now_ms + self.bounds.idle_ms
        wall_s = self._wall_clock() // 1_000
        self.responses.refresh(wall_s)
        self._tell_ignored()
        if self.authenticator is not None:
            self.authenticator.now_s = wall_s
        for connection in [one for one in self.connections if one.deadline_ms < now_ms]:
            connection.expire()

    def _tell_ignored(self) -> None:
        """Log, once for each name, the attributes of queues that were passed over; the node bounds how many."""
        for name in sorted(self.runtime.ignored_attributes() - self._told):
            _log.warning("unknown_attribute_ignored", extra={"fields": {"attribute": name}})
            self._told.add(name)

    async def stop(self, patience_s: float) -> None:
        """End every connection: at once if idle, else after its reply, at the latest after ``patience_s``."""
        self.stopping = True
        self.faults.stop()
        until_ms = self.clock() + int(patience_s * 1_000)
        while self.connections and self.clock() < until_ms:
            self.runtime.close_waiters()  # again each time: a body may have been under way
            for connection in list(self.connections):
                connection.stop()
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.abort()
        if self.slow_path is not None:
            await self.slow_path.close()
        if self._timer is not None:
            self._timer.cancel()
