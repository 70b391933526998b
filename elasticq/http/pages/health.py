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
    state = "running" if _is_running(context) else "starting"
    return web.json_response({"services": {"sqs": state, "sns": state}, "edition": "elasticq", "version": __version__})


def _is_running(context: ServerContext) -> bool:
    return context.runtime.status().ready and not context.runtime.stopped


def _localstack_init(context: ServerContext) -> web.Response:
    """Return the page for programs that wait until LocalStack's init scripts have run. There are none here."""
    is_running = _is_running(context)
    completed = {"BOOT": True, "START": is_running, "READY": is_running, "SHUTDOWN": context.stopping}
    return web.json_response({"completed": completed, "scripts": []})


def _localstack_stage(stage: str) -> Callable[[ServerContext], web.Response]:
    def answer(context: ServerContext) -> web.Response:
        is_over = {"boot": True, "shutdown": context.stopping}.get(stage, _is_running(context))
        return web.json_response({"completed": is_over, "scripts": []})

    return answer


def _localstack_info(context: ServerContext) -> web.Response:
    """Return LocalStack's members that say something about elasticq."""
    return web.json_response(
        {"version": __version__, "edition": "elasticq", "is_license_activated": False, "is_docker": False}
    )


PAGES: Final[dict[str, Callable[[ServerContext], web.Response]]] = {
    "/health": _health,
    "/ready": _ready,
    "/_localstack/health": _localstack_health,
    "/_localstack/info": _localstack_info,
    "/_localstack/init": _localstack_init,
    **{f"/_localstack/init/{stage}": _localstack_stage(stage) for stage in ("boot", "start", "ready", "shutdown")},
}
"""The pages by their paths below the context path. Requests of foreign web pages get them, too."""
