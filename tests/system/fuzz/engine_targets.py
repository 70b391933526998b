"""The target of the engine: calls of all kinds, one after the other, on a member in memory.

Each call goes the whole way: members are written as JSON or as a form, read by the wire room, executed by a node,
and the answer is encoded in each protocol that its API has. What an answer tells (URLs, handles, ids, tokens) is what
later calls are made of, so that they reach what is there.
"""

import json
from collections import defaultdict
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import msgspec

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.http.connection import exchange
from elasticq.http.connection.head import FORM_FOR_JSON, JSON
from elasticq.model.commands import Command
from elasticq.model.errors import SqsError
from elasticq.model.limits import RELAXED, STRICT
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn, topic_arn
from elasticq.wire import json as wire_json
from elasticq.wire import query
from elasticq.wire.operations import BY_SEQUENCE, PEEK, SNS, SQS, Operation
from tests.node.cluster import Solo
from tests.system.fuzz.choices import Builder, Choices
from tests.system.fuzz.target import Target
from tests.system.fuzz.wire_targets import FORM, SERVICES, check_refusal, parameters_of

CALLS_MAX = 24
OPERATIONS: tuple[Operation, ...] = (*SQS.operations.values(), *SNS.operations.values(), PEEK, *BY_SEQUENCE.values())
_AT = {operation.name: at for at, operation in enumerate(OPERATIONS)}

_QUEUES = ("jobs", "d.fifo", "dead", "q-1", "q-2")
_TOPICS = ("news", "n.fifo")
_POLICIES = (
    '{"a":["x",{"prefix":"y"}]}',
    '{"a":[{"numeric":[">",1]}]}',
    '{"http":{"defaultHealthyRetryPolicy":{"numRetries":5}}}',
    '{"healthyRetryPolicy":{"numRetries":5}}',
    json.dumps({"deadLetterTargetArn": queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, "dead"), "maxReceiveCount": 1}),
    json.dumps({"deadLetterTargetArn": queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, "d.fifo"), "maxReceiveCount": "2"}),
    '{"redrivePermission":"denyAll"}',
    '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}]}',
)
_ATTRIBUTES = [
    "VisibilityTimeout",
    "DelaySeconds",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "RedrivePolicy",
    "RedriveAllowPolicy",
    "Policy",
    "FifoQueue",
    "FifoTopic",
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "FifoThroughputLimit",
    "KmsMasterKeyId",
    "SqsManagedSseEnabled",
    "FilterPolicy",
    "FilterPolicyScope",
    "RawMessageDelivery",
    "DeliveryPolicy",
    "DisplayName",
    "SignatureVersion",
    "ElasticqPartitions",
    "ElasticqPriority",
    "ElasticqOrder",
]
_VALUES = (
    "0",
    "1",
    "2",
    "30",
    "60",
    "345600",
    "true",
    "false",
    "perQueue",
    "messageGroup",
    "perMessageGroupId",
    "MessageBody",
)
_VALUES += ("MessageAttributes", "priority", "")
_WORDS = {
    "queue_name": _QUEUES,
    "queue_url": _QUEUES,
    "queue_name_prefix": ("", "q-", "j"),
    "queue_names.": _QUEUES,
    "name": _TOPICS,
    "topic_arn": tuple(topic_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, name) for name in _TOPICS),
    "resource_arn": tuple(topic_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, name) for name in _TOPICS),
    "source_arn": tuple(queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, name) for name in _QUEUES),
    "destination_arn": tuple(queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, name) for name in _QUEUES),
    "endpoint": (*(queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, name) for name in _QUEUES), "http://127.0.0.1:1/", "u"),
    "notification_endpoint": (queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, "jobs"), "http://127.0.0.1:1/"),
    "protocol": ("sqs", "http", "https", "email", "lambda"),
    "group_name": ("g", "h"),
    "partitions_of": _QUEUES,
    "elasticq_group": ("g", "h"),
    "attribute_name": tuple(_ATTRIBUTES),
    "attribute_value": (*_VALUES, *_POLICIES),
    "data_type": ("String", "Number", "Binary", "String.Array", "String.a", "Number.x"),
    "message_group_id": ("a", "b"),
    "message_deduplication_id": ("1", "2"),
    "receive_request_attempt_id": ("n/1/0/1", "n/1/1/2", "again"),
    "label": ("l", "m"),
    "actions": ("*", "SendMessage"),
    "return_subscription_arn": ("true", "false"),
    "message_structure": ("json",),
    "id": ("1", "2", "3"),
}
_SETUP = tuple(
    _AT[name] for name in ("CreateQueue", "CreateTopic", "SendMessage", "ReceiveMessage", "Publish", "Subscribe")
)


