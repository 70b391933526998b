"""What is told of single requests: lines in the log, spans for a tracer. Never a body, a header's text or a secret.

Nobody is called for a request that went well and quickly, unless all are asked for: ``Watch.everything``.
"""

import re
from collections.abc import Callable
from logging import INFO, WARNING, getLogger
from time import perf_counter
from typing import Any, Final, Literal

from msgspec import Struct

from elasticq.model.names import ACCOUNT, FIFO_QUEUE_NAME, QUEUE_NAME, queue_path

Requests = Literal["off", "failed", "all"]

LINES_A_SECOND_MAX: Final = 50
"""Of failed and slow requests; the rest of a second is told as a number. Who asks for all gets all."""
_PARENT: Final = re.compile(
    rb"(traceparent|tracestate|x-amzn-trace-id):[ \t]*([\x21-\x7e]{1,512})[ \t]*\Z", re.IGNORECASE
)

_log = getLogger("elasticq.requests")


class Seen(Struct, gc=False):
    """A request that was answered. code: OK or the error's; queue: empty where the action names none."""

    request_id: str
    action: str
    account: str
    queue: str
    status: int
    code: str
    took_s: float
    parents: dict[str, str]


Observer = Callable[[Seen], None]
"""Makes a span of it."""


class Watch:
    """Asked by the connections of one site."""

    __slots__ = ("_dropped", "_lines", "_observer", "_requests", "everything")

    def __init__(self, requests: Requests = "failed", observer: Observer | None = None) -> None:
        self._requests = requests
        self._observer = observer
        self._lines = 0
        self._dropped = 0
        self.everything = requests == "all" or observer is not None

    def answered(
        self,
        request_id: str,
        action: str,
        account: str,
        command: Any,
        began_s: float,
        headers: list[bytes],
        *,
        status: int = 200,
        code: str = "OK",
        is_slow: bool = False,
    ) -> None:
        """``command``: None where none could be read; ``headers``: of their lines the trace ids are read."""
        parents = _parents(headers) if self._observer is not None else {}
        queue = queue_of(command, account)
        seen = Seen(request_id, action, account, queue, status, code, perf_counter() - began_s, parents)
        if self._observer is not None:
            self._observer(seen)
        if self._requests == "all":
            _tell(seen)
        elif self._requests == "failed" and (is_slow or status != 200):
            self._lines += 1
            if self._lines <= LINES_A_SECOND_MAX:
                _tell(seen)

    def tick(self) -> None:
        """Once a second."""
        dropped, self._lines = self._lines - LINES_A_SECOND_MAX, 0
        if self._requests == "failed" and dropped > 0:
            _log.warning("requests_not_logged", extra={"fields": {"requests": dropped}})


def _tell(seen: Seen) -> None:
    fields = {
        "request_id": seen.request_id,
        "action": seen.action,
        "account": seen.account,
        "queue": seen.queue,
        "status": seen.status,
        "code": seen.code,
        "duration_ms": round(seen.took_s * 1_000, 3),
    }
    _log.log(WARNING if seen.status >= 500 else INFO, "request", extra={"fields": fields})


def queue_of(command: Any, account: str) -> str:
    """account/name, as far as it is a name that a queue may have: nothing else that was sent gets into a log."""
    url = getattr(command, "queue_url", None)
    owner, name = queue_path(url, account) if url else (account, getattr(command, "queue_name", None) or "")
    if ACCOUNT.match(owner) and (QUEUE_NAME.match(name) or FIFO_QUEUE_NAME.match(name)):
        return f"{owner}/{name}"
    return ""


def _parents(headers: list[bytes]) -> dict[str, str]:
    found = (_PARENT.match(line) for line in headers)
    return {each[1].decode().lower(): each[2].decode() for each in found if each is not None}
