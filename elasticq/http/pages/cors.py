"""The CORS headers of answers to browsers: which pages of other origins may send requests and read answers."""

from typing import Final

from aiohttp import web

from elasticq.http.context import ServerContext
from elasticq.http.pages.answers import not_found

_PREFLIGHT_S: Final = 600
"""How long a browser may remember the answer to a preflight, in seconds."""
_REQUEST_HEADERS: Final = (
    "authorization, content-type, x-amz-date, x-amz-target, x-amz-content-sha256, x-amz-security-token,"
    " x-amz-user-agent, x-amzn-query-mode, amz-sdk-invocation-id, amz-sdk-request"
)


def is_preflight(request: web.BaseRequest) -> bool:
    """Return whether a browser asks with this request which requests a page may send."""
    return request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers


def answer_options(request: web.BaseRequest) -> web.Response:
    """Return what pages of other origins may send. ``add_headers`` decides which origins may.

    An OPTIONS that is not a preflight gets 404.
    """
    if not is_preflight(request):
        return not_found()
    headers = {
        "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
        "Access-Control-Allow-Headers": _REQUEST_HEADERS,
        "Access-Control-Max-Age": str(_PREFLIGHT_S),
    }
    return web.Response(headers=headers)


def add_headers(context: ServerContext, request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Add the headers that let pages of listed origins read the answer."""
    origin, browsers = request.headers.get("Origin"), context.browsers
    if origin is not None and browsers is not None and browsers.is_foreign(origin):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = "x-amzn-RequestId, x-amzn-query-error"
        response.headers["Vary"] = "Origin"
