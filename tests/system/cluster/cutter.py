"""An HTTP proxy that lets a client's requests through and cuts replies: what a client cannot tell from a lost call.

The first attempt of each SDK call (by its ``amz-sdk-invocation-id``) is cut, and the second one passes. Mostly its
reply is cut: the server has answered in full, and the client sees its connection reset without a byte of it. Every
``HASTY``-th time the connection to the server ends, too, and before the reply came: the server may notice that its
client is gone while it executes the call. ``differing`` names the calls whose second reply was another one than the
reply that had been cut; a receive that found nothing may find something when it is tried again.

    strips_ids    the server sees no ids, and takes attempts of one call for calls of their own
"""

import os
import socket
import struct
import threading
from collections import Counter
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple

from tests.system.cluster.proxy import HOST

HASTY = 5  # not a divisor of the calls of a round in cut_calls, so that it meets others in each round
REPLY_S = 60
AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER of a socket whose close is a reset."""


class Reply(NamedTuple):
    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes


class Cutter:
    """Stands before ``port``; has itself a ``port``."""

    def __init__(self, port: int, *, strips_ids: bool = False) -> None:
        self.target = port
        self.strips_ids = strips_ids
        self.cuts: Counter[str] = Counter()
        self.cut_hastily = 0
        self.differing: list[str] = []
        self._replies: dict[str, Reply | None] = {}
        self._lock = threading.Lock()
        cutter = self

        class Handler(_Handler):
            def do_POST(self) -> None:
                cutter.pass_on(self)

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> "Cutter":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def pass_on(self, request: "_Handler") -> None:
        """One attempt of a call."""
        body = request.rfile.read(int(request.headers["Content-Length"]))
        action = request.headers["X-Amz-Target"].rpartition(".")[2]
        call = request.headers["amz-sdk-invocation-id"]
        with self._lock:
            is_first = call not in self._replies
            is_hasty = is_first and sum(self.cuts.values()) % HASTY == HASTY - 1
            if is_first:
                self._replies[call] = None
                self.cuts[action] += 1
                self.cut_hastily += is_hasty
        headers = dict(request.headers)
        if self.strips_ids:
            del headers["amz-sdk-invocation-id"]
        server = HTTPConnection(HOST, self.target, timeout=REPLY_S)
        server.request("POST", request.path, body, headers)
        if is_hasty:
            assert server.sock
            reset(server.sock)
            request.cut()
            return
        answer = server.getresponse()
        reply = Reply(answer.status, answer.reason, answer.getheaders(), answer.read())
        server.close()
        if is_first:
            self._replies[call] = reply
            request.cut()
            return
        before = self._replies[call]
        found_nothing = action == "ReceiveMessage" and before is not None and before.body == b"{}"
        if before is not None and not found_nothing and (reply.status, reply.body) != (before.status, before.body):
            self.differing.append(f"{action}: {before.status} {before.body!r}, then {reply.status} {reply.body!r}")
        request.answer(reply)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, reply: Reply) -> None:
        self.send_response_only(reply.status, reply.reason)
        for name, value in reply.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def cut(self) -> None:
        """Reset the client's connection."""
        self.close_connection = True
        reset(self.connection)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def reset(connection: socket.socket) -> None:
    """End a connection at once, whatever else refers to the socket."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    os.close(connection.detach())
