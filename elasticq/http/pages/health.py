"""The pages that programs poll: whether the process answers, and whether it is ready."""

from collections.abc import Callable
from typing import Final

from aiohttp import web

from elasticq import __version__
from elasticq.http.context import ServerContext


def _health(context: ServerContext) -> web.Response:
    """Return that this process answers, with its durability if that is reduced.

    Clients recognise elasticq by the Server header.
    """
    return web.Response(text=context.health, headers={"Server": f"elasticq/{__version__}"})


def _ready(context: ServerContext) -> web.Response:
    status = context.runtime.status()
    if context.runtime.stopped or context.stopping:
        return web.Response(status=503, text="stopping")
    return web.Response(text="OK") if status.ready else web.Response(status=503, text=status.reason)


def _localstack_health(context: ServerContext) -> web.Response:
    """Return the page that programs poll while they wait for LocalStack to start."""
    state = "running" if context.runtime.status().ready and not context.runtime.stopped else "starting"
    return web.json_response({"services": {"sqs": state, "sns": state}, "edition": "elasticq", "version": __version__})


PAGES: Final[dict[str, Callable[[ServerContext], web.Response]]] = {
    "/health": _health,
    "/ready": _ready,
    "/_localstack/health": _localstack_health,
}
"""The pages by their paths below the context path. Requests of foreign web pages get them, too."""
