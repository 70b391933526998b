"""A server that answers what it is told, so that every turn of a connection can be tried."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from elasticq.client import Credentials, Sqs

KEY = Credentials("AKID", "secret")
JSON_TYPE = "application/x-amz-json-1.0"
CUT = b""
"""In place of an answer: the connection is closed."""


def answer(document: object, status: str = "200 OK", **headers: str) -> bytes:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status}\r\nContent-Type: {JSON_TYPE}\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def failure(kind: str, status: str, query_error: str = "") -> bytes:
    headers = {"x-amzn-query-error": query_error} if query_error else {}
    return answer({"__type": f"com.amazonaws.sqs#{kind}", "message": f"about {kind}"}, status, **headers)


Pieces = bytes | list[bytes | threading.Event]
"""An answer, or what is sent of it piece by piece; an event is waited for."""


class Scripted:
    """Answers the n-th request with the n-th of ``script``; the last one repeats."""

    def __init__(self, *script: Pieces) -> None:
        self._script = list(script)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: list[bytes] = []
        self.connections = 0
        self._open: SimpleQueue[socket.socket] = SimpleQueue()
        self._lock = threading.Lock()
        self.closed: SimpleQueue[bool] = SimpleQueue()  # an item for each connection that its client ended

    def __enter__(self) -> "Scripted":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        while not self._open.empty():
            client = self._open.get()
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            client.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._open.put(client)
                self.connections += 1
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            for request in requests(client.recv):
                with self._lock:
                    pieces = self._script[min(len(self.requests), len(self._script) - 1)]
                    self.requests.append(request)
                for piece in [pieces] if isinstance(pieces, bytes) else pieces:
                    if isinstance(piece, threading.Event):
                        piece.wait()
                        continue
                    if piece == CUT:
                        client.shutdown(socket.SHUT_RDWR)
                        return
                    client.sendall(piece)
            self.closed.put(True)


def client(server: Scripted, **options: Any) -> Sqs:
    return Sqs(server.endpoint, "us-east-1", **({"credentials": KEY} | options))


def requests(receive: Callable[[int], bytes]) -> Iterator[bytes]:
    """Whole requests, each with a Content-Length or none."""
    data = b""
    while more := receive(65_536):
        data += more
        while (end := data.find(b"\r\n\r\n")) >= 0:
            length = headers(data[: end + 4]).get("content-length", "0")
            whole = end + 4 + int(length)
            if len(data) < whole:
                break
            yield data[:whole]
            data = data[whole:]


def headers(request: bytes) -> dict[str, str]:
    lines = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
