"""CreateQueue, GetQueueUrl, ListQueues, DeleteQueue, PurgeQueue."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

from elasticq.engine import mutations as m
from elasticq.engine import queue_attributes
from elasticq.engine.identity import next_sequence
from elasticq.engine.state import Queue, State
from elasticq.engine.turn import Outcome, Turn, named_queue
from elasticq.model import limits
from elasticq.model.commands import Call, CreateQueue, DeleteQueue, GetQueueUrl, ListQueues, PurgeQueue
from elasticq.model.errors import (
    InvalidAttributeName,
    InvalidParameterValue,
    MissingParameter,
    OverLimit,
    PurgeQueueInProgress,
    QueueDeletedRecently,
    QueueNameExists,
    UnsupportedOperation,
)
from elasticq.model.names import ACCOUNT, FIFO_QUEUE_NAME, QUEUE_NAME, queue_url
from elasticq.model.results import EmptyResult, ListQueuesResult, QueueUrlResult


def create_queue(state: State, call: Call, command: CreateQueue, turn: Turn) -> Outcome:
    name = _checked_name(command)
    given = queue_attributes.checked({key: value for key, value in command.attributes.items() if key != "FifoQueue"})
    if len(command.tags) > limits.TAGS_MAX:
        raise InvalidParameterValue("Too many tags added for queue. Maximum number of tags per queue is 50.")
    url = queue_url(call.endpoint, call.account, name)
    existing = state.names.get((call.account, name))
    if existing is not None:
        _check_same(existing, given)
        return QueueUrlResult(url), []
    deleted_ms = state.deleted_names.get((call.account, name))
    if turn.sixty_second_rules and deleted_ms is not None and turn.now_ms < deleted_ms + limits.SIXTY_SECOND_RULE_MS:
        raise QueueDeletedRecently(
            "You must wait 60 seconds after deleting a queue before you can create another with the same name."
        )
    if len(state.queues) + len(state.doomed) >= limits.QUEUES_MAX:
        raise OverLimit("The maximum number of queues is reached.")
    created = m.QueueCreated(
        queue_id=next_sequence(state.last_queue_id, turn.term),
        account=call.account,
        name=name,
        attributes=queue_attributes.merged({}, given),
        tags=dict(command.tags),
        created_ms=turn.now_ms,
    )
    return QueueUrlResult(url), [created]


def _checked_name(command: CreateQueue) -> str:
    name = command.queue_name
    if not name:
        raise MissingParameter("The request must contain the parameter QueueName.")
    is_fifo = command.attributes.get("FifoQueue")
    if is_fifo is not None and is_fifo.lower() == "true":
        if not FIFO_QUEUE_NAME.match(name):
            raise InvalidParameterValue(
                "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, "
                "must end with .fifo suffix and be 1 to 80 in length."
            )
        raise UnsupportedOperation("FIFO queues are not supported by this version of elasticq.")
    if is_fifo is not None:
        raise InvalidAttributeName("Unknown Attribute FifoQueue.")
    if not QUEUE_NAME.match(name):
        raise InvalidParameterValue(
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
        )
    return name


def _check_same(queue: Queue, given: dict[str, str]) -> None:
    """Create is idempotent if every given attribute equals the present one."""
    present = queue_attributes.shown(queue.attributes)
    for name, value in given.items():
        if value != present.get(name, ""):
            raise QueueNameExists(
                f"A queue already exists with the same name and a different value for attribute {name}"
            )


def get_queue_url(state: State, call: Call, command: GetQueueUrl, turn: Turn) -> Outcome:
    if not command.queue_name:
        raise MissingParameter("The request must contain the parameter QueueName.")
    account = command.queue_owner_account_id or call.account
    if not ACCOUNT.match(account):
        raise InvalidParameterValue(f"Value {account} for parameter QueueOwnerAWSAccountId is invalid.")
    queue = state.queue(account, command.queue_name)
    return QueueUrlResult(queue_url(call.endpoint, queue.account, queue.name)), []


def list_queues(state: State, call: Call, command: ListQueues, turn: Turn) -> Outcome:
    """Sorted by name; a token says after which name to go on."""
    page = limits.LIST_RESULTS_MAX
    if command.max_results is not None:
        page = command.max_results
        if not 1 <= page <= limits.LIST_RESULTS_MAX:
            raise InvalidParameterValue(
                f"Value {page} for parameter MaxResults is invalid. Reason: Must be between 1 and 1000, if provided."
            )
    after = _read_token(command.next_token)
    prefix = command.queue_name_prefix or ""
    names = sorted(
        name for account, name in state.names if account == call.account and name.startswith(prefix) and name > after
    )
    token = None
    if command.max_results is not None and len(names) > page:
        token = urlsafe_b64encode(names[page - 1].encode()).decode("ascii")
    urls = [queue_url(call.endpoint, call.account, name) for name in names[:page]]
    return ListQueuesResult(urls, token), []


def _read_token(token: str | None) -> str:
    if not token:
        return ""
    try:
        return urlsafe_b64decode(token.encode("ascii")).decode("utf-8")
    except ValueError:
        raise InvalidParameterValue("Invalid or expired NextToken value.") from None


def delete_queue(state: State, call: Call, command: DeleteQueue, turn: Turn) -> Outcome:
    queue = named_queue(state, call, command.queue_url)
    return EmptyResult(), [m.QueueDeleted(queue.id, turn.now_ms)]


def purge_queue(state: State, call: Call, command: PurgeQueue, turn: Turn) -> Outcome:
    queue = named_queue(state, call, command.queue_url)
    purged_ms = queue.purged_ms
    if turn.sixty_second_rules and purged_ms is not None and turn.now_ms < purged_ms + limits.SIXTY_SECOND_RULE_MS:
        raise PurgeQueueInProgress(f"Only one PurgeQueue operation on {queue.name} is allowed every 60 seconds.")
    watermark = next_sequence(queue.last_sequence, turn.term)
    return EmptyResult(), [m.QueuePurged(queue.id, watermark, turn.now_ms)]
