"""The log of single requests, which also passes them to a tracer. It contains no body, header or secret.

It is not called for a fast and successful request, unless ``RequestLog.everything`` is set.
"""

import re
from collections.abc import Callable
from logging import INFO, WARNING, getLogger
from time import perf_counter
from typing import Any, Final, Literal

from msgspec import Struct

from elasticq.model.names import ACCOUNT, FIFO_QUEUE_NAME, QUEUE_NAME, account_of, queue_path

Requests = Literal["off", "failed", "all"]

LINES_A_SECOND_MAX: Final = 50
"""Bound of failed and slow requests that are logged per second; more are only counted. ``all`` has no bound."""
_PARENT: Final = re.compile(
    rb"(traceparent|tracestate|x-amzn-trace-id):[ \t]*([\x21-\x7e]{1,512})[ \t]*\Z", re.IGNORECASE
)

_log = getLogger("elasticq.requests")


class Seen(Struct, gc=False):
    """A request that was answered.

    account: an owner (model/names.py). code: OK, or the code of the error. queue: empty if the action names none.
    took_s: from the start of decoding to the answer. parents: the client's trace headers by name.
    """

    request_id: str
    action: str
    account: str
    queue: str
    status: int
    code: str
    took_s: float
    parents: dict[str, str]


Observer = Callable[[Seen], None]
"""A function that makes a span of each answered request."""


class RequestLog:
    """The log of one port's requests. It follows the setting log.requests, and calls ``observer`` for each request.

    everything: whether fast and successful requests must be reported, too.
    """

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
        """Log a request that was answered.

        command: None if none could be read. headers: the lines of the head, for their trace ids.
        """
        parents = _parents(headers) if self._observer is not None else {}
        queue = queue_of(command, account)
        seen = Seen(request_id, action, account, queue, status, code, perf_counter() - began_s, parents)
        if self._observer is not None:
            self._observer(seen)
        if self._requests == "all":
            _log_request(seen)
        elif self._requests == "failed" and (is_slow or status != 200):
            self._lines += 1
            if self._lines <= LINES_A_SECOND_MAX:
                _log_request(seen)

    def tick(self) -> None:
        """Begin a new second. Log how many requests of the last second were not logged."""
        dropped, self._lines = self._lines - LINES_A_SECOND_MAX, 0
        if self._requests == "failed" and dropped > 0:
            _log.warning("requests_not_logged", extra={"fields": {"requests": dropped}})


def _log_request(seen: Seen) -> None:
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
    """Return the queue of a command as account/name, or as account/region/name for a region that is not the node's.

    It is empty if the name is not valid, so that no other text of a client gets into a log.
    """
    url = getattr(command, "queue_url", None)
    owner, name = queue_path(url, account) if url else (account, getattr(command, "queue_name", None) or "")
    if ACCOUNT.match(account_of(owner)) and (QUEUE_NAME.match(name) or FIFO_QUEUE_NAME.match(name)):
        return f"{owner}/{name}"
    return ""


def _parents(headers: list[bytes]) -> dict[str, str]:
    found = (_PARENT.match(line) for line in headers)
    return {each[1].decode().lower(): each[2].decode() for each in found if each is not None}
