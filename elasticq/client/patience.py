"""The common parts of the two patient clients: how a call reaches botocore, and what follows a try.

The two differ in how they wait: patient.py blocks its thread, patient_async.py awaits.
"""

import ssl
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from os import getpid
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from elasticq.client import batches
from elasticq.client.endpoints import Endpoints
from elasticq.client.lines import Lines, place_for
from elasticq.client.retries import Retries, passes

_BROKEN: Final = frozenset(("ConnectionError", "HTTPClientError"))
"""The names of the base classes of botocore's exceptions for connections that cannot be made, break or time out.

They are names because this module must not import boto3: the light client works without it.
"""
_CUT: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
"""The TLS errors whose cause is the connection: the server closed it during a handshake."""


class _Try(NamedTuple):
    """One try of a call. endpoint: where it is sent; empty for the client's own endpoint."""

    invocation_id: str
    endpoint: str


_TRY: Final[ContextVar[_Try | None]] = ContextVar("elasticq-try", default=None)
"""The current try of this thread or task."""


class Patience:
    """The state of a wrapped client: its endpoints, its lines of sends, and how long it waits."""

    def __init__(self, client: Any, endpoints: Endpoints, max_wait_s: float) -> None:
        """Register the handler at the client. Raise ValueError if it is not a client for SQS."""
        meta = client.meta
        if meta.service_model.service_name != "sqs":
            raise ValueError(f"this is a client for {meta.service_model.service_name}, and not for sqs")
        self.endpoints = endpoints
        self.operations = meta.method_to_api_mapping
        self.max_wait_s = max_wait_s
        self._lines: dict[int, Lines] = {}
        # All wrappers of a client share one handler, which lives as long as the client.
        meta.events.register("before-call.sqs", _prepare, unique_id="elasticq-prepare")

    @property
    def lines(self) -> Lines:
        """Return the lines of this process. A forked process gets new ones, as it lacks the threads in the old ones."""
        process = getpid()
        return self._lines.get(process) or self._lines.setdefault(process, Lines())


class Call:
    """One call of a client with all its tries, which share one id.

    ``answer`` is set when ``failed`` or ``answered`` return None.
    """

    def __init__(self, patience: Patience, operation: str, members: dict[str, Any]) -> None:
        self.members = members  # those of the next try
        self.endpoint = ""  # that of the last try
        self.answer: Any = None
        self.running: Future[Any] | None = None  # the last try, if a thread makes it
        self.place = place_for(operation, members)
        self._is_batch = operation in batches.OPERATIONS
        self._batch: batches.Batch | None = None  # set with the first answer
        self._endpoints = patience.endpoints
        self._retries = Retries(patience.max_wait_s)
        self._invocation_id = str(uuid4())
        self._gave_up_with: Exception | None = None

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Make botocore send the call's id, and send it to the current endpoint, for calls inside this context."""
        self.endpoint = self._endpoints.current
        is_elsewhere = self.endpoint != self._endpoints.own
        token = _TRY.set(_Try(self._invocation_id, self.endpoint if is_elsewhere else ""))
        try:
            yield
        finally:
            _TRY.reset(token)

    def failed(self, failure: Exception) -> float | None:
        """Return the seconds to wait before the next try after ``failure``. Raise ``failure`` if there is no next try.

        Return None if earlier tries of a batch were answered: then ``answer`` holds their results.
        """
        can_pass = is_transient(failure)
        pause_s = self._retries.next_pause_s() if can_pass else None
        if pause_s is not None:
            return pause_s
        if can_pass:
            self._gave_up_with = failure
        if self._batch is None:
            raise failure
        self.answer = self._batch.whole()
        return None

    def answered(self, answer: Any) -> float | None:
        """Return the seconds to wait before the rest of a batch is sent; None if nothing is left, or no time."""
        if not self._is_batch:
            self.answer = answer
            return None
        if self._batch is None:
            self._batch = batches.Batch(self.members)
        pause_s = self._retries.next_pause_s() if self._batch.take(answer) else None
        if pause_s is None:
            self.answer = self._batch.whole()
        else:
            self.members = self._batch.members
            self._invocation_id = str(uuid4())
        return pause_s

    def leave(self, lines: Lines) -> None:
        """Let the calls behind this one continue, or make them fail if this one gave up."""
        if self.place is not None:
            lines.leave(self.place, self._gave_up_with)


def _prepare(params: dict[str, Any], **_: Any) -> None:
    """Put the id of the call and its endpoint into botocore's request, before it is signed."""
    attempt = _TRY.get()
    if attempt is None:
        return  # the client is used without its wrapper
    params["context"].setdefault("retries", {})["invocation-id"] = attempt.invocation_id
    if attempt.endpoint:
        scheme, host, *_rest = urlsplit(attempt.endpoint)
        params["url"] = urlunsplit((scheme, host, *urlsplit(params["url"])[2:]))


def check_length(http_response: Any, **_: Any) -> None:
    """Raise botocore's ConnectionClosedError if the answer is shorter than its Content-Length.

    boto3 does not check this, and would return an empty answer.
    """
    said = http_response.headers.get("content-length")
    if _TRY.get() is None or said is None or int(said) == len(http_response.content):
        return
    from botocore.exceptions import ConnectionClosedError  # botocore called this, so it is installed

    raise ConnectionClosedError(endpoint_url=http_response.url)


def is_transient(failure: Exception) -> bool:
    """Return whether a retry may help after botocore's exception: no answer, an overloaded server, throttling."""
    response = getattr(failure, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return passes(status, response.get("Error", {}).get("Code"))
    names = {kind.__name__ for kind in type(failure).__mro__}
    if names.isdisjoint(_BROKEN):
        return False
    return "SSLError" not in names or _is_cut(failure)


def _is_cut(failure: BaseException) -> bool:
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, _CUT):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
