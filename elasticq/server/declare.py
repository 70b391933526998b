"""Makes the queues and topics of the settings once a master serves: through the runtime, as a client would."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from elasticq.model.commands import Call, DeclareQueue
from elasticq.model.errors import ServiceUnavailable, SqsError
from elasticq.model.results import QueueDeclaredResult, Result
from elasticq.model.topic_commands import CreateTopic, Subscribe
from elasticq.runtime.awaited import Awaited
from elasticq.runtime.runtime import Runtime, RuntimeStopped

PRINCIPAL: Final = "settings"
AGAIN_S: Final = 0.5
_NOT_YET: Final = (ServiceUnavailable,)

_log = logging.getLogger(__name__)


async def declare(
    runtime: Runtime, commands: Sequence[DeclareQueue | CreateTopic | Subscribe], account: str, endpoint: str = ""
) -> None:
    """Create queues and topics. Returns when each was answered, which may take long where there is no master.

    endpoint: scheme://host:port that stands in the links of what subscriptions get.
    """
    try:
        for command in commands:
            _tell(command, await _asked(runtime, Call(command, PRINCIPAL, account, endpoint)))
    except RuntimeStopped:
        return


async def _asked(runtime: Runtime, call: Call) -> Result | SqsError:
    while True:
        ticket = Awaited()
        runtime.submit(call, ticket)
        outcome = await ticket.outcome
        if not isinstance(outcome, _NOT_YET):
            return outcome
        await asyncio.sleep(AGAIN_S)


def _tell(command: DeclareQueue | CreateTopic | Subscribe, outcome: Result | SqsError) -> None:
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
            "queue_kept %s: it exists with other values of %s than the settings have", command.queue_name, differing
        )