class Known(Builder):
    """Members made of what a server said before."""

    def __init__(self, choices: Choices) -> None:
        super().__init__(choices)
        self._told: dict[str, list[Any]] = defaultdict(list)

    def learn(self, answer: Any, name: str = "") -> None:
        if isinstance(answer, dict):
            for key, each in answer.items():
                self.learn(each, key)
        elif isinstance(answer, list):
            for each in answer[:4]:
                self.learn(each, name)
        elif isinstance(answer, (str, int)) and answer not in self._told[name]:
            self._told[name] = [answer, *self._told[name][:7]]

    def is_present(self, field: msgspec.structs.FieldInfo) -> bool:
        has_words = field.name in _WORDS or field.name in self._told
        return self.choices.below(8) > (3 if has_words else 6)

    def text(self, name: str) -> str:
        told = [each for each in self._told.get(_ALIASES.get(name, name), ()) if isinstance(each, str)]
        words = _WORDS.get(name, ())
        source = self.choices.below(8)
        if told and source < 6:
            return self.choices.choice(told)
        if words and source < 7:
            return self.choices.choice(words)
        return self.choices.text()

    def number(self, name: str) -> int:
        told = [each for each in self._told.get(_ALIASES.get(name, name), ()) if isinstance(each, int)]
        if told and self.choices.below(4):
            return int(self.choices.choice(told))
        return self.choices.below(16) if self.choices.below(4) else self.choices.number()

    def mapping(self, name: str, key: Any, value: Any) -> dict[Any, Any]:
        if name == "attributes":
            names = [self.choices.choice(_ATTRIBUTES) for _ in range(self.choices.below(4))]
            return {each: self.choices.choice((*_VALUES, *_POLICIES)) for each in names}
        return super().mapping(name, key, value)


_ALIASES = {
    "elasticq_token": "token",
    "released": "token",
    "tokens": "token",
    "subscription_arn": "subscription_arn",
    "sequences": "sequence",
    "message_ids": "message_id",
    "consumer": "consumer_id",
}


_QUEUE_ARNS = {name: queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, name) for name in _QUEUES}
_NEWS = topic_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, "news")
_DEAD = json.dumps({"deadLetterTargetArn": _QUEUE_ARNS["dead"], "maxReceiveCount": 1})
_BEGINNING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("CreateQueue", {"QueueName": "dead"}),
    ("CreateQueue", {"QueueName": "jobs", "Attributes": {"RedrivePolicy": _DEAD, "VisibilityTimeout": "1"}}),
    ("CreateQueue", {"QueueName": "d.fifo", "Attributes": {"FifoQueue": "true"}}),
    ("CreateQueue", {"QueueName": "q-1"}),
    ("CreateTopic", {"Name": "news"}),
    ("Subscribe", {"TopicArn": _NEWS, "Protocol": "sqs", "Endpoint": _QUEUE_ARNS["jobs"]}),
    ("SendMessage", {"QueueUrl": "jobs", "MessageBody": "x"}),
    ("SendMessage", {"QueueUrl": "d.fifo", "MessageBody": "x", "MessageGroupId": "a", "MessageDeduplicationId": "1"}),
    ("ReceiveMessage", {"QueueUrl": "jobs"}),
    ("ElasticqSetGroup", {"GroupName": "g", "QueueNamePrefix": "q-"}),
    ("ElasticqJoinGroup", {"GroupName": "g"}),
)
"""What is there before the first call of an input, so that each of its calls finds something."""


