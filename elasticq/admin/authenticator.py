"""The check of each request to the admin port: the token, or a browser's login; no web page of another origin.

It also refuses notifications of topics, because a subscription may name this port as its endpoint.

Without a token, only the Host header shows that a request comes from a page under a rebound name (wire/browsers.py).
Probes may use any Host.
"""

from collections.abc import Awaitable, Callable
from hmac import compare_digest
from typing import Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from elasticq.wire.browsers import Browsers
from elasticq.wire.headers import NOT_FOR_POSTS, NOTIFICATION_TYPE

OPEN_PAGES: Final = frozenset(("/health", "/ready", "/master"))
"""Pages for probes, which have no token. They only show whether this member is alive, ready and the master."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Token:
    """The token that operators must show. value: empty if none is needed, None if nobody is admitted.

    The value may change between two requests.
    """

    def __init__(self, value: str | None = "") -> None:
        self.value = value


def make_authenticator(
    shared: Token, browsers: Browsers | None, is_logged_in: Callable[[web.Request], bool]
) -> Middleware:
    """Return the middleware that admits or refuses requests.

    browsers: the check of web pages' requests, None without one; is_logged_in: returns whether a request may come
    without the header (page/login.py).
    """

    @web.middleware
    async def authenticator(request: web.Request, handler: Handler) -> web.StreamResponse:
        if NOTIFICATION_TYPE in request.headers:
            return _refuse(403, NOT_FOR_POSTS)
        token = shared.value
        is_unsigned = token == "" and request.path not in OPEN_PAGES
        reason = browsers.refusal(request.headers.get, is_unsigned=is_unsigned) if browsers is not None else ""
        if reason:
            return _refuse(403, reason)
        if token == "" or request.path in OPEN_PAGES:
            return await handler(request)
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if token is None:
            return _refuse(403, "auth is strict: set admin.token_file to use this page")
        if is_logged_in(request):
            return await handler(request)
        if not given and request.method == "GET" and "text/html" in request.headers.get("Accept", ""):
            return web.Response(status=303, headers={"Location": "/login"})
        if not compare_digest(given, b"Bearer " + token.encode()):
            return _refuse(401, "this page needs the header Authorization: Bearer TOKEN (admin.token_file)")
        return await handler(request)

    return authenticator


def _refuse(status: int, reason: str) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    body = msgspec.json.encode({"error": reason})
    return web.Response(status=status, body=body, headers=headers, content_type="application/json")
