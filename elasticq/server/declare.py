"""The creation of the settings' queues and topics when a master serves: through the runtime, as a client does it."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from elasticq.model.commands import Call, DeclareQueue
from elasticq.model.errors import ServiceUnavailable, SqsError
from elasticq.model.results import QueueDeclaredResult, Result
from elasticq.model.topic_commands import CreateTopic, Subscribe
from elasticq.runtime.runtime import Runtime, RuntimeStopped
from elasticq.runtime.ticket import Awaited

PRINCIPAL: Final = "settings"
AGAIN_S: Final = 0.5
_NOT_YET: Final = (ServiceUnavailable,)

_log = logging.getLogger(__name__)


async def declare(
    runtime: Runtime, commands: Sequence[DeclareQueue | CreateTopic | Subscribe], account: str, endpoint: str = ""
) -> None:
    """Create queues and topics, and log what failed. Return when all calls are answered, or the runtime stops.

    Without a master this can take long. endpoint: scheme://host:port for the links in notifications.
    """
    try:
        for command in commands:
            _log_outcome(command, await _executed(runtime, Call(command, PRINCIPAL, account, endpoint)))
    except RuntimeStopped:
        return


async def _executed(runtime: Runtime, call: Call) -> Result | SqsError:
    while True:
        ticket = Awaited()
        runtime.submit(call, ticket)
        outcome = await ticket.outcome
        if not isinstance(outcome, _NOT_YET):
            return outcome
        await asyncio.sleep(AGAIN_S)


def _log_outcome(command: DeclareQueue | CreateTopic | Subscribe, outcome: Result | SqsError) -> None:
    if isinstance(outcome, SqsError) and isinstance(command, CreateTopic):
        _log.error("topic_not_made %s: %s", command.name, outcome.message)
    elif isinstance(outcome, SqsError) and isinstance(command, Subscribe):
        _log.error("subscription_not_made %s of %s: %s", command.endpoint, command.topic_arn, outcome.message)
    elif not isinstance(command, DeclareQueue):
        return
    elif isinstance(outcome, SqsError):
        _log.error("queue_not_made %s: %s", command.queue_name, outcome.message)
    elif isinstance(outcome, QueueDeclaredResult) and outcome.differing:
        differing = ", ".join(outcome.differing)
        _log.warning(
            "queue_kept %s: it exists, and its values of %s differ from the settings", command.queue_name, differing
        )
