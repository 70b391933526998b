"""The creation of queues that the configuration declares, and of missing queues at their first use."""

import json

from elasticq.engine.actions import queue_attributes
from elasticq.engine.actions.queues import create_queue
from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.ordering.kinds import KINDS, kind_named
from elasticq.engine.redrive.forwards import goes_in_a_circle
from elasticq.engine.state import COPY_TO, MOVE_TO, Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.redrive_policies import POLICY, read_policy
from elasticq.model import commands as c
from elasticq.model import documents
from elasticq.model.errors import InvalidParameterValue
from elasticq.model.names import account_of, neighbour, queue_arn, queue_path
from elasticq.model.results import QueueDeclaredResult

_FIRST_USES = (c.SendMessage, c.SendMessageBatch, c.ReceiveMessage, c.GetQueueAttributes)


def declare_queue(state: State, call: c.Call, command: c.DeclareQueue, context: ExecutionContext) -> Outcome:
    """Create the declared queue if it does not exist.

    An existing queue keeps the attributes that clients can set; the result names those that differ. copyTo and moveTo
    always follow the configuration, because clients cannot set them.
    """
    name = command.queue_name
    forwards = {key: value for key, value in ((COPY_TO, command.copy_to), (MOVE_TO, command.move_to)) if value}
    if forwards and goes_in_a_circle(state, call.account, name, command.copy_to, command.move_to):
        raise InvalidParameterValue(f"The copyTo or moveTo of {name} leads back to it.")
    existing = state.names.get((call.account, name))
    if existing is None:
        return QueueDeclaredResult(is_new=True), _created(state, call, command, forwards, context)
    others = {key: value for key, value in existing.attributes.items() if key not in (COPY_TO, MOVE_TO)}
    attributes = {**others, **forwards}
    differing = _differing(existing, command, context)
    if attributes == existing.attributes:
        return QueueDeclaredResult(differing), []
    return QueueDeclaredResult(differing), [m.QueueAttributesSet(existing.id, attributes, existing.modified_ms)]


def _created(
    state: State, call: c.Call, command: c.DeclareQueue, forwards: dict[str, str], context: ExecutionContext
) -> list[m.Mutation]:
    creation = c.CreateQueue(command.queue_name, command.attributes, command.tags)
    _, mutations = create_queue(state, call, creation, context)
    created = mutations[0]
    assert isinstance(created, m.QueueCreated), "there was none"
    created.attributes.update(forwards)
    created.created_ms = command.created_ms or created.created_ms
    modified_ms = command.modified_ms
    if modified_ms and modified_ms != created.created_ms:
        mutations.append(m.QueueAttributesSet(created.queue_id, created.attributes, modified_ms))
    return mutations


def _differing(existing: Queue, command: c.DeclareQueue, context: ExecutionContext) -> list[str]:
    """Return the names of the attributes that differ in the existing queue; "tags" is among them if the tags differ."""
    given = queue_attributes.checked(command.attributes, existing.kind, context)
    found = queue_attributes.differing(existing.attributes, given)
    return [*found, "tags"] if command.tags and command.tags != existing.tags else found


def at_first_use(state: State, call: c.Call, context: ExecutionContext) -> Outcome:
    """Create the queue that the call names from the template, if it is missing and in the caller's account.

    Return no mutations if there is no template or nothing to create. Raise the errors of CreateQueue.
    """
    key = _first_used(call)
    if context.template is None or key is None or key in state.names or key[0] != call.account:
        return QueueDeclaredResult(), []
    return declare_queue(state, call, of_template(context.template, key, context.region), context)


def _first_used(call: c.Call) -> tuple[str, str] | None:
    """Return owner and name of the queue that the call may create by using it; None if it cannot create one."""
    command = call.command
    if isinstance(command, c.GetQueueUrl):
        account = command.queue_owner_account_id or account_of(call.account)
        return (neighbour(account, call.account), command.queue_name) if command.queue_name else None
    if isinstance(command, _FIRST_USES):
        return queue_path(command.queue_url, call.account) if command.queue_url else None
    return None


def of_template(template: c.DeclareQueue, key: tuple[str, str], own_region: str) -> c.DeclareQueue:
    """Return the declaration of a queue that is created from the template.

    Its name decides its type: a FIFO queue ends in .fifo. Attributes of the other type are omitted, and so is a
    dead-letter queue of the other type. The dead-letter queue is in the account and region of the new queue.
    key: owner and name of the new queue.
    """
    owner, name = key
    kind = kind_named(name)
    others = {kind.marker}
    for other in KINDS:
        if not other.exchanges_with(kind):
            others.update((other.marker, *other.defaults, *other.ranges))
    attributes = {key: value for key, value in template.attributes.items() if key not in others}
    if kind.marker:
        attributes[kind.marker] = kind.marker_value
    redrive = attributes.pop(POLICY, "")
    if redrive:
        target = read_policy(redrive, owner).target[1]
        if kind_named(target).exchanges_with(kind):
            arn = queue_arn(own_region, owner, target)
            attributes[POLICY] = json.dumps({**documents.read(redrive), "deadLetterTargetArn": arn})
    own = (template.copy_to, template.move_to)
    copy_to, move_to = ("" if target == name else target for target in own)
    return c.DeclareQueue(name, attributes, dict(template.tags), copy_to, move_to)
