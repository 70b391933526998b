"""The pages that show the messages of a queue: /_elasticq/peek, and LocalStack's /_aws/sqs/messages.

LocalStack's page has no paging: it answers up to MESSAGES_MAX messages at once.
The answer has the tree of a ReceiveMessage answer, in one of three forms:

- XML
- the same tree as JSON, if the client accepts JSON. One message is an object
  there, several are a list, because LocalStack converts its XML.
- JSON 1.0, for a boto3 client that has this page as its endpoint
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec
from aiohttp import web

from elasticq.engine.stored.contents import message_bytes
from elasticq.http.connection import exchange
from elasticq.http.connection.exchange import Answer
from elasticq.http.connection.head import FORM, FORM_FOR_JSON, JSON
from elasticq.http.context import ServerContext
from elasticq.http.pages import execution
from elasticq.http.pages.access import admit
from elasticq.http.pages.answers import respond
from elasticq.http.pages.asked import Asked
from elasticq.model.commands import Call, ReceiveMessage
from elasticq.model.errors import InvalidRequest, QueueDoesNotExist, RequestTooLarge, SqsError
from elasticq.model.extensions import Peek
from elasticq.model.limits import ANSWER_BYTES_MAX, QUEUE_URL_CHARS_MAX
from elasticq.model.results import PeekedMessage, PeekResult, ReceivedMessage, ReceiveMessageResult, Result, StaleResult
from elasticq.wire.digests import body_md5
from elasticq.wire.operations import PEEK, SQS

PEEK_PATH: Final = "/_elasticq/peek"
LIST_PATH: Final = "/_aws/sqs/messages"
MESSAGES_MAX: Final = 10_000
LIST_BYTES_MAX: Final = ANSWER_BYTES_MAX
LIST_REQUEST_BYTES_MAX: Final = 16_384  # a request has a QueueUrl and two flags
PAGES_MAX: Final = 1_000
HANDLE: Final = "SQS/BACKDOOR/ACCESS"
TREE: Final = -1
"""The protocol number of LocalStack's JSON, in addition to JSON and FORM."""
JSON_TYPE: Final = b"application/json"

Submit = Callable[[Peek], Awaitable[Result | SqsError]]
_RECEIVE: Final = SQS.operations["ReceiveMessage"]


async def serve_peek(context: ServerContext, asked: Asked) -> web.Response:
    """Return the answer of PEEK_PATH."""
    request_id = execution.request_id(context)
    try:
        principal, account = admit(context, asked)
        _, command = exchange.decode((SQS,), JSON, PEEK, asked.body, "")
    except SqsError as error:
        return respond(exchange.encode_error(SQS, JSON, error, request_id), request_id)
    endpoint = execution.endpoint(context, asked)
    call = Call(command, principal, account, endpoint, b"", asked.connection.origin)
    outcome = await execution.submit(context, call, asked.request)
    return respond(exchange.encode((SQS,), JSON, PEEK, command, outcome, request_id), request_id)


async def serve_listing(context: ServerContext, asked: Asked) -> web.Response:
    """Return LocalStack's page of a queue's messages."""
    request_id, request, head = execution.request_id(context), asked.request, asked.head
    target = request.headers.get("X-Amz-Target", "")
    protocol = JSON if target else TREE if "json" in request.headers.get("Accept", "") else FORM
    try:
        principal, account = admit(context, asked)
        members, action = members_of(asked.query, head.protocol, asked.body)
        action = target.rpartition(".")[2] or action
        listing = Listing(asked.path, members, action)
        if listing.region:
            account = context.callers.in_region(account, listing.region)

        async def submit(command: Peek) -> Result | SqsError:
            endpoint = execution.endpoint(context, asked)
            call = Call(command, principal, account, endpoint, b"", asked.connection.origin)
            return await execution.submit(context, call, request)

        found = await answer(protocol, listing, submit, request_id)
    except SqsError as error:
        found = encode_error(protocol, error, request_id)
    return respond(found, request_id)


