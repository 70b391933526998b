"""The methods of each path of the SQS port. A request with another method gets 405 and the list of them."""

from typing import Final

from aiohttp import web

from elasticq.http.connection.head import EXTENSIONS
from elasticq.http.pages import health, peeking, testing

_READ: Final = ("GET", "HEAD")
_CALLS: Final = ("GET", "POST")
"""Those of the API's actions. A POST to any path outside of EXTENSIONS is a call."""


def refusal(path: str, below: str, method: str) -> web.Response | None:
    """Return the answer to a method that the path does not have; None if it has the method.

    below: the path below the context path. OPTIONS is a browser's question, which cors.py answers. REST refuses methods
    itself, by its table of routes.
    """
    allowed = _allowed(path, below)
    if method in allowed or method == "OPTIONS":
        return None
    text = f"{path} allows only {' and '.join(allowed)}."
    return web.json_response({"message": text}, status=405, headers={"Allow": ", ".join(allowed)})


def _allowed(path: str, below: str) -> tuple[str, ...]:
    if below in health.PAGES and not path.startswith(EXTENSIONS):
        return (*_READ, "POST")
    if below in health.PAGES:
        return _READ
    if path in testing.METHODS:
        return testing.METHODS[path]
    return ("POST",) if path == peeking.PEEK_PATH else _CALLS
