"""Wraps a boto3 SQS client so that calls wait out a server or a whole cluster that is gone for minutes.

A plain boto3 client gives up within a tenth of a second. Here a call is tried again until it is answered or its time
is up, at one endpoint after another, always under the same ``amz-sdk-invocation-id``: to elasticq all tries are one
call, and have one effect within the five minutes for which it remembers the id. Sends to one message group of a FIFO
queue stay in the order in which they were called, also between threads.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from json import load
from os import getpid
from threading import Event, Lock, local
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from urllib.request import urlopen
from uuid import uuid4
from weakref import WeakValueDictionary

from elasticq.client.retries import Retries, passes

LEARN_S: Final = 2.0
_BROKEN: Final = frozenset(("ConnectionError", "HTTPClientError"))
"""Names of the bases of botocore's exceptions of connections that cannot be made, break or time out; by their names, as
nothing here may import boto3: the light client works without it."""


def wrap(client: Any, *, endpoints: Iterable[str] = (), admin: Iterable[str] = (), max_wait_s: float = 600) -> Any:
    """Return an object with the methods of ``client``, a boto3 SQS client, whose calls wait for up to ``max_wait_s``.

    endpoints: URLs of SQS ports that are tried in turn, besides the client's own; admin: URLs of admin ports, any of
    which is asked for the members of its cluster when a call fails. What cannot become better is raised at once.
    """
    return _Patient(client, tuple(endpoints), tuple(admin), max_wait_s)


class _Group:
    """The sends to one message group, in the order in which they were called; the first of them is under way."""

    def __init__(self) -> None:
        self.turns: list[Event] = []

    def join(self) -> Event:
        """The event is set when it is this send's turn."""
        turn = Event()
        self.turns.append(turn)
        self.turns[0].set()
        return turn

    def leave(self, turn: Event) -> None:
        self.turns.remove(turn)
        if self.turns:
            self.turns[0].set()


class _Patient:
    def __init__(self, client: Any, endpoints: tuple[str, ...], admin: tuple[str, ...], max_wait_s: float) -> None:
        self._client = client
        self._own = client.meta.endpoint_url
        self._endpoints = [self._own, *(each for each in endpoints if each != self._own)]
        self._admin = admin
        self._max_wait_s = max_wait_s
        self._at = 0
        self._call = local()  # the id of the call that this thread makes
        self._begin_lines()
        client.meta.events.register("before-call.sqs", self._prepare)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name not in self._client.meta.method_to_api_mapping:
            return found

        def call(**members: Any) -> Any:
            if self._pid != getpid():  # forked: the threads that held the lock or a turn are not here
                self._begin_lines()
            with self._in_order(name, members):
                return self._until_answered(found, members)

        return call

    def _until_answered(self, method: Callable[..., Any], members: dict[str, Any]) -> Any:
        retries = Retries(self._max_wait_s)
        self._call.invocation_id = str(uuid4())
        try:
            while True:
                endpoint = self._call.endpoint = self._endpoints[self._at % len(self._endpoints)]
                try:
                    return method(**members)
                except Exception as failure:
                    if not _is_transient(failure):
                        raise
                    self._go_to_the_next(endpoint)
                    if not retries.pause():
                        raise
        finally:
            del self._call.invocation_id

    def _prepare(self, params: dict[str, Any], **_: Any) -> None:
        """Give botocore's request the id of this call and the endpoint that it goes to, before it is signed."""
        invocation_id = getattr(self._call, "invocation_id", None)
        if invocation_id is None:
            return  # the client is used beside its wrapper
        params["context"].setdefault("retries", {})["invocation-id"] = invocation_id
        if self._call.endpoint != self._own:
            scheme, host, *_rest = urlsplit(self._call.endpoint)
            params["url"] = urlunsplit((scheme, host, *urlsplit(params["url"])[2:]))

    # --- endpoints ---

    def _go_to_the_next(self, failed: str) -> None:
        learnt = self._members()
        with self._lock:
            self._endpoints += [each for each in learnt if each not in self._endpoints]
            if self._endpoints[self._at % len(self._endpoints)] == failed:  # no other thread has gone on already
                self._at += 1

    def _members(self) -> list[str]:
        for admin in self._admin:
            try:
                with urlopen(f"{admin.rstrip('/')}/cluster", timeout=LEARN_S) as answer:
                    return [member["http"] for member in load(answer)["members"] if member.get("http")]
            except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError):
                continue
        return []

    # --- order ---

    def _begin_lines(self) -> None:
        self._pid = getpid()
        self._lock = Lock()
        self._groups: WeakValueDictionary[tuple[str, str], _Group] = WeakValueDictionary()

    @contextmanager
    def _in_order(self, name: str, members: dict[str, Any]) -> Iterator[None]:
        """Let one send to a message group be under way at a time; who sends to several joins all of them at once."""
        url = members.get("QueueUrl", "")
        if name not in ("send_message", "send_message_batch") or not url.endswith(".fifo"):
            yield
            return
        sends = members.get("Entries", ()) if name == "send_message_batch" else (members,)
        ids = {str(send.get("MessageGroupId", "")) for send in sends}
        joined: list[tuple[_Group, Event]] = []
        try:
            with self._lock:
                for each in ids:
                    group = self._groups.setdefault((url, each), _Group())
                    joined.append((group, group.join()))
            for _, turn in joined:
                turn.wait()
            yield
        finally:
            with self._lock:
                for group, turn in joined:
                    group.leave(turn)


def _is_transient(failure: Exception) -> bool:
    """True if botocore's exception may not come again: no answer, an overloaded server, throttling."""
    response = getattr(failure, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return passes(status, response.get("Error", {}).get("Code"))
    names = {kind.__name__ for kind in type(failure).__mro__}
    return bool(names & _BROKEN) and "SSLError" not in names
