"""The REST API's handlers for queues, their dead letters and leases."""

from typing import Final

from elasticq.engine.ordering.kinds import KINDS
from elasticq.engine.ordering.priority import DEFAULT_PRIORITY, ORDER
from elasticq.engine.ordering.sharing import FAIRNESS, IN_FLIGHT_MAX
from elasticq.model import commands as c
from elasticq.model import results as r
from elasticq.model.errors import InvalidParameterValue, QueueDoesNotExist, ResourceNotFound
from elasticq.rest import shapes as s
from elasticq.rest.api import Request

TIMEOUT: Final = "VisibilityTimeout"
PAGE: Final = 100
_KNOWN: Final = {name for kind in KINDS for name in (*kind.ranges, *kind.choices)}


def attributes_of(kind: str, settings: s.Settings) -> dict[str, str]:
    """Return the attributes of a queue of this type. Attributes that this version does not know are left out."""
    found: dict[str, str] = {}
    if kind == "delayed":
        found |= {ORDER: "priority", DEFAULT_PRIORITY: "0"}
    elif kind == "fifo":
        found["FifoQueue"] = "true"
    elif kind == "fair":
        found[FAIRNESS] = settings.strategy.lower() or "round_robin"
    if settings.max_unacked:
        found[IN_FLIGHT_MAX] = str(settings.max_unacked)
    if settings.ack_timeout is not None:
        found[TIMEOUT] = str(settings.ack_timeout)
    return {name: value for name, value in found.items() if name in _KNOWN or not name.startswith("Elasticq")}


def type_of(attributes: dict[str, str]) -> s.Type:
    if attributes.get(ORDER) == "priority":
        return "delayed"
    if attributes.get("FifoQueue") == "true":
        return "fifo"
    return "fair" if attributes.get(FAIRNESS, "sqs") != "sqs" else "standard"


def _settings_of(attributes: dict[str, str]) -> s.Settings:
    return s.Settings(
        attributes.get(FAIRNESS, "").upper(), int(attributes.get(IN_FLIGHT_MAX, 0)), int(attributes.get(TIMEOUT, 0))
    )


async def create(request: Request) -> s.QueueMade:
    body: s.NewQueue = request.body
    attributes = attributes_of(body.type, body.settings) | body.attributes
    made = await request.do(c.CreateQueue(body.name, attributes, body.tags), r.QueueUrlResult)
    return s.QueueMade("CREATED", body.name, body.type, body.settings, made.queue_url)


async def _attributes(request: Request, queue: str) -> dict[str, str]:
    answer = await request.do(c.GetQueueAttributes(queue, ["All"]), r.QueueAttributesResult)
    return answer.attributes


def _queue(name: str, attributes: dict[str, str]) -> s.Queue:
    counts = [int(attributes[f"ApproximateNumberOfMessages{each}"]) for each in ("", "NotVisible", "Delayed")]
    ready, unacked, delayed = counts
    return s.Queue(
        name, type_of(attributes), _settings_of(attributes), ready, unacked, delayed, sum(counts), attributes
    )


async def show(request: Request) -> s.Queue:
    return _queue(request.queue, await _attributes(request, request.queue))


async def list_(request: Request) -> s.Queues:
    query = request.query
    command = c.ListQueues(query.get("prefix") or None, query.get("limit", PAGE), query.get("next") or None)
    page = await request.do(command, r.ListQueuesResult)
    found = []
    for url in page.queue_urls:
        try:
            found.append(_queue(url.rpartition("/")[2], await _attributes(request, url)))
        except QueueDoesNotExist:
            continue  # the queue was deleted after the listing
    return s.Queues(found, page.next_token or "")


async def update(request: Request) -> s.QueueMade:
    body: s.QueueChange = request.body
    before = await _attributes(request, request.queue)
    kind = type_of(before)
    changes = attributes_of("fair" if body.settings.strategy else "", body.settings) | body.attributes
    if changes:
        await request.do(c.SetQueueAttributes(request.queue, changes), r.EmptyResult)
    url = await request.do(c.GetQueueUrl(request.queue), r.QueueUrlResult)
    return s.QueueMade("UPDATED", request.queue, kind, _settings_of(before | changes), url.queue_url)


async def delete(request: Request) -> s.Status:
    await request.do(c.DeleteQueue(request.queue), r.EmptyResult)
    return s.Status("DELETED")


async def purge(request: Request) -> s.Status:
    await request.do(c.PurgeQueue(request.queue), r.EmptyResult)
    return s.Status("PURGED")


async def list_servers(request: Request) -> s.Servers:
    """Return the members that this server knows."""
    return s.Servers(request.servers())


# --- move tasks ---------------------------------------------------------------------


async def _arn(request: Request, queue: str) -> str:
    return (await _attributes(request, queue))["QueueArn"]


async def _moves(request: Request) -> list[r.MoveTask]:
    answer = await request.do(c.ListMessageMoveTasks(await _arn(request, request.queue), 10), r.MoveTasksResult)
    return answer.results


async def start_move(request: Request) -> s.Move:
    body: s.NewMove = request.body
    source = await _arn(request, request.queue)
    target = await _arn(request, body.to) if body.to else None
    started = await request.do(c.StartMessageMoveTask(source, target, body.rate), r.MoveTaskStartedResult)
    return s.Move("RUNNING", started.task_handle)


async def show_moves(request: Request) -> s.Moves:
    return s.Moves([_move(task) for task in await _moves(request)])


def _move(task: r.MoveTask) -> s.Move:
    return s.Move(
        task.status or "",
        task.task_handle or "",
        task.approximate_number_of_messages_moved or 0,
        task.approximate_number_of_messages_to_move or 0,
        task.failure_reason or "",
    )


async def cancel_move(request: Request) -> s.Move:
    for task in await _moves(request):
        if task.status == "RUNNING":
            answer = await request.do(c.CancelMessageMoveTask(task.task_handle), r.MoveTaskCancelledResult)
            return s.Move("CANCELLING", moved=answer.moved)
    raise ResourceNotFound("No move task is moving messages out of the queue.")


# --- leases ---------------------------------------------------------------------------


async def change_lease(request: Request) -> s.Status:
    body: s.LeaseChange = request.body
    if "/" not in body.lease:
        raise InvalidParameterValue("A lease is named NAME/BATCH/ or NAME/BATCH/PARTITION.")
    handle = f"lease:{body.lease}"
    if body.action == "commit":
        await request.do(c.DeleteMessage(request.queue, handle), r.EmptyResult)
        return s.Status("COMMITTED")
    seconds = body.visibility_s if body.action == "renew" else 0
    await request.do(c.ChangeMessageVisibility(request.queue, handle, seconds), r.EmptyResult)
    return s.Status("RENEWED" if body.action == "renew" else "GIVEN_BACK")
