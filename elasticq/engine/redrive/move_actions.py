"""StartMessageMoveTask, CancelMessageMoveTask and ListMessageMoveTasks. ``engine/redrive/mover.py`` does the work."""

import json
from base64 import b64decode, b64encode

from msgspec.structs import replace

from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.contents import check_range
from elasticq.engine.stored.identity import next_sequence
from elasticq.engine.sweep import expired_counts
from elasticq.model import documents, limits
from elasticq.model.commands import Call, CancelMessageMoveTask, ListMessageMoveTasks, StartMessageMoveTask
from elasticq.model.errors import InvalidParameterValue, MissingParameter, OverLimit, ResourceNotFound
from elasticq.model.names import arn_region, parse_queue_arn
from elasticq.model.results import MoveTask, MoveTaskCancelledResult, MoveTasksResult, MoveTaskStartedResult


def _named(state: State, call: Call, arn: str, parameter: str, context: ExecutionContext) -> Queue:
    """Return the queue of an ARN. Raise ResourceNotFound if it does not exist or is not in the region of the call."""
    key = parse_queue_arn(arn, call.account)
    queue = state.names.get(key) if key is not None else None
    if queue is None or not context.is_in_region(arn_region(arn), call.account):
        raise ResourceNotFound(f"The resource that you specified for the {parameter} parameter doesn't exist.")
    return queue


def _source(state: State, call: Call, arn: str | None, context: ExecutionContext) -> Queue:
    if not arn:
        raise MissingParameter("The request must contain the parameter SourceArn.")
    return _named(state, call, arn, "SourceArn", context)


def handle_of(task: m.MoveTaskSet) -> str:
    """Return the TaskHandle of a task, in the form observed on AWS."""
    return b64encode(json.dumps({"taskId": task.task_id, "sourceArn": task.source_arn}).encode()).decode("ascii")


def start_message_move_task(
    state: State, call: Call, command: StartMessageMoveTask, context: ExecutionContext
) -> Outcome:
    source = _source(state, call, command.source_arn, context)
    destination_arn = command.destination_arn or ""
    if destination_arn:
        destination = _named(state, call, destination_arn, "DestinationArn", context)
        if not destination.kind.exchanges_with(source.kind):
            raise InvalidParameterValue("Source queue and destination queue must be of the same type.")
    rate = command.max_number_of_messages_per_second
    if rate is not None:
        words = "Must be between 1 and 500, if provided"
        check_range(rate, 1, limits.MOVE_TASK_RATE_MAX, "MaxNumberOfMessagesPerSecond", words)
    if not state.sources.has((source.account, source.name)):
        raise InvalidParameterValue("Source queue must be configured as a Dead Letter Queue.")
    if any(task.source_queue_id == source.id for task in state.moving.values()):
        raise InvalidParameterValue(
            "There is already a task running. Only one active task is allowed for a source queue arn at a given time."
        )
    if sum(task.account == source.account for task in state.moving.values()) >= limits.MOVE_TASKS_ACTIVE_MAX:
        raise OverLimit("There are already 100 active message move tasks.")
    task = _new_task(state, source, command.source_arn or "", destination_arn, rate or 0, context)
    return MoveTaskStartedResult(handle_of(task)), [task, *_old_tasks(state, source)]


def _new_task(
    state: State, source: Queue, source_arn: str, destination_arn: str, rate: int, context: ExecutionContext
) -> m.MoveTaskSet:
    number = next_sequence(max(state.move_tasks, default=0), context.term)
    visible = source.order.counts(context.now_ms).visible - expired_counts(source, context.now_ms).visible
    return m.MoveTaskSet(
        number=number,
        task_id=state.identity.task_id(number),
        account=source.account,
        source_queue_id=source.id,
        source_arn=source_arn,
        destination_arn=destination_arn,
        rate=rate,
        status=m.RUNNING,
        started_ms=context.now_ms,
        moved=0,
        to_move=visible,
        cursor=0,
        last=source.last_sequence,
    )


def _old_tasks(state: State, source: Queue) -> list[m.Mutation]:
    """Return the mutations that forget finished tasks when a new one starts.

    A source keeps its newest tasks, as many as ListMessageMoveTasks can show. If all queues together have too many
    tasks, the oldest finished one goes. Raise OverLimit if none is finished.
    """
    over = [task for task in state.move_tasks.values() if task.number not in state.moving]
    own = [task.number for task in over if task.source_queue_id == source.id]
    forgotten = own[: max(len(own) + 1 - limits.MOVE_TASKS_LISTED_MAX, 0)]
    if len(state.move_tasks) - len(forgotten) >= limits.MOVE_TASKS_MAX:
        if not over:
            raise OverLimit("There are too many active message move tasks.")
        forgotten = forgotten or [over[0].number]
    return [m.MoveTaskForgotten(number) for number in forgotten]


def cancel_message_move_task(
    state: State, call: Call, command: CancelMessageMoveTask, context: ExecutionContext
) -> Outcome:
    if not command.task_handle:
        raise MissingParameter("The request must contain the parameter TaskHandle.")
    task_id, source_arn = _read_handle(command.task_handle)
    _named(state, call, source_arn, "SourceArn", context)
    for task in state.move_tasks.values():
        if task.task_id == task_id and task.status == m.RUNNING:
            return MoveTaskCancelledResult(task.moved), [replace(task, status=m.CANCELLING)]
    raise ResourceNotFound("Task does not exist.")


def _read_handle(handle: str) -> tuple[str, str]:
    """Return the task id and source ARN in a TaskHandle. Raise InvalidParameterValue if it is malformed."""
    try:
        members = documents.read(b64decode(handle, validate=True).decode())
        task_id, source_arn = members["taskId"], members["sourceArn"]
    except (ValueError, TypeError, KeyError):
        task_id = source_arn = None
    if not isinstance(task_id, str) or not isinstance(source_arn, str):
        raise InvalidParameterValue("Value for parameter TaskHandle is invalid.")
    return task_id, source_arn


def list_message_move_tasks(
    state: State, call: Call, command: ListMessageMoveTasks, context: ExecutionContext
) -> Outcome:
    """Return the tasks of a source queue, newest first."""
    source = _source(state, call, command.source_arn, context)
    count = 1
    if command.max_results is not None:
        words = "Must be between 1 and 10, if provided"
        count = check_range(command.max_results, 1, limits.MOVE_TASKS_LISTED_MAX, "MaxResults", words)
    tasks = [task for task in state.move_tasks.values() if task.source_queue_id == source.id]
    return MoveTasksResult([_shown(task) for task in tasks[::-1][:count]]), []


def _shown(task: m.MoveTaskSet) -> MoveTask:
    """Return the task as ListMessageMoveTasks shows it; the members follow AWS and depend on the status."""
    return MoveTask(
        task_handle=handle_of(task) if task.status == m.RUNNING else None,
        status=task.status,
        source_arn=task.source_arn,
        destination_arn=task.destination_arn or None,
        max_number_of_messages_per_second=task.rate or None,
        approximate_number_of_messages_moved=task.moved,
        approximate_number_of_messages_to_move=task.to_move,
        failure_reason=task.failure_reason or None,
        started_timestamp=task.started_ms,
    )
