"""The creation of the settings' queues and topics when a master serves: through the runtime, as a client does it."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from elasticq.engine.topics import actions, subscriptions
from elasticq.model.commands import Call, DeclareQueue
from elasticq.model.errors import ServiceUnavailable, SqsError, invalid_parameter
from elasticq.model.results import QueueDeclaredResult, Result
from elasticq.model.topic_commands import CreateTopic, Subscribe
from elasticq.runtime.runtime import Runtime, RuntimeStopped
from elasticq.runtime.ticket import Awaited
from elasticq.server.rehearsal import PRINCIPAL, Declaration

AGAIN_S: Final = 0.5
_NOT_YET: Final = (ServiceUnavailable,)

_log = logging.getLogger(__name__)


async def declare(runtime: Runtime, commands: Sequence[Declaration], account: str, endpoint: str = "") -> list[str]:
    """Create queues and topics. Log what failed, and return a text for each failure.

    Return when all calls are answered, or the runtime stops. Without a master this can take long. endpoint:
    scheme://host:port for the links in notifications.
    """
    failed: list[str] = []
    try:
        for command in commands:
            outcome = await _executed(runtime, Call(command, PRINCIPAL, account, endpoint))
            failed += _logged(command, outcome)
    except RuntimeStopped:
        pass
    return failed


async def _executed(runtime: Runtime, call: Call) -> Result | SqsError:
    while True:
        ticket = Awaited()
        runtime.submit(call, ticket)
        outcome = await ticket.outcome
        if not isinstance(outcome, _NOT_YET):
            return outcome
        await asyncio.sleep(AGAIN_S)


def _logged(command: Declaration, outcome: Result | SqsError) -> list[str]:
    """Log an outcome that an operator must know. Return the text of a failure, if it is one."""
    if isinstance(outcome, SqsError) and outcome.message in _KEPT:
        _log.warning("topic_kept %s: %s", _name(command), outcome.message)
        return []
    if isinstance(outcome, SqsError):
        event, what = _FAILURES[type(command)]
        name = _name(command)
        _log.error("%s %s: %s", event, name, outcome.message)
        return [f"{what} {name} cannot be created: {outcome.message}"]
    if isinstance(command, DeclareQueue) and isinstance(outcome, QueueDeclaredResult) and outcome.differing:
        differing = ", ".join(outcome.differing)
        _log.warning(
            "queue_kept %s: it exists, and its values of %s differ from the settings", command.queue_name, differing
        )
    return []


_KEPT: Final = frozenset(
    invalid_parameter(text).message
    for text in (actions.ATTRIBUTES_DIFFER, actions.TAGS_DIFFER, subscriptions.ATTRIBUTES_DIFFER)
)
"""The errors for topics and subscriptions that exist. They keep their attributes, as queues do."""

_FAILURES: Final[dict[type, tuple[str, str]]] = {
    DeclareQueue: ("queue_not_made", "queue"),
    CreateTopic: ("topic_not_made", "topic"),
    Subscribe: ("subscription_not_made", "subscription"),
}
"""The event in the log and the word for each command."""


def _name(command: Declaration) -> str:
    if isinstance(command, Subscribe):
        return f"{command.endpoint} of {command.topic_arn}"
    return (command.queue_name if isinstance(command, DeclareQueue) else command.name) or ""
