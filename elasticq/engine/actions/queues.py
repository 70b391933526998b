"""CreateQueue, GetQueueUrl, ListQueues, DeleteQueue, PurgeQueue."""

from elasticq.engine.actions import queue_attributes
from elasticq.engine.actions.tags import check_count, check_tags
from elasticq.engine.context import ExecutionContext, Outcome, named_queue
from elasticq.engine.ordering.kinds import MARKERS, kind_of
from elasticq.engine.paging import page
from elasticq.engine.redrive import dead_letters as redrive
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.identity import next_sequence
from elasticq.model import limits
from elasticq.model.commands import (
    Call,
    CreateQueue,
    DeleteQueue,
    GetQueueUrl,
    ListDeadLetterSourceQueues,
    ListQueues,
    PurgeQueue,
)
from elasticq.model.errors import (
    InvalidAttributeName,
    InvalidParameterValue,
    MissingParameter,
    OverLimit,
    PurgeQueueInProgress,
    QueueDeletedRecently,
    QueueNameExists,
    quoted,
)
from elasticq.model.names import ACCOUNT, account_of, neighbour, queue_url
from elasticq.model.results import DeadLetterSourcesResult, EmptyResult, ListQueuesResult, QueueUrlResult


def create_queue(state: State, call: Call, command: CreateQueue, context: ExecutionContext) -> Outcome:
    name = _checked_name(command)
    kind = kind_of(command.attributes)
    given = queue_attributes.checked(command.attributes, kind, context)
    check_tags(command.tags)
    check_count(command.tags, command.queue_name or "")
    url = queue_url(call.endpoint, call.account, name)
    existing = state.names.get((call.account, name))
    if existing is not None:
        _check_same(existing, given, command.tags)
        return QueueUrlResult(url), []
    deleted_ms = state.deleted_names.get((call.account, name))
    if (
        context.sixty_second_rules
        and deleted_ms is not None
        and context.now_ms < deleted_ms + limits.SIXTY_SECOND_RULE_MS
    ):
        raise QueueDeletedRecently(
            "You must wait 60 seconds after deleting a queue before you can create another with the same name."
        )
    if len(state.queues) + len(state.deleted_queues) >= limits.QUEUES_MAX:
        raise OverLimit("The maximum number of queues is reached.")
    redrive.check_target(state, call.account, name, kind, given, context)
    created = m.QueueCreated(
        queue_id=next_sequence(state.last_queue_id, context.term),
        account=call.account,
        name=name,
        attributes=queue_attributes.at_creation(given),
        tags=dict(command.tags),
        created_ms=context.now_ms,
    )
    return QueueUrlResult(url), [created]


def _checked_name(command: CreateQueue) -> str:
    name = command.queue_name
    if not name:
        raise MissingParameter("The request must contain the parameter QueueName.")
    kind = kind_of(command.attributes)
    for attribute in command.attributes:
        if attribute in MARKERS and attribute != kind.marker:  # it does not make the queue of any kind
            raise InvalidAttributeName(kind.refused.get(attribute) or f"Unknown Attribute {attribute}.")
    if not kind.name_pattern.match(name):
        raise InvalidParameterValue(kind.name_words)
    return name


def _check_same(queue: Queue, given: dict[str, str], tags: dict[str, str]) -> None:
    """Raise QueueNameExists if a given attribute, or the given tags, differ from those of the existing queue."""
    for name in queue_attributes.differing(queue.attributes, given):
        raise QueueNameExists(f"A queue already exists with the same name and a different value for attribute {name}")
    if tags and tags != queue.tags:
        raise QueueNameExists("A queue already exists with the same name and different tags")


def get_queue_url(state: State, call: Call, command: GetQueueUrl, context: ExecutionContext) -> Outcome:
    if not command.queue_name:
        raise MissingParameter("The request must contain the parameter QueueName.")
    account = command.queue_owner_account_id or account_of(call.account)
    if not ACCOUNT.match(account):
        raise InvalidParameterValue(f"Value {quoted(account)} for parameter QueueOwnerAWSAccountId is invalid.")
    queue = state.queue(neighbour(account, call.account), command.queue_name)
    return QueueUrlResult(queue_url(call.endpoint, queue.account, queue.name)), []


def list_queues(state: State, call: Call, command: ListQueues, context: ExecutionContext) -> Outcome:
    """Return the URLs of the caller's queues in the region of the call, sorted by name."""
    prefix = command.queue_name_prefix or ""
    names, token = page(
        lambda after: state.names.of(call.account, prefix, after), command.max_results, command.next_token
    )
    return ListQueuesResult([queue_url(call.endpoint, call.account, name) for name in names], token), []


def delete_queue(state: State, call: Call, command: DeleteQueue, context: ExecutionContext) -> Outcome:
    queue = named_queue(state, call, command.queue_url)
    return EmptyResult(), [m.QueueDeleted(queue.id, context.now_ms)]


def purge_queue(state: State, call: Call, command: PurgeQueue, context: ExecutionContext) -> Outcome:
    queue = named_queue(state, call, command.queue_url)
    purged_ms = queue.purged_ms
    if (
        context.sixty_second_rules
        and purged_ms is not None
        and context.now_ms < purged_ms + limits.SIXTY_SECOND_RULE_MS
    ):
        raise PurgeQueueInProgress(f"Only one PurgeQueue operation on {queue.name} is allowed every 60 seconds.")
    watermark = next_sequence(queue.last_sequence, context.term)
    return EmptyResult(), [m.QueuePurged(queue.id, watermark, context.now_ms)]


def list_dead_letter_source_queues(
    state: State, call: Call, command: ListDeadLetterSourceQueues, context: ExecutionContext
) -> Outcome:
    """Return a page of the queues whose RedrivePolicy names this queue, from its own account and region.

    A RedrivePolicy cannot name a queue of another account or region.
    """
    target = named_queue(state, call, command.queue_url)
    key = (target.account, target.name)
    names, token = page(lambda after: state.sources.of(key, after), command.max_results, command.next_token)
    return DeadLetterSourcesResult([queue_url(call.endpoint, target.account, name) for name in names], token), []
