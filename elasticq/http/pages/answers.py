"""The HTTP responses of the slow path: encoded answers, refusals, and 404."""

from aiohttp import web

from elasticq.http.connection import exchange
from elasticq.http.connection.exchange import Answer
from elasticq.http.connection.head import FORM, JSON
from elasticq.http.connection.responses import RETRY_HEADERS
from elasticq.http.context import ServerContext
from elasticq.http.pages import rest
from elasticq.http.pages.asked import Asked
from elasticq.http.pages.execution import request_id
from elasticq.http.pages.rest_call import BASES
from elasticq.http.pages.rest_call import Asked as RestAsked
from elasticq.model.errors import SqsError
from elasticq.wire.services import guess

UNKNOWN_OPERATION = b"<UnknownOperationException/>"


def respond(answer: Answer, number: str) -> web.Response:
    """Return the response with an encoded answer. number: the request id."""
    headers = {"Content-Type": answer.content_type.decode(), "x-amzn-RequestId": number}
    if answer.query_error:
        headers["x-amzn-query-error"] = answer.query_error
    if answer.status == 503:
        headers |= RETRY_HEADERS
    if answer.stale_ms >= 0:
        headers["x-elasticq-stale"] = str(answer.stale_ms)
    return web.Response(status=answer.status, body=answer.body, headers=headers)


def refuse(context: ServerContext, asked: Asked, error: SqsError) -> web.Response:
    """Return an error in the protocol of the request, as far as its head shows the protocol."""
    if (path := asked.path.removeprefix(context.context_path)).startswith(BASES):
        return rest.problem(RestAsked(asked.request.method, path, "", b""), error)
    protocol = JSON if asked.has_target else FORM
    number = request_id(context)
    service = guess(context.services, asked.credential, asked.query.encode() + b"&" + asked.body)
    return respond(exchange.encode_error(service, protocol, error, number), number)


def not_found() -> web.Response:
    return web.Response(status=404, body=UNKNOWN_OPERATION, content_type="text/xml")
