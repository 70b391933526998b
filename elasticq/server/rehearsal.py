"""The rehearsal of the settings' queues and topics: their commands, executed on an empty state as a new server does.

So ``config check`` and the start refuse the same declarations, with the texts of the engine.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from elasticq.engine.actions.declare import at_first_use
from elasticq.engine.apply import apply
from elasticq.engine.context import ExecutionContext
from elasticq.engine.execute import execute
from elasticq.engine.state import State
from elasticq.engine.stored.mutations import ClusterFounded, TookOver
from elasticq.model.commands import Call, Command, DeclareQueue, GetQueueUrl
from elasticq.model.errors import SqsError
from elasticq.model.limits import Limits
from elasticq.model.topic_commands import CreateTopic, Subscribe

Declaration = DeclareQueue | CreateTopic | Subscribe
PRINCIPAL: Final = "settings"
_FIRST_USED: Final = ("made-at-first-use", "made-at-first-use.fifo")
_NOW_MS: Final = 1 << 40
_ENDPOINT: Final = "http://127.0.0.1"


class NodeRules(NamedTuple):
    """The settings of a member that decide which declarations it accepts."""

    region: str
    account: str
    limits: Limits
    has_one_region: bool


def faults(
    declared: Sequence[tuple[str, Declaration]], template: DeclareQueue | None, node: NodeRules
) -> Iterator[str]:
    """Yield a text for each declaration that a new server would refuse.

    declared: the name of the setting and the command, in the order of execution; template: creates queues at their
    first use, None if nothing does.
    """
    state = State()
    context = ExecutionContext(
        _NOW_MS, 1, node.region, False, template, node.limits, has_one_region=node.has_one_region
    )
    apply(state, ClusterFounded("rehearsal", bytes(32), 1))
    apply(state, TookOver(1, "rehearsal", 0, 0))
    uses: list[tuple[str, Command]] = [("auto_create.template", GetQueueUrl(name)) for name in _FIRST_USED]
    steps = [(execute, *each) for each in declared] + [(at_first_use, *each) for each in uses]
    for decide, name, command in steps:
        try:
            _, mutations = decide(state, Call(command, PRINCIPAL, node.account, _ENDPOINT), context)
        except SqsError as error:
            yield f"{name}: {error.message}"
        else:
            for mutation in mutations:
                apply(state, mutation)
