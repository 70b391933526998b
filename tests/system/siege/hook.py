"""A small web server to which topics post. It confirms; its path decides how it answers."""

import json
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

SLOW_S: Final = 1.0
CONFIRM_S: Final = 5.0


class Hook:
    """url: what the paths ok, raw, fail, slow and cut follow; posts: how many came, by path."""

    def __init__(self) -> None:
        self.posts: Counter[str] = Counter()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                hook.posts[self.path] += 1
                if self.path == "/cut":
                    self.close_connection = True
                    return
                if self.path == "/slow":
                    time.sleep(SLOW_S)
                self.send_response(500 if self.path == "/fail" else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()
                confirm(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Write nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


def confirm(body: bytes) -> None:
    """Visit the address that confirms a subscription, if the body has one."""
    try:
        url = json.loads(body)["SubscribeURL"]
    except (ValueError, TypeError, KeyError, RecursionError):  # clients publish bodies of any depth
        return
    with suppress(OSError, ValueError), urllib.request.urlopen(url, timeout=CONFIRM_S) as answer:
        answer.read()


@contextmanager
def hooked() -> Iterator[Hook]:
    hook = Hook()
    thread = threading.Thread(target=hook.server.serve_forever, args=(0.1,))
    thread.start()
    try:
        yield hook
    finally:
        hook.server.shutdown()
        thread.join()
        hook.server.server_close()
