"""The common base of the light clients: one endpoint, one connection for each thread, signatures and retries.

All attempts of a call have the same amz-sdk-invocation-id, so elasticq treats them as one call. A repeated send stores
nothing, and a repeated receive gets the same messages.
"""

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import count
from time import time
from typing import Any, ClassVar, Final, Self
from urllib.parse import urlsplit
from weakref import WeakSet

from elasticq.client.connection import Answer, Connection, tls_context
from elasticq.client.credentials import NOBODY, Credentials, find_credentials, find_region
from elasticq.client.errors import DigestMismatch, SqsError, Unreachable
from elasticq.client.retries import Retries
from elasticq.client.signing import Signer

Members = dict[str, Any]

CONNECT_S_DEFAULT: Final = 10.0
READ_S_DEFAULT: Final = 60.0
RETRY_S_DEFAULT: Final = 30.0


class Client(ABC):
    """A client for one endpoint. Threads may share it, as each thread has its own connection.

    service: the name of the API in signatures and in AWS's host names; content_type: that of its requests.
    """

    service: ClassVar[str]
    content_type: ClassVar[str]

    def __init__(
        self,
        endpoint: str = "",
        region: str = "",
        credentials: Credentials | tuple[str, ...] | None = None,
        *,
        profile: str = "",
        connect_s: float = CONNECT_S_DEFAULT,
        read_s: float = READ_S_DEFAULT,
        retry_s: float = RETRY_S_DEFAULT,
        verify: bool | str = True,
    ) -> None:
        """Prepare a client; it opens connections later.

        endpoint: scheme://host[:port], or empty for AWS's endpoint of the region. credentials: None finds them as boto3
        does, UNSIGNED signs nothing. retry_s: how long a call is retried after a refused connection, a 5xx or
        throttling. verify: for https, as in boto3: True, False or a file of CAs.

        If no credentials are found and ``region`` is given, calls are signed with a placeholder key, because only the
        signature contains the region. A server that accepts unsigned calls accepts these, too.

        Raise LookupError if a named profile does not exist, and ValueError if the endpoint is not a URL.
        """
        self.region = region or find_region(profile)
        self.endpoint = endpoint or f"https://{self.service}.{self.region}.amazonaws.com"
        parts = urlsplit(self.endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{endpoint!r} is no endpoint, such as http://127.0.0.1:9324")
        is_tls = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port or (443 if is_tls else 80)
        self._path = parts.path or "/"
        self._tls = tls_context(verify) if is_tls else None
        self._connect_s, self._read_s, self.retry_s = connect_s, read_s, retry_s
        found = find_credentials(profile) if credentials is None else Credentials(*credentials)
        if region and credentials is None and not found.access_key_id:
            found = NOBODY
        self._credentials, self._verify = found, verify
        host = parts.netloc.rpartition("@")[2]
        self._signer = Signer(found, self.region, host, self.service) if found.access_key_id else None
        self._start = f"Host: {host}\r\nUser-Agent: elasticq-light\r\nContent-Type: {self.content_type}\r\n".encode()
        self._heads: dict[str, tuple[str, bytes]] = {}
        self._calls = count()
        self._mark = os.urandom(10).hex()
        self._of_thread = threading.local()
        self._lock = threading.Lock()
        self._connections: WeakSet[Connection] = WeakSet()  # weak, as a thread's connection ends with the thread

    def at(self, endpoint: str, *, read_s: float, retry_s: float) -> Self:
        """Return a client for another endpoint of the same cluster, with these timeouts and its own connections."""
        return type(self)(
            endpoint,
            self.region,
            self._credentials,
            connect_s=self._connect_s,
            read_s=read_s,
            retry_s=retry_s,
            verify=self._verify,
        )

    def close(self) -> None:
        """Close the connections of all threads. A later call opens a new one."""
        with self._lock:
            connections, self._connections = list(self._connections), WeakSet()
        self._of_thread = threading.local()
        for connection in connections:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # --- a call -----------------------------------------------------------------------

    def _call(
        self,
        action: str,
        members: Members,
        check: Callable[[Members, Members], None] | None = None,
        wait_s: float = 0,
        invocation_id: bytes = b"",
    ) -> Members:
        """Make a call, with retries until ``retry_s`` is over, and return its answer.

        check: is called with the members and the answer, and may raise. wait_s: how long the server may wait with the
        answer. invocation_id: that of an earlier try of the same call; empty for a new call. Raise SqsError,
        Unreachable or DigestMismatch if the last attempt failed.
        """
        body = self._written(action, members)
        invocation_id = invocation_id or f"{self._mark}{next(self._calls):012x}".encode()
        retries: Retries | None = None
        while True:
            try:
                answer = self._attempt(action, body, invocation_id, wait_s)
                result = self._read(action, answer)
                if check is not None:
                    check(members, result)
            except (SqsError, Unreachable, DigestMismatch) as failure:
                if retries is None:
                    retries = Retries(self.retry_s)
                if not retries.wait(failure):
                    raise
            else:
                attempts = 0 if retries is None else retries.attempts
                result["ResponseMetadata"] = {"HTTPStatusCode": answer.status, "RetryAttempts": attempts}
                return result

    def _attempt(self, action: str, body: bytes, invocation_id: bytes, wait_s: float) -> Answer:
        """Make one attempt. If the server had closed the kept connection, repeat it at once on a new one."""
        connection = self._connection()
        was_used = connection.is_used
        request = self._request(action, body, invocation_id)
        patience_s = wait_s if wait_s >= self._read_s / 2 else 0
        try:
            return connection.exchange(request, patience_s)
        except Unreachable as failure:
            if not was_used or isinstance(failure.__cause__, TimeoutError):
                raise
            return connection.exchange(request, patience_s)

    def _request(self, action: str, body: bytes, invocation_id: bytes) -> bytes:
        head = self._heads.get(action)
        if head is None:
            path, lines = self._head(action)
            head = self._heads[action] = path, lines.encode() + self._start
        path, start = head
        signature = b""
        if self._signer is not None:
            signature = self._signer.headers(path, self.content_type, self._target(action), body, int(time()))
        return b"%bamz-sdk-invocation-id: %b\r\n%bContent-Length: %d\r\n\r\n%b" % (
            start,
            invocation_id,
            signature,
            len(body),
            body,
        )

    def _connection(self) -> Connection:
        """Return the connection of this thread. A forked process gets its own."""
        kept = self._of_thread
        if getattr(kept, "pid", 0) != os.getpid():
            kept.connection = Connection(self._host, self._port, self._tls, self._connect_s, self._read_s)
            kept.pid = os.getpid()
            with self._lock:
                self._connections.add(kept.connection)
        connection: Connection = kept.connection
        return connection

    # --- an API -----------------------------------------------------------------------

    @abstractmethod
    def _written(self, action: str, members: Members) -> bytes:
        """Return the body of a request."""

    @abstractmethod
    def _head(self, action: str) -> tuple[str, str]:
        """Return the path of a request, and its first line with the header lines that name the action, if any."""

    @abstractmethod
    def _target(self, action: str) -> str:
        """Return the value of the header X-Amz-Target, which is signed; empty if the API has no such header."""

    @abstractmethod
    def _read(self, action: str, answer: Answer) -> Members:
        """Return the members of an answer. Raise SqsError for an error, Unreachable for an answer of another server."""


def method_name(action: str) -> str:
    """Return boto3's name for an action: get_queue_url for GetQueueUrl."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower()


def add_methods(kind: type[Client], names: Iterable[str]) -> None:
    """Add a method to a client for each of these actions, unless it has one."""
    for name in names:
        if not hasattr(kind, method_name(name)):
            setattr(kind, method_name(name), _method(kind, name))


def _method(kind: type[Client], action: str) -> Callable[..., Members]:
    def call(self: Client, **members: Any) -> Members:
        return self._call(action, members)

    call.__name__ = method_name(action)
    call.__qualname__ = f"{kind.__name__}.{call.__name__}"
    call.__doc__ = f"{action}, with boto3's keywords and answer."
    return call
