"""A web server of a test's own, in a thread, that takes notifications and answers what it is told to."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

PATIENCE_S = 30.0


class Request(NamedTuple):
    path: str
    headers: dict[str, str]
    body: str

    @property
    def envelope(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # with Python's 5 the system drops some of ten connections at once, and each tries again


class Receiver:
    """status: what it answers; location: the header of this name that it answers with."""

    def __init__(self) -> None:
        self.status = 200
        self.location = ""
        self.requests: list[Request] = []
        self._news = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                request = Request(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                status = receiver._take(request)
                self.send_response(status)
                if receiver.location:
                    self.send_header("Location", receiver.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing to the tests' output."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def _take(self, request: Request) -> int:
        with self._news:
            self.requests.append(request)
            self._news.notify_all()
            return self.status

    def wait_for(self, count: int) -> list[Request]:
        """The requests, once there are so many. Raises TimeoutError."""
        until_s = time.monotonic() + PATIENCE_S
        with self._news:
            while len(self.requests) < count:
                if not self._news.wait(until_s - time.monotonic()):
                    raise TimeoutError(f"{len(self.requests)} of {count} requests came")
            return list(self.requests)


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver._server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver._server.shutdown()
        thread.join()
        receiver._server.server_close()
