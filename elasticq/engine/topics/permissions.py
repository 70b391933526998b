"""AddPermission and RemovePermission of topics. Each permission is a statement of the topic's Policy, with a label."""

import json
from typing import Any, Final

from msgspec.structs import replace

from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.policies import language as policy_language
from elasticq.engine.policies.queue_policies import permission
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.topic_attributes import OWNERS_ACTIONS, POLICY, default_policy
from elasticq.engine.stored.topic_index import Topic
from elasticq.engine.topics.arns import arn_of, named_topic
from elasticq.model import limits
from elasticq.model import topic_commands as t
from elasticq.model.commands import Call
from elasticq.model.errors import invalid_parameter
from elasticq.model.names import ACCOUNT, account_of
from elasticq.model.topic_results import TopicDone

_GRANTABLE: Final = frozenset([name.partition(":")[2] for name in OWNERS_ACTIONS] + ["Receive"])


def add_permission(state: State, call: Call, command: t.AddTopicPermission, context: ExecutionContext) -> Outcome:
    topic = named_topic(state, call, command.topic_arn, context)
    label = _checked_label(command.label)
    if not command.aws_account_id or not all(ACCOUNT.match(account) for account in command.aws_account_id):
        raise invalid_parameter("AWSAccountId")
    if not command.action_name or not all(action in _GRANTABLE for action in command.action_name):
        raise invalid_parameter("Policy statement action out of service scope!")
    arn = arn_of(topic, context)
    document = _document(topic, arn)
    if any(statement.get("Sid") == label for statement in document["Statement"]):
        raise invalid_parameter("Statement already exists")
    accounts, actions = list(dict.fromkeys(command.aws_account_id)), list(dict.fromkeys(command.action_name))
    statement = permission("SNS", arn, label, accounts, actions)
    return TopicDone(), [_with(topic, {**document, "Statement": [*document["Statement"], statement]})]


def remove_permission(state: State, call: Call, command: t.RemoveTopicPermission, context: ExecutionContext) -> Outcome:
    """Remove the statement with this label from the Policy. A label that does not exist is a success."""
    topic = named_topic(state, call, command.topic_arn, context)
    label = _checked_label(command.label)
    document = _document(topic, arn_of(topic, context))
    left = [statement for statement in document["Statement"] if statement.get("Sid") != label]
    if len(left) == len(document["Statement"]):
        return TopicDone(), []
    return TopicDone(), [_with(topic, {**document, "Statement": left})]


def _checked_label(label: str | None) -> str:
    if not label:
        raise invalid_parameter("Label Reason: no value for required parameter")
    return label


def _document(topic: Topic, arn: str) -> dict[str, Any]:
    row = topic.row
    assert row is not None, "a topic found by its name or ARN has a row"
    return policy_language.document(row.attributes.get(POLICY) or default_policy(arn, account_of(row.account)))


def _with(topic: Topic, document: dict[str, Any]) -> m.TopicSet:
    row = topic.row
    assert row is not None, "a topic found by its name or ARN has a row"
    text = json.dumps(document, separators=(",", ":"))
    if len(text.encode()) > limits.TOPIC_POLICY_BYTES_MAX:
        raise invalid_parameter(f"Policy Error: it exceeds {limits.TOPIC_POLICY_BYTES_MAX} bytes")
    return replace(row, attributes={**row.attributes, POLICY: text})
