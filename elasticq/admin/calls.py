"""The execution of actions of SQS and SNS for the admin port: AWS JSON 1.0 in and out, for any account and region.

The page, the command line and scripts can do here all that a client can do, in the shapes that AWS documents. A new
action of SQS works here without further code. SNS has no JSON: its members have the names and shapes of AWS's SDKs.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from elasticq.admin.source import AdminSource
from elasticq.model.actions import CALLABLE
from elasticq.model.errors import SqsError, TopicError
from elasticq.model.names import ACCOUNT, REGION, owner_in
from elasticq.model.results import Result, StaleResult
from elasticq.peers.questions import Answer
from elasticq.runtime.runtime import RuntimeStopped
from elasticq.wire import json, topic_xml
from elasticq.wire.operations import BY_SEQUENCE, OPERATIONS, PEEK, SNS, SQS, STS, Operation

TOPIC_ACTIONS: Final[dict[str, Operation]] = {
    name if name not in OPERATIONS else operation.command.__name__: operation
    for name, operation in SNS.operations.items()
}
"""SNS's actions. SQS has AddPermission and RemovePermission, too, so SNS's are named AddTopicPermission and so on."""
ACTIONS: Final[dict[str, Operation]] = {
    name: operation
    for name, operation in {**OPERATIONS, PEEK.name: PEEK, **BY_SEQUENCE, **TOPIC_ACTIONS, **STS.operations}.items()
    if operation.command.__name__ in CALLABLE
}
"""The actions of the port by name: all of the table (model/actions.py) that are not internal."""
Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""A function that executes an action with its members, or raises NotExecuted."""


class NotExecuted(Exception):
    """An action that was not executed or failed: the HTTP status, AWS's code and a message for people."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def owner_of(source: AdminSource, account: str, region: str) -> str:
    """Return the owner (model/names.py) for an account and a region. An empty one means the node's own.

    Raise NotExecuted if the account or the region is malformed.
    """
    if account and not ACCOUNT.match(account):
        raise NotExecuted(400, "InvalidParameterValue", "An account is 12 digits.")
    if region and not REGION.match(region):
        raise NotExecuted(400, "InvalidParameterValue", "A region is 1 to 32 lower-case letters, digits and hyphens.")
    return owner_in(account or source.account, "" if region == source.region else region)


def check_may_change(source: AdminSource) -> None:
    """Raise NotExecuted if the admin port is read-only."""
    if source.is_read_only:
        raise NotExecuted(403, "ReadOnly", "This admin port is read-only (admin.read_only).")


async def execute(source: AdminSource, action: str, body: bytes, owner: str) -> bytes:
    """Execute one action and return the body of its answer, a JSON object. Raise NotExecuted if it fails."""
    operation = ACTIONS.get(action)
    if operation is None:
        raise NotExecuted(404, "InvalidAction", f"There is no action {action[:80]}.")
    if not operation.read_only:
        check_may_change(source)
    try:
        command = json.decode(operation, body)
        result = unwrapped(await source.execute(command, owner))
    except SqsError as error:
        code = error.code if isinstance(error, TopicError) else error.json_type
        raise NotExecuted(error.status, code, error.message) from error
    except RuntimeStopped as error:
        raise NotExecuted(503, "ServiceUnavailable", "The server is stopping.") from error
    if action in TOPIC_ACTIONS:
        return msgspec.json.encode(topic_xml.plain_of(operation, result))
    return json.encode(operation, command, result) or b"{}"


async def ask(source: AdminSource, action: str, given: dict[str, Any], owner: str) -> dict[str, Any]:
    """Execute one action with plain values and return its answer as plain values. Raise NotExecuted if it fails."""
    answer: dict[str, Any] = msgspec.json.decode(await execute(source, action, msgspec.json.encode(given), owner))
    return answer


def unwrapped(result: Result) -> Result:
    """Return the inner result of a StaleResult (the answer of a member without a master), any other unchanged."""
    return result.result if isinstance(result, StaleResult) else result


async def answer(source: AdminSource, action: str, body: bytes, account: str, region: str) -> Answer:
    """Execute one action. An error becomes an answer with AWS's members ``__type`` and ``message``."""
    try:
        return 200, await execute(source, action, body, owner_of(source, account, region))
    except NotExecuted as error:
        document = {"__type": SQS.error_prefix + error.code, "message": error.message}
        return error.status, msgspec.json.encode(document)
