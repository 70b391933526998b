"""What the connections of one SQS port share: runtime, readers, counters, and the sweep of deadlines."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final, Protocol

from elasticq.http.bounds import Bounds
from elasticq.http.caller import Callers
from elasticq.http.door import Door
from elasticq.http.faults import Faults, Submit
from elasticq.http.head import HeadReader
from elasticq.http.responses import Responses
from elasticq.http.watch import Watch
from elasticq.model.commands import Command, ReceiveMessage
from elasticq.model.errors import InternalFailure, SqsError
from elasticq.model.results import Result, StaleResult
from elasticq.runtime.clock import Clock, boot_ms, wall_ms
from elasticq.runtime.meter import Meter
from elasticq.runtime.runtime import Runtime
from elasticq.wire.browsers import Browsers
from elasticq.wire.operations import SQS, Service
from elasticq.wire.sigv4 import Key

if TYPE_CHECKING:
    from elasticq.http.slow import SlowPath

NEVER_MS = 1 << 62
SWEEP_S = 1.0
BUSY_TEXT: Final = "The server is busy with other requests; try again."
DECODED_TIMES: Final = 20
"""How much more memory than its JSON a list of short texts takes: 80 bytes for a text of one letter, and its place."""
WAITING_FREE_BYTES: Final = 10_240
"""A command that waits is not counted where it holds no more: that is nearly every one."""
SMALL_BYTES: Final = 16_384
"""What one connection may buffer although all together hold too much, up to half as much again."""


class Connection(Protocol):
    """What the site wants of a connection."""

    deadline_ms: int

    def expire(self) -> None:
        """The deadline is past."""

    def stop(self) -> None:
        """The server stops: end now if nothing is in progress, else after the reply."""

    def abort(self) -> None:
        """End without a word."""

    def submit_by(self, submit: Submit) -> None:
        """Calls go this way from now on."""


def command_bytes(command: Command, body_bytes: int) -> int:
    """What ``command`` holds while it waits, at most: of a send the message, of a receive lists of short texts."""
    return body_bytes * DECODED_TIMES if type(command) is ReceiveMessage else body_bytes


class Site:
    """Shared by all connections. Deadlines are judged by one sweep a second, not by timers of their own.

    context_path: "/x" before all paths, in queue URLs too.
    auth: off, lax or strict; browsers: None where nobody asks from which page a request came (csrf = off).
    service: the API that is spoken on the port.
    submit: how calls reach the runtime; another way only while tests have ordered faults.
    """

    __slots__ = (
        "_due_s",
        "_is_strict",
        "_slow_path",
        "_timer",
        "_wall_clock",
        "addresses",
        "bounds",
        "browsers",
        "buffers_bytes",
        "callers",
        "clock",
        "connections",
        "context_path",
        "door",
        "faults",
        "has_testing",
        "health",
        "hot_requests",
        "idle_until_ms",
        "loop",
        "meter",
        "node_name",
        "now_ms",
        "public_url",
        "reader",
        "responses",
        "runtime",
        "scheme",
        "service",
        "slow_requests",
        "stopping",
        "submit",
        "watch",
    )

    def __init__(
        self,
        runtime: Runtime,
        loop: asyncio.AbstractEventLoop,
        entropy: bytes,
        *,
        node_name: str,
        default_account: str,
        health: str = "OK",
        public_url: str = "",
        context_path: str = "",
        scheme: str = "http",
        keys: Sequence[Key] = (),
        auth: str = "off",
        browsers: Browsers | None = None,
        bounds: Bounds | None = None,
        meter: Meter | None = None,
        watch: Watch | None = None,
        has_testing: bool = False,
        service: Service = SQS,
        clock: Clock = boot_ms,
        wall_clock: Clock = wall_ms,
    ) -> None:
        self.runtime = runtime
        self.submit: Submit = runtime.submit
        self.has_testing = has_testing
        self.faults = Faults(runtime, loop, self._submit_by)
        self.loop = loop
        self.node_name = node_name
        self.health = health
        self.bounds = bounds or Bounds()
        self.meter = meter or Meter(service.operations)
        self.watch = watch or Watch("off")
        self.clock = clock
        self._wall_clock = wall_clock
        self.public_url = public_url and f"{public_url}{context_path}"
        self.context_path = context_path
        self.service = service
        self.scheme = scheme
        self._is_strict = auth == "strict"
        self.browsers = browsers
        self.reader = HeadReader(self.public_url, scheme, context_path, self._is_foreign, service)
        self.callers = Callers(default_account)
        wall_s = wall_clock() // 1_000
        self.door = (
            None if auth == "off" else Door(keys, self.callers, wall_s, is_strict=self._is_strict, service=service)
        )
        self.responses = Responses(entropy, wall_s)
        self.connections: set[Connection] = set()
        self.addresses: Counter[str] = Counter()  # connections of each, where they are bounded
        self.buffers_bytes = 0
        self.hot_requests = 0
        self.slow_requests = 0
        self.stopping = False
        self.now_ms = clock()
        self.idle_until_ms = self.now_ms + self.bounds.idle_ms
        self._slow_path: SlowPath | None = None
        self._timer: asyncio.TimerHandle | None = None

    def _submit_by(self, submit: Submit) -> None:
        self.submit = submit
        for connection in self.connections:
            connection.submit_by(submit)

    def _is_foreign(self, host: str) -> bool:
        """A page could come under that name. A signature tells better: no page has the secret."""
        return self.browsers is not None and not self._is_strict and not self.browsers.is_allowed_host(host)

    def refusal(self, header: Callable[[str], str | None]) -> str:
        """Why a request with these headers is not answered; empty: it is."""
        return "" if self.browsers is None else self.browsers.refusal(header, is_unsigned=not self._is_strict)

    @property
    def slow_path(self) -> "SlowPath":
        """aiohttp's part, imported when first needed: it is most of a start's CPU, and boto3 never needs it."""
        if self._slow_path is None:
            from elasticq.http.slow import SlowPath

            self._slow_path = SlowPath(self)
        return self._slow_path

    def buffer(self, old_bytes: int, new_bytes: int) -> bool:
        """One connection buffers ``new_bytes`` instead of ``old_bytes``; False: more than there is room for."""
        self.buffers_bytes += new_bytes - old_bytes
        return new_bytes <= old_bytes or self._is_bearable(self.buffers_bytes, new_bytes)

    @property
    def is_full(self) -> bool:
        """No more replies that may be long."""
        return self.buffers_bytes > self.bounds.buffers_bytes_max

    def has_room(self, new_bytes: int) -> bool:
        """For one connection that would buffer so much more."""
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
        self.watch.tick()

    def count(
        self,
        request_id: str,
        action: str,
        account: str,
        command: Command | None,
        outcome: Result | SqsError,
        status: int,
        began_s: float,
        headers: list[bytes],
    ) -> None:
        """A request was answered, and not by the hot path's common answer. ``action``: empty where it is none."""
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
        if is_slow or status != 200 or self.watch.everything:
            self.watch.answered(
                request_id, action, account, command, began_s, headers, status=status, code=code, is_slow=is_slow
            )

    def sweep(self) -> None:
        """Renew clock and date, and end every connection that is past its deadline."""
        self.now_ms = now_ms = self.clock()
        self.idle_until_ms = now_ms + self.bounds.idle_ms
        wall_s = self._wall_clock() // 1_000
        self.responses.refresh(wall_s)
        if self.door is not None:
            self.door.now_s = wall_s
        for connection in [one for one in self.connections if one.deadline_ms < now_ms]:
            connection.expire()

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
        if self._slow_path is not None:
            await self._slow_path.close()
        if self._timer is not None:
            self._timer.cancel()
