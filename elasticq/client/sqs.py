"""The light client: boto3's methods, keywords and answers, by AWS JSON 1.0 over one connection a thread.

What differs from boto3: nothing is checked before it is sent, there are no
proxies, paginators and waiters, and errors are ``SqsError``. All attempts of a
call carry one amz-sdk-invocation-id, by which elasticq knows them for one: a
repeated send stores nothing, a repeated receive gets the same messages.

Calls about messages are written out here, as their answers are checked; all
others are made from the table of actions (``model/actions.py``).
"""

import json
import os
import re
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import md5
from itertools import count
from time import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from weakref import WeakSet

from elasticq.client.connection import Answer, Connection, tls_context
from elasticq.client.credentials import NOBODY, Credentials, find_credentials, find_region
from elasticq.client.errors import DigestMismatch, SqsError, Unreachable
from elasticq.client.retries import Retries
from elasticq.client.signing import Signer
from elasticq.model.actions import ACTIONS, TARGET_PREFIX

Members = dict[str, Any]

CONNECT_S_DEFAULT: Final = 10.0
READ_S_DEFAULT: Final = 60.0
RETRY_S_DEFAULT: Final = 30.0
_JSON_TYPE: Final = "application/x-amz-json-1.0"
_PEEK_PATH: Final = "/_elasticq/peek"


def _binary(value: object) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} cannot be sent")


_encode: Final = json.JSONEncoder(separators=(",", ":"), default=_binary).encode


class Sqs:
    """A client for one endpoint. Threads may share it: each has a connection of its own."""

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
        """Opens no connection yet. ``credentials``: None finds them as boto3 does, UNSIGNED signs nothing.

        Where none are found and ``region`` is given, calls are signed in the name of nobody, as their region stands in
        the signature: a server takes them that takes calls without a signature, too.

        endpoint: scheme://host[:port], AWS's own for the region if empty; retry_s: how long a call is tried
        again after a refused connection, a 5xx or throttling; verify: of https, False or a file of CAs.
        Raises LookupError for a profile that is not there, ValueError for what is no endpoint.
        """
        self.region = region or find_region(profile)
        self.endpoint = endpoint or f"https://sqs.{self.region}.amazonaws.com"
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
        host = parts.netloc.rpartition("@")[2]
        self._signer = Signer(found, self.region, host) if found.access_key_id else None
        self._start = f"Host: {host}\r\nUser-Agent: elasticq-light\r\nContent-Type: {_JSON_TYPE}\r\n".encode()
        self._heads: dict[str, tuple[str, bytes]] = {}
        self._calls = count()
        self._mark = os.urandom(10).hex()
        self._of_thread = threading.local()
        self._lock = threading.Lock()
        self._connections: WeakSet[Connection] = WeakSet()  # a thread's ends with it

    def close(self) -> None:
        """Close the connections of all threads; a later call opens its own again."""
        with self._lock:
            connections, self._connections = list(self._connections), WeakSet()
        self._of_thread = threading.local()
        for connection in connections:
            connection.close()

    def __enter__(self) -> "Sqs":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Members]:
            """The methods that are made from the table of actions."""

    # --- messages: all other actions get their methods below the class ----------------

    def send_message(self, **members: Any) -> Members:
        return self._call("SendMessage", members, _check_sent)

    def send_message_batch(self, **members: Any) -> Members:
        return self._call("SendMessageBatch", members, _check_sent_batch)

    def receive_message(self, **members: Any) -> Members:
        """Takes boto3's keywords, and ElasticqPageSize (1 to 1,000) instead of MaxNumberOfMessages."""
        return self._call("ReceiveMessage", members, _check_received, members.get("WaitTimeSeconds") or 0)

    def delete_message(self, **members: Any) -> Members:
        return self._call("DeleteMessage", members)

    def delete_message_batch(self, **members: Any) -> Members:
        return self._call("DeleteMessageBatch", members)

    def change_message_visibility(self, **members: Any) -> Members:
        return self._call("ChangeMessageVisibility", members)

    def change_message_visibility_batch(self, **members: Any) -> Members:
        return self._call("ChangeMessageVisibilityBatch", members)

    def peek(self, **members: Any) -> Members:
        """Reads messages without receiving them; only elasticq can.

        Keywords: QueueUrl, FromSequence, Limit (1 to 1,000), MessageGroupId, SentFromMs, SentUntilMs, States. The
        answer has Messages and NextSequence, which is None after the newest message.
        """
        return self._call("Peek", members, _decode_attributes)

    def change_priority(self, **members: Any) -> Members:
        """Gives messages of a priority queue another priority; only elasticq can.

        Keywords: QueueUrl, MessageIds (1 to 1,000), Priority. The answer has Changed and NotFound, lists of MessageIds;
        the whole queue was looked through for those that were not found, in as many calls as that takes.
        """
        found: list[str] = []
        answer = self._call("ElasticqChangePriority", members)
        while answer.get("NextToken"):
            found += answer["Changed"]
            left = {"MessageIds": answer["NotFound"], "NextToken": answer["NextToken"]}
            answer = self._call("ElasticqChangePriority", {**members, **left})
        return {**answer, "Changed": [*found, *answer["Changed"]]}

    # --- a call -----------------------------------------------------------------------

    def _call(
        self,
        action: str,
        members: Members,
        check: Callable[[Members, Members], None] | None = None,
        wait_s: float = 0,
    ) -> Members:
        """The answer, after as many attempts as it takes. Raises SqsError, Unreachable, DigestMismatch."""
        body = _encode(members).encode()
        invocation_id = f"{self._mark}{next(self._calls):012x}".encode()
        retries: Retries | None = None
        while True:
            try:
                answer = self._attempt(action, body, invocation_id, wait_s)
                result: Members = _read(action, answer)
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
        """One exchange; a second one at once where the kept connection turns out to have been closed."""
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
            head = self._heads[action] = self._head(action)
        path, start = head
        signature = b""
        if self._signer is not None:
            target = "" if action == "Peek" else f"{TARGET_PREFIX}.{action}"
            signature = self._signer.headers(path, _JSON_TYPE, target, body, int(time()))
        return b"%bamz-sdk-invocation-id: %b\r\n%bContent-Length: %d\r\n\r\n%b" % (
            start,
            invocation_id,
            signature,
            len(body),
            body,
        )

    def _head(self, action: str) -> tuple[str, bytes]:
        if action == "Peek":
            return _PEEK_PATH, f"POST {_PEEK_PATH} HTTP/1.1\r\n".encode() + self._start
        line = f"POST {self._path} HTTP/1.1\r\n"
        target = f"X-Amz-Target: {TARGET_PREFIX}.{action}\r\nx-amzn-query-mode: true\r\n"
        return self._path, line.encode() + self._start + target.encode()

    def _connection(self) -> Connection:
        """The connection of this thread; a forked process opens its own."""
        kept = self._of_thread
        if getattr(kept, "pid", 0) != os.getpid():
            kept.connection = Connection(self._host, self._port, self._tls, self._connect_s, self._read_s)
            kept.pid = os.getpid()
            with self._lock:
                self._connections.add(kept.connection)
        connection: Connection = kept.connection
        return connection