def judge_engine(data: bytes) -> None:
    """Nothing ends the member or fails in it, the log leads to the same state applied once or twice."""
    choices = Choices(data)
    solo, builder = Solo(limits=RELAXED if choices.flag() else STRICT), Known(choices)
    for name, members in _BEGINNING:
        operation = OPERATIONS[_AT[name]]
        _execute(solo, builder, operation, msgspec.convert(members, operation.command))
    for _ in range(CALLS_MAX):
        if choices.is_over:
            break
        if choices.below(8) == 7:
            solo.advance(choices.choice([1, 500, 1_000, 31_000, 61_000]))
            continue
        call = _call(choices, builder)
        if call is not None:
            _execute(solo, builder, *call)
    solo.advance(1_000)
    _check_log(solo)


def _call(choices: Choices, builder: Known) -> tuple[Operation, Command] | None:
    """None where the wire room refuses it."""
    operation = OPERATIONS[choices.choice(_SETUP)] if choices.below(4) == 3 else choices.choice(OPERATIONS)
    members = builder.struct(operation.command)
    try:
        if operation.is_wrapped:
            return query.decode(SNS, _form(operation, members))
        return operation, wire_json.decode(operation, msgspec.json.encode(members))
    except SqsError as error:
        check_refusal(error)
    return None


def _form(operation: Operation, members: dict[str, Any]) -> bytes:
    try:
        parameters = [("Action", operation.name), *parameters_of(operation.shape, members)]
    except (TypeError, AttributeError, KeyError):  # members of another type have no place in a form
        parameters = [("Action", operation.name)]
    return "&".join(f"{quote(name)}={quote(str(value))}" for name, value in parameters).encode()


def _execute(solo: Solo, builder: Known, operation: Operation, command: Command) -> None:
    ticket = solo.start_call(command)
    if not solo.answers(ticket):  # a receive or a heartbeat that waits
        solo.advance(21_000)
    if not solo.answers(ticket):
        assert getattr(command, "wait_time_seconds", 0) > STRICT.wait_s  # relaxed limits: it waits on
        return
    (outcome,) = solo.answers(ticket)
    if isinstance(outcome, SqsError):
        check_refusal(outcome)
        return
    builder.learn(msgspec.to_builtins(outcome, str_keys=True))
    protocols = (FORM, FORM_FOR_JSON) if operation.is_wrapped else (JSON, FORM, FORM_FOR_JSON)
    if operation is PEEK or operation in BY_SEQUENCE.values():
        protocols = (JSON,)
    for protocol in protocols:
        answer = exchange.encode(SERVICES, protocol, operation, command, outcome, "request-id")
        assert answer.status == 200, answer
        if protocol == FORM:
            ElementTree.fromstring(answer.body)
        elif answer.body:
            json.loads(answer.body)


def _check_log(solo: Solo) -> None:
    states = [State(), State()]
    for entry in solo.entries:
        mutations = m.decode(entry.payload)
        assert m.encode(mutations) == entry.payload, "an entry is not what it is decoded to"
        for mutation in mutations:
            apply(states[0], mutation)
            apply(states[1], mutation)
            apply(states[1], mutation)
    digests = {state_digest(each) for each in states}
    assert len(digests) == 1, "applied twice is not applied once"
    assert digests == {state_digest(solo.node.state)}, "the log does not lead to the member's state"


TARGETS = {
    "engine": Target(
        judge_engine,
        [bytes((at,)) * 3 + bytes((at * each) % 256 for each in range(1, 200)) for at in range(64)],
        (),
        1_500,
    )
}
