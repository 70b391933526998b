"""Calls of SQS and SNS on the slow path, in all shapes that are not hot: odd framing, and Query by URL."""

from time import perf_counter

from aiohttp import web

from elasticq.http.admission.caller import invocation
from elasticq.http.connection import exchange
from elasticq.http.connection.head import FORM, FORM_FOR_JSON, JSON, OTHER
from elasticq.http.context import ServerContext, command_bytes
from elasticq.http.pages import access, execution, unknown
from elasticq.http.pages.answers import not_found, respond
from elasticq.http.pages.asked import Asked
from elasticq.model.commands import Call
from elasticq.model.errors import SqsError
from elasticq.wire.fence import add_fence
from elasticq.wire.services import guess


async def post(context: ServerContext, asked: Asked) -> web.Response:
    """Return the answer to a POST. Its protocol follows from the content type, the target or the URL."""
    protocol, query = asked.head.protocol, asked.query.encode()
    if protocol == OTHER:
        if asked.has_target:
            protocol = JSON
        elif b"Action=" in query:
            protocol = FORM
        elif context.authenticator is None:
            return not_found()
        else:
            return unknown.answer(context, asked)
    form_or_body = asked.body
    if protocol != JSON and query:
        form_or_body = query + b"&" + asked.body if asked.body else query
    return await serve(context, asked, protocol, form_or_body)


async def serve(context: ServerContext, asked: Asked, protocol: int, form_or_body: bytes) -> web.Response:
    """Return the answer to an SQS or SNS request.

    form_or_body: the body; for a form, the parameters of the URL and the body.
    """
    request_id, began_s, head = execution.request_id(context), perf_counter(), asked.head
    if protocol == FORM and asked.wants_json:
        protocol = FORM_FOR_JSON
    account, command, action = "", None, "" if head.operation is None else head.operation.name
    try:
        principal, account = access.admit_link(context, asked, protocol) or access.admit(context, asked)
        operation, command = exchange.decode(
            context.services, protocol, head.operation, form_or_body, asked.path, asked.credential
        )
        action = operation.name
        if not operation.read_only:
            access.check_method(context, asked, operation.name)
        if head.fence:
            add_fence(command, head.fence)
        execution.make_room(context, asked, command_bytes(command, len(form_or_body)))
    except SqsError as error:
        context.count(request_id, action, account, command, error, error.status, began_s, head)
        service = guess(context.services, asked.credential, form_or_body)
        return respond(exchange.encode_error(service, protocol, error, request_id), request_id)
    path = "/" if protocol == JSON else asked.path
    invocation_key = invocation(principal, account, operation.name, head.invocation_id, form_or_body, path)
    endpoint, origin = execution.endpoint(context, asked), asked.connection.origin
    call = Call(command, principal, account, endpoint, invocation_key, origin, head.trace_header)
    outcome = await execution.submit(context, call, asked.request)
    answer = exchange.encode(context.services, protocol, operation, command, outcome, request_id)
    context.count(request_id, action, account, command, outcome, answer.status, began_s, head)
    execution.log_deletion(asked, action, command, principal, account, outcome)
    return respond(answer, request_id)