def _method(action: str) -> Callable[..., Members]:
    def call(self: Sqs, **members: Any) -> Members:
        return self._call(action, members)

    call.__name__ = _method_name(action)
    call.__qualname__ = f"Sqs.{call.__name__}"
    call.__doc__ = f"{action}, with boto3's keywords and answer."
    return call


def _method_name(action: str) -> str:
    """As boto3 calls it: get_queue_url for GetQueueUrl."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower()


for _row in ACTIONS:
    if not hasattr(Sqs, _method_name(_row.name)):
        setattr(Sqs, _method_name(_row.name), _method(_row.name))


# --- answers ------------------------------------------------------------------------------


def _read(action: str, answer: Answer) -> Members:
    body = answer.body
    if answer.status != 200:
        raise _error(action, answer)
    if not body:
        return {}
    try:
        result = json.loads(body)
    except ValueError:
        result = None
    if not isinstance(result, dict):
        raise Unreachable(f"{action}: the answer is no JSON object: something else answers there")
    return result


def _error(action: str, answer: Answer) -> SqsError:
    try:
        written = json.loads(answer.body)
    except ValueError:
        written = None
    if not isinstance(written, dict):
        written = {}
    kind = str(written.get("__type", "")).rpartition("#")[2] or str(answer.status)
    message = str(written.get("message") or written.get("Message") or "")
    code, _, fault = answer.header(b"x-amzn-query-error").decode("latin-1").partition(";")
    sender_fault = fault == "Sender" if fault else 400 <= answer.status < 500
    return SqsError(action, code or kind, kind, message, answer.status, sender_fault)


def _digest(body: str) -> str:
    return md5(body.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _compare(said: object, body: str) -> None:
    if said is not None and said != _digest(body):
        raise DigestMismatch(f"a body's MD5 is {_digest(body)}, and the server says {said}")


def _check_sent(members: Members, result: Members) -> None:
    _compare(result.get("MD5OfMessageBody"), members.get("MessageBody", ""))


def _check_sent_batch(members: Members, result: Members) -> None:
    bodies = {entry["Id"]: entry.get("MessageBody", "") for entry in members.get("Entries", ())}
    for sent in result.get("Successful", ()):
        _compare(sent.get("MD5OfMessageBody"), bodies.get(sent["Id"], ""))


def _check_received(members: Members, result: Members) -> None:
    messages = result.get("Messages")
    if not messages:
        return
    for message in messages:
        said = message.get("MD5OfBody")
        if said is not None and said != md5(message["Body"].encode(), usedforsecurity=False).hexdigest():
            _compare(said, message["Body"])
        if "MessageAttributes" in message:
            _decode_binary(message["MessageAttributes"])


def _decode_attributes(members: Members, result: Members) -> None:
    for message in result.get("Messages", ()):
        _decode_binary(message.get("MessageAttributes", {}))


def _decode_binary(attributes: dict[str, Members]) -> None:
    """Turns base64 into bytes, which is what boto3 returns."""
    for attribute in attributes.values():
        if "BinaryValue" in attribute:
            attribute["BinaryValue"] = b64decode(attribute["BinaryValue"])
