"""What the forms of the patient client share: how a call is told to botocore, and what comes after a try of it.

The forms differ in how they wait: patient.py blocks its thread, patient_async.py awaits.
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
"""Names of the bases of botocore's exceptions of connections that cannot be made, break or time out; by their names, as
nothing here may import boto3: the light client works without it."""
_CUT: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
"""Failures of TLS that are those of the connection under it: the server went away in the middle of a handshake."""


class _Try(NamedTuple):
    """endpoint: where it goes; empty for the client's own."""

    invocation_id: str
    endpoint: str


_TRY: Final[ContextVar[_Try | None]] = ContextVar("elasticq-try", default=None)
"""The try that this thread or task makes."""


class Patience:
    """What a wrapped client knows: its endpoints, its lines of sends, how long it waits."""

    def __init__(self, client: Any, endpoints: Endpoints, max_wait_s: float) -> None:
        """Raises ValueError if the client is not one for SQS."""
        meta = client.meta
        if meta.service_model.service_name != "sqs":
            raise ValueError(f"this is a client for {meta.service_model.service_name}, and not for sqs")
        self.endpoints = endpoints
        self.operations = meta.method_to_api_mapping
        self.max_wait_s = max_wait_s
        self._lines: dict[int, Lines] = {}
        # One handler for all wrappers of a client: it lives as long as the client.
        meta.events.register("before-call.sqs", _prepare, unique_id="elasticq-prepare")

    @property
    def lines(self) -> Lines:
        """Those of this process: in one that was forked, the threads that held a lock or a turn are not there."""
        process = getpid()
        return self._lines.get(process) or self._lines.setdefault(process, Lines())


class Call:
    """One call of a client over all its tries, which have one id. ``answer`` is there when no pause follows a try."""

    def __init__(self, patience: Patience, operation: str, members: dict[str, Any]) -> None:
        self.members = members  # of the next try
        self.endpoint = ""  # of the last try
        self.answer: Any = None
        self.running: Future[Any] | None = None  # the last try, if a thread makes it
        self.place = place_for(operation, members)
        self._is_batch = operation in batches.OPERATIONS
        self._batch: batches.Batch | None = None  # once it is answered
        self._endpoints = patience.endpoints
        self._retries = Retries(patience.max_wait_s)
        self._invocation_id = str(uuid4())
        self._gave_up_with: Exception | None = None

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Have botocore send the call's id, to the current endpoint, in what this thread or task does inside."""
        self.endpoint = self._endpoints.current
        is_elsewhere = self.endpoint != self._endpoints.own
        token = _TRY.set(_Try(self._invocation_id, self.endpoint if is_elsewhere else ""))
        try:
            yield
        finally:
            _TRY.reset(token)

    def failed(self, failure: Exception) -> float | None:
        """How long to wait before the next try, in seconds. Raises ``failure`` if there is to be none.

        None if that would hide what earlier tries brought about: the answer then tells of those.
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
        """How long to wait before what is left of a batch is sent, in seconds; None if nothing is left, or no time."""
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
        """Let those go on that wait behind this call, or fail them if it gave up."""
        if self.place is not None:
            lines.leave(self.place, self._gave_up_with)


def _prepare(params: dict[str, Any], **_: Any) -> None:
    """Give botocore's request the id of its call and the endpoint that it goes to, before it is signed."""
    attempt = _TRY.get()
    if attempt is None:
        return  # the client is used beside its wrapper
    params["context"].setdefault("retries", {})["invocation-id"] = attempt.invocation_id
    if attempt.endpoint:
        scheme, host, *_rest = urlsplit(attempt.endpoint)
        params["url"] = urlunsplit((scheme, host, *urlsplit(params["url"])[2:]))


def check_length(http_response: Any, **_: Any) -> None:
    """Raise botocore's ConnectionClosedError if boto3 took an answer that was cut: it takes any for an empty one."""
    said = http_response.headers.get("content-length")
    if _TRY.get() is None or said is None or int(said) == len(http_response.content):
        return
    from botocore.exceptions import ConnectionClosedError  # it called this

    raise ConnectionClosedError(endpoint_url=http_response.url)


def is_transient(failure: Exception) -> bool:
    """True if botocore's exception may not come again: no answer, an overloaded server, throttling."""
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