class Listing:
    """The queue and the flags of a request to LIST_PATH. The constructor raises SqsError for an invalid request.

    region: the region in the path; empty if the path names none, which means the caller's region.
    """

    def __init__(self, path: str, members: dict[str, str], action: str) -> None:
        if action not in ("", "ReceiveMessage"):
            raise InvalidRequest("This endpoint only accepts ReceiveMessage calls")
        parts = [unquote(part) for part in path.removeprefix(LIST_PATH).split("/")]
        self.queue_url = "/".join(parts[-2:]) if len(parts) == 4 else members.get("QueueUrl", "")
        self.region = parts[1] if len(parts) == 4 else ""
        if not 0 < len(self.queue_url) <= QUEUE_URL_CHARS_MAX:
            raise QueueDoesNotExist
        self.is_invisible_shown = members.get("ShowInvisible", "").lower() in ("true", "1")
        self.is_delayed_shown = members.get("ShowDelayed", "").lower() in ("true", "1")

    async def collect(self, submit: Submit) -> list[PeekedMessage]:
        """Return the queue's messages. Serve other clients between two pages. Raise SqsError if the node refuses."""
        found: list[PeekedMessage] = []
        at: int | None = 0
        pages = size_bytes = 0
        while at is not None and len(found) < MESSAGES_MAX and size_bytes < LIST_BYTES_MAX and pages < PAGES_MAX:
            outcome = await submit(Peek(queue_url=self.queue_url, from_sequence=at, limit=1_000))
            if isinstance(outcome, StaleResult):
                outcome = outcome.result
            if isinstance(outcome, SqsError):
                raise outcome
            assert isinstance(outcome, PeekResult)
            found += outcome.messages
            size_bytes += sum(map(_size_bytes, outcome.messages))
            at, pages = outcome.next_sequence, pages + 1
            await asyncio.sleep(0)
        return found

    def result(self, found: list[PeekedMessage]) -> ReceiveMessageResult:
        return ReceiveMessageResult([self._shown(message) for message in self._chosen(found)])

    def _chosen(self, found: list[PeekedMessage]) -> list[PeekedMessage]:
        """Return the messages that the flags select. A FIFO group with a message in flight is invisible as a whole."""
        excluded = {"delayed"} - ({"delayed"} if self.is_delayed_shown else set())
        if self.is_invisible_shown:
            return [message for message in found if message.state not in excluded]
        excluded.add("inflight")
        locked = {_fifo_group(message) for message in found if message.state == "inflight"} - {None}
        return [message for message in found if message.state not in excluded and _fifo_group(message) not in locked]

    def _shown(self, message: PeekedMessage) -> ReceivedMessage:
        attributes = dict(message.attributes)
        if self.is_invisible_shown:
            attributes["IsVisible"] = str(message.state != "inflight").lower()
        if self.is_delayed_shown:
            attributes["IsDelayed"] = str(message.state == "delayed").lower()
        return ReceivedMessage(message.message_id, HANDLE, message.body, attributes, message.message_attributes)


def _size_bytes(message: PeekedMessage) -> int:
    system = sum(len(name) + len(value) for name, value in message.attributes.items())
    return message_bytes(message.body, message.message_attributes) + system


def _fifo_group(message: PeekedMessage) -> str | None:
    return message.attributes.get("MessageGroupId") if "SequenceNumber" in message.attributes else None


def members_of(query: str, content_protocol: int, body: bytes) -> tuple[dict[str, str], str]:
    """Return a request's parameters from URL, form or JSON, and its Action.

    Raise RequestTooLarge if the body is longer than LIST_REQUEST_BYTES_MAX.
    """
    if len(body) > LIST_REQUEST_BYTES_MAX:
        raise RequestTooLarge(f"The request is longer than {LIST_REQUEST_BYTES_MAX} bytes.")
    members = dict(parse_qsl(query, keep_blank_values=True))
    if content_protocol == JSON and body:
        try:
            given = msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            given = {}
        members |= {name: str(value) for name, value in given.items() if isinstance(value, (str, bool, int))}
    elif content_protocol in (FORM, FORM_FOR_JSON):
        members |= dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    return members, members.get("Action", "")


async def answer(protocol: int, listing: Listing, submit: Submit, request_id: str) -> Answer:
    """Return the answer with all messages. Raise SqsError if the node refuses.

    A thread does the encoding: ten thousand messages would hold the loop for too long.
    """
    found = await listing.collect(submit)
    return await asyncio.to_thread(lambda: encode(protocol, listing.result(found), request_id))


def encode(protocol: int, result: ReceiveMessageResult, request_id: str) -> Answer:
    if protocol != TREE:
        return exchange.encode((SQS,), protocol, _RECEIVE, ReceiveMessage(), result, request_id)
    messages = [_tree(message) for message in result.messages]
    inside = {"Message": messages[0] if len(messages) == 1 else messages} if messages else None
    answer = {"ReceiveMessageResult": inside, "ResponseMetadata": {"RequestId": request_id}}
    return Answer(200, JSON_TYPE, msgspec.json.encode({"ReceiveMessageResponse": answer}))


def encode_error(protocol: int, error: SqsError, request_id: str) -> Answer:
    if protocol != TREE:
        return exchange.encode_error(SQS, protocol, error, request_id)
    written = {"Type": "Sender" if error.sender_fault else "Receiver", "Code": error.code, "Message": error.message}
    body = msgspec.json.encode({"ErrorResponse": {"Error": written, "RequestId": request_id}})
    return Answer(error.status, JSON_TYPE, body)


def _tree(message: ReceivedMessage) -> dict[str, Any]:
    written: dict[str, Any] = {
        "MessageId": message.message_id,
        "MD5OfBody": body_md5(message.body),
        "Body": message.body,
        "Attribute": [{"Name": name, "Value": value} for name, value in (message.attributes or {}).items()],
        "ReceiptHandle": message.receipt_handle,
    }
    if message.message_attributes:
        written["MessageAttribute"] = [
            {"Name": name, "Value": value} for name, value in message.message_attributes.items()
        ]
    return written
