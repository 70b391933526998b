"""What the forms of the patient client share: how a call is told to botocore, and what comes after a try of it.

The forms differ in how they wait: patient.py blocks its thread.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import getpid
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from elasticq.client.endpoints import Endpoints
from elasticq.client.lines import Lines, place_for
from elasticq.client.retries import Retries, passes

_BROKEN: Final = frozenset(("ConnectionError", "HTTPClientError"))
"""Names of the bases of botocore's exceptions of connections that cannot be made, break or time out; by their names, as
nothing here may import boto3: the light client works without it."""


class _Try(NamedTuple):
    """endpoint: where it goes; empty for the client's own."""

    invocation_id: str
    endpoint: str


_TRY: Final[ContextVar[_Try | None]] = ContextVar("elasticq-try", default=None)
"""The try that this thread or task makes."""


class Patience:
    """What a wrapped client knows: its endpoints, its lines of sends, how long it waits."""

    def __init__(self, client: Any, endpoints: Endpoints, max_wait_s: float) -> None:
        meta = client.meta
        self.endpoints = endpoints
        self.operations = meta.method_to_api_mapping
        self.max_wait_s = max_wait_s
        self._lines: dict[int, Lines] = {}
        meta.events.register("before-call.sqs", _prepare, unique_id="elasticq-patience")

    @property
    def lines(self) -> Lines:
        """Those of this process: in one that was forked, the threads that held a lock or a turn are not there."""
        process = getpid()
        return self._lines.get(process) or self._lines.setdefault(process, Lines())


class Call:
    """One call of a client over all its tries, which have one id."""

    def __init__(self, patience: Patience, operation: str, members: dict[str, Any]) -> None:
        self.members = members
        self.place = place_for(operation, members)
        self.endpoint = ""  # of the last try
        self._endpoints = patience.endpoints
        self._retries = Retries(patience.max_wait_s)
        self._invocation_id = str(uuid4())

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

    def failed(self, failure: Exception) -> float:
        """How long to wait before the next try, in seconds. Raises ``failure`` if there is to be none."""
        pause_s = self._retries.next_pause_s() if is_transient(failure) else None
        if pause_s is None:
            raise failure
        return pause_s


def _prepare(params: dict[str, Any], **_: Any) -> None:
    """Give botocore's request the id of its call and the endpoint that it goes to, before it is signed."""
    attempt = _TRY.get()
    if attempt is None:
        return  # the client is used beside its wrapper
    params["context"].setdefault("retries", {})["invocation-id"] = attempt.invocation_id
    if attempt.endpoint:
        scheme, host, *_rest = urlsplit(attempt.endpoint)
        params["url"] = urlunsplit((scheme, host, *urlsplit(params["url"])[2:]))


def is_transient(failure: Exception) -> bool:
    """True if botocore's exception may not come again: no answer, an overloaded server, throttling."""
    response = getattr(failure, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return passes(status, response.get("Error", {}).get("Code"))
    names = {kind.__name__ for kind in type(failure).__mro__}
    return bool(names & _BROKEN) and "SSLError" not in names
