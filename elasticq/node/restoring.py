"""The state with which a node starts, made from the rows on disk.

A row that cannot be applied is damaged. The node starts without it and reports it.
"""

from collections.abc import Iterable
from typing import Final

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.node.effects import Effects
from elasticq.node.outputs import Failure, News

FAILURES_MAX: Final = 20  # damaged rows and attributes that are logged one by one
SET_ASIDE: Final = "rows_set_aside"


def restore(state: State, rows: Iterable[m.Mutation], effects: Effects) -> int:
    """Apply ``rows`` to the empty ``state``. Return how many rows and attributes could not be read.

    The causes, and a warning for the operator, are added to ``effects``.
    """
    failed = 0
    for row in rows:
        try:
            apply(state, row)
        except Exception as cause:
            failed += 1
            if failed <= FAILURES_MAX:
                effects.failures.append(Failure(f"row {type(row).__name__}", cause))
    state.names.order()
    state.sources.order()
    damaged = _damaged_attributes(state)
    if failed or damaged:
        named = f": {'; '.join(damaged[:FAILURES_MAX])}" if damaged else ""
        text = f"{failed} rows and {len(damaged)} attributes cannot be read, and count as absent{named}."
        effects.news.append(News(SET_ASIDE, text, is_warning=True))
    return failed + len(damaged)


def _damaged_attributes(state: State) -> list[str]:
    found = []
    for queue in state.queues.values():
        found += [f"{name} of the queue {queue.name} of {queue.account}" for name in sorted(queue.unreadable)]
    for subscription in state.topics.all_subscriptions():
        found += [f"{name} of the subscription {subscription.row.key}" for name in subscription.unreadable]
    return found
