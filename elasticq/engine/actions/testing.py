"""Actions for tests only: advance the clock, delete all queues. The SQS protocols do not offer them."""

from itertools import islice

from elasticq.engine.consumer_groups.actions import removed_group
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.model import limits
from elasticq.model.commands import Call
from elasticq.model.errors import InvalidParameterValue
from elasticq.model.extensions import AdvanceClock, DeleteAllQueues
from elasticq.model.names import account_of
from elasticq.model.results import ClockResult, QueuesDeletedResult


def advance_clock(state: State, call: Call, command: AdvanceClock, context: ExecutionContext) -> Outcome:
    """Advance the cluster clock. The entry of this call still has the old time; later entries have the new time."""
    advance_ms = command.advance_ms
    if not 0 <= advance_ms <= limits.CLOCK_ADVANCE_MS_MAX:
        raise InvalidParameterValue(
            f"A call can advance the clock by 0 to {limits.CLOCK_ADVANCE_MS_MAX // 1_000} seconds."
        )
    ahead_ms = state.ahead_ms + advance_ms
    if ahead_ms > limits.CLOCK_AHEAD_MS_MAX:
        raise InvalidParameterValue(f"The clock is already {state.ahead_ms // 1_000} seconds ahead.")
    return ClockResult(context.now_ms + advance_ms), [m.ClockAdvanced(ahead_ms)] if advance_ms else []


def delete_all_queues(state: State, call: Call, command: DeleteAllQueues, context: ExecutionContext) -> Outcome:
    """Delete a bounded number of queues, with their move tasks, and of the account's topics and consumer groups.

    account None: of all accounts. The result counts the queues only. ``is_more``: the caller must call again.
    """
    account = command.account
    most = limits.RESET_QUEUES_MAX
    chosen = (queue for queue in state.queues.values() if account in (None, account_of(queue.account)))
    going = list(islice(chosen, most + 1))
    is_more = len(going) > most
    del going[most:]
    found: list[m.Mutation] = [m.QueueDeleted(queue.id, context.now_ms) for queue in going]
    ids = {queue.id for queue in going}
    found += [m.MoveTaskForgotten(task.number) for task in state.move_tasks.values() if task.source_queue_id in ids]
    rows: dict[int, m.TopicSet] = state.tables[m.TOPICS.name]
    leaving = list(islice((n for n, row in rows.items() if account in (None, account_of(row.account))), most + 1))
    found += [m.TopicDeleted(number) for number in leaving[:most]]
    is_more |= len(leaving) > most
    for group in state.groups.by_number.values():
        if account in (None, account_of(group.row.account)):
            is_more |= len(found) > limits.MUTATION_ROWS_MAX
            if is_more:
                break
            found += removed_group(group)
    return QueuesDeletedResult(len(going), is_more=is_more), found
