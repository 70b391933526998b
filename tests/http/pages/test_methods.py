"""A method that a path does not have is answered with 405 and those that it has."""

import pytest

from elasticq.http.pages import health, peeking, testing
from elasticq.rest import routes
from tests.http.desk import HOST, Desk, until

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
PATHS: dict[str, set[str]] = {
    **{path: {"GET", "HEAD"} for path in health.PAGES},
    **{path: {"GET", "HEAD", "POST"} for path in ("/health", "/ready")},  # a POST there is a call of SQS
    **{path: set(methods) for path, methods in testing.METHODS.items()},
    peeking.PEEK_PATH: {"POST"},
    peeking.LIST_PATH: {"GET", "POST"},
    "/": {"GET", "POST"},
    "/000000000000/jobs": {"GET", "POST"},
}
for route in routes.ROUTES:
    path = route.path.replace("{queue}", "jobs").replace("{id}", "1")
    for base in (routes.BASE, routes.DOQ_BASE):
        PATHS.setdefault(base + path, set()).add(route.method)


@pytest.mark.parametrize("path", PATHS)
async def test_method_that_is_not_declared_is_405_with_the_declared_ones(path: str) -> None:
    desk = Desk(has_testing=True)
    for method in METHODS:
        answer = await desk.ask(f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 0\r\n\r\n".encode())
        if method in PATHS[path] or (method == "OPTIONS" and not path.lower().startswith(routes.BASE)):
            assert answer.status != 405, method
        else:
            assert answer.status == 405, method
            assert set(answer.headers["allow"].split(", ")) == PATHS[path]
    await desk.close()


async def test_what_is_not_declared_has_no_head_either() -> None:
    desk = Desk()
    protocol, line = desk.connect()
    protocol.data_received(f"HEAD / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    await until(lambda: line.received.startswith(b"HTTP/1.1 405 "))
    await desk.close()
