"""AddPermission and RemovePermission. Each permission is a statement of the queue's Policy, with a label."""

import re
from typing import Final

from elasticq.engine.actions import queue_attributes
from elasticq.engine.context import ExecutionContext, Outcome, named_queue
from elasticq.engine.policies import queue_policies as policies
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.model import limits
from elasticq.model.actions import GRANTABLE, OWNER_ONLY
from elasticq.model.commands import AddPermission, Call, RemovePermission
from elasticq.model.errors import InvalidParameterValue, MissingParameter, OverLimit, quoted
from elasticq.model.names import ACCOUNT, queue_arn
from elasticq.model.results import EmptyResult

_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")
_ALL: Final = "*"


def add_permission(state: State, call: Call, command: AddPermission, context: ExecutionContext) -> Outcome:
    queue = named_queue(state, call, command.queue_url)
    label = _checked_label(command.label)
    accounts = _checked_accounts(command.aws_account_ids)
    actions = _checked_actions(command.actions)
    arn = queue_arn(context.region, queue.account, queue.name)
    policy = policies.with_permission(queue.attributes.get(policies.ATTRIBUTE, ""), arn, label, accounts, actions)
    if policy is None:
        raise _refused(label, "Label", "Already exists.")
    return EmptyResult(), [_set(queue, policy, context)]


def remove_permission(state: State, call: Call, command: RemovePermission, context: ExecutionContext) -> Outcome:
    queue = named_queue(state, call, command.queue_url)
    label = _checked_label(command.label)
    policy = policies.without_permission(queue.attributes.get(policies.ATTRIBUTE, ""), label)
    if policy is None:
        raise _refused(label, "Label", "can't find label.")
    return EmptyResult(), [_set(queue, policy, context)]


def _set(queue: Queue, policy: str, context: ExecutionContext) -> m.QueueAttributesSet:
    attributes = queue_attributes.merged(queue.attributes, {policies.ATTRIBUTE: policy})
    return m.QueueAttributesSet(queue.id, attributes, context.now_ms)


def _refused(value: str, parameter: str, reason: str) -> InvalidParameterValue:
    return InvalidParameterValue(f"Value {quoted(value)} for parameter {parameter} is invalid. Reason: {reason}")


def _checked_label(label: str | None) -> str:
    if not label:
        raise MissingParameter("The request must contain the parameter Label.")
    if not _LABEL.match(label):
        raise _refused(
            label, "Label", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length."
        )
    return label


def _checked_accounts(accounts: list[str]) -> list[str]:
    if not accounts:
        raise _refused("[]", "PrincipalId", "Unable to verify.")
    for account in accounts:
        if not ACCOUNT.match(account):
            raise _refused(f"[{account}]", "PrincipalId", "Unable to verify principal.")
    return list(dict.fromkeys(accounts))


def _checked_actions(actions: list[str]) -> list[str]:
    if not actions:
        raise MissingParameter("The request must contain the parameter Actions.")
    if len(actions) > limits.POLICY_ACTIONS_MAX:
        raise OverLimit(f"{len(actions)} Actions were found, maximum allowed is {limits.POLICY_ACTIONS_MAX}.")
    for action in actions:
        if action in OWNER_ONLY:
            raise _refused(f"SQS:{action}", "ActionName", "Only the queue owner is allowed to invoke this action.")
        if action != _ALL and action not in GRANTABLE:  # a permission for an action covers its batch
            raise _refused(
                f"SQS:{action}", "ActionName", "Please refer to the appropriate WSDL for a list of valid actions."
            )
    return list(dict.fromkeys(actions))
