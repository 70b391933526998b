"""The decoding of requests and encoding of answers with the ``wire`` package, for the hot and the slow path."""

from logging import getLogger
from typing import Final

from msgspec import Struct

from elasticq.http.connection.failures import Failures
from elasticq.http.connection.head import FORM_FOR_JSON, JSON
from elasticq.model.commands import Command
from elasticq.model.errors import InternalFailure, SqsError, UnknownOperation
from elasticq.model.results import Result, StaleResult
from elasticq.wire import json, query, query_json, topic_xml
from elasticq.wire.operations import Operation, Service
from elasticq.wire.services import Services, of_operation

JSON_TYPE: Final = b"application/x-amz-json-1.0"
XML_TYPE: Final = b"text/xml"
QUERY_JSON_TYPE: Final = b"application/json"

_log = getLogger(__name__)
_failures = Failures()


class Answer(Struct, gc=False):
    """A response without its standard headers.

    query_error: the header x-amzn-query-error, for JSON errors only; empty for none.
    stale_ms: the header x-elasticq-stale: how old the state is if a member without a master answers; -1 for none.
    """

    status: int
    content_type: bytes
    body: bytes
    query_error: str = ""
    stale_ms: int = -1


def decode(
    services: Services, protocol: int, operation: Operation | None, body: bytes, path: str, credential: bytes = b""
) -> tuple[Operation, Command]:
    """Return operation and command of a request. Raise an SqsError if it is malformed or unknown.

    credential: the text with the scope of the signature; empty if the request is not signed.
    """
    try:
        if protocol != JSON:
            return query.decode_any(services, body, path, credential)
        if operation is None:
            raise unknown_operation()
        return operation, json.decode(operation, body)
    except SqsError:
        raise
    except Exception as failure:
        raise internal_failure(failure) from failure


def unknown_operation() -> UnknownOperation:
    """Return the error for a JSON request whose header names no known operation."""
    return UnknownOperation("The operation is unknown.")


def encode(
    services: Services,
    protocol: int,
    operation: Operation,
    command: Command,
    outcome: Result | SqsError,
    request_id: str,
) -> Answer:
    """Return the answer to an executed command, with status 500 if its result cannot be encoded."""
    if isinstance(outcome, SqsError):
        return encode_error(of_operation(services, operation), protocol, outcome, request_id)
    if isinstance(outcome, StaleResult):
        answer = encode(services, protocol, operation, command, outcome.result, request_id)
        answer.stale_ms = outcome.age_ms
        return answer
    try:
        if protocol == JSON:
            return Answer(200, JSON_TYPE, json.encode(operation, command, outcome))
        if protocol == FORM_FOR_JSON and operation.is_wrapped:
            return Answer(200, QUERY_JSON_TYPE, topic_xml.encode_as_json(operation, outcome, request_id))
        if protocol == FORM_FOR_JSON:
            return Answer(200, QUERY_JSON_TYPE, query_json.encode(operation, command, outcome, request_id))
        return Answer(200, XML_TYPE, query.encode(operation, command, outcome, request_id))
    except Exception as failure:
        service = of_operation(services, operation)
        return encode_error(service, protocol, internal_failure(failure), request_id)


def encode_error(service: Service, protocol: int, error: SqsError, request_id: str) -> Answer:
    if protocol == JSON:
        body, query_error = json.encode_error(service, error)
        return Answer(error.status, JSON_TYPE, body, query_error)
    if protocol == FORM_FOR_JSON:
        return Answer(error.status, QUERY_JSON_TYPE, query_json.encode_error(error, request_id))
    return Answer(error.status, XML_TYPE, query.encode_error(service, error, request_id))


def internal_failure(failure: Exception) -> InternalFailure:
    """Log where an unexpected exception was raised, and return a general error for the client.

    Neither contains the exception's text, because that may quote the request.
    """
    line = _failures.line("wire_failed", failure, failure.__traceback__)
    if line:
        _log.error("%s", line)
    return InternalFailure()
