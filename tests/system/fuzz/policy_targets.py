"""Targets of the documents that clients store: filter policies, delivery policies, queue policies."""

import json
from itertools import pairwise
from typing import Any

from elasticq.engine.filters.index import FilterIndex
from elasticq.engine.filters.policy import (
    MESSAGE_ATTRIBUTES,
    MESSAGE_BODY,
    FilterPolicy,
    InvalidFilterPolicy,
    compile_policy,
)
from elasticq.engine.policies import evaluation as policy
from elasticq.engine.policies import queue_policies as policies
from elasticq.engine.stored import delivery_policies
from elasticq.engine.stored.delivery_policies import DeliveryPolicy, InvalidDeliveryPolicy
from elasticq.model import limits
from elasticq.model.commands import MessageAttributes, MessageAttributeValue
from elasticq.model.errors import SqsError
from tests.engine import naive_filters
from tests.system.fuzz.choices import Choices
from tests.system.fuzz.target import Target, check_told
from tests.system.fuzz.wire_targets import check_refusal

# --- filter policies ----------------------------------------------------------------------

_TEXTS = ("", "a", "b", "ab", "ba", "aB", "Ab", "abab", "10.0.0.7", "10.0.1.7", "::1")
_NUMBERS = (0, 1, -1, 2, 3, 0.5, -2.5, 1.0, 1e3, 5)
_PATTERNS = ("a*b", "*a", "b*", "a*", "*ab*a", "ab", "a*b*a")
_NAMES = ("a", "b", "c")
_JUDGED_MAX = 300
"""Ways that the second judge, which tries them all, may have to try."""


def _scalar(choices: Choices) -> Any:
    return choices.choice([choices.choice(_TEXTS), choices.choice(_NUMBERS), True, False, None])


def _wanted(choices: Choices) -> Any:
    name = choices.choice(
        ["", "", "prefix", "suffix", "equals-ignore-case", "wildcard", "exists", "cidr", "numeric", "anything-but"]
    )
    if not name:
        return _scalar(choices)
    return {name: _argument(choices, name)}


def _argument(choices: Choices, name: str) -> Any:
    if name == "wildcard":
        return choices.choice(_PATTERNS)
    if name == "exists":
        return choices.flag()
    if name == "cidr":
        return choices.choice(["10.0.0.0/24", "10.0.0.0/15", "::/64"])
    if name == "numeric":
        if choices.flag():
            return [choices.choice(["=", "<", "<=", ">", ">="]), choices.choice(_NUMBERS)]
        low = choices.choice(_NUMBERS)
        return [choices.choice([">", ">="]), low, choices.choice(["<", "<="]), low + 1 + choices.below(3)]
    if name == "anything-but":
        kind = choices.below(4)
        if kind == 0:
            return choices.choice(_TEXTS)
        if kind == 1:
            return choices.choice(_NUMBERS)
        if kind == 2:
            return [choices.choice(_TEXTS) for _ in range(choices.below(2) + 1)]
        below = choices.choice(["prefix", "suffix", "wildcard", "equals-ignore-case"])
        return {below: _argument(choices, below)}
    return choices.choice(_TEXTS)


def _policy(choices: Choices, depth: int, *, is_nested: bool) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for _ in range(choices.below(3) + 1):
        name = choices.choice((*_NAMES, "a.b"))
        if depth and is_nested and choices.below(3) == 0:
            made[name] = _policy(choices, depth - 1, is_nested=True)
        else:
            made[name] = [_wanted(choices) for _ in range(choices.below(3) + 1)]
    if depth and choices.below(3) == 0:
        made["$or"] = [_policy(choices, depth - 1, is_nested=is_nested) for _ in range(choices.below(2) + 2)]
    return made


def _event(choices: Choices, depth: int = 3) -> Any:
    kind = choices.below(4 if depth else 2)
    if kind < 2:
        return _scalar(choices)
    if kind == 2:
        return [_event(choices, depth - 1) for _ in range(choices.below(4))]
    return {choices.choice((*_NAMES, "a.b")): _event(choices, depth - 1) for _ in range(choices.below(4))}


def _attribute(value: Any) -> MessageAttributeValue:
    if isinstance(value, list):
        return MessageAttributeValue("String.Array", json.dumps(value))
    if isinstance(value, str):
        return MessageAttributeValue("String", value)
    return MessageAttributeValue("Number", repr(value))


def _tries(given: dict[str, Any], event: dict[str, Any]) -> int:
    """How many ways through both the second judge might try at most."""
    found = list(naive_filters.leaves(event))
    most = 0
    for alternative in naive_filters.alternatives(given):
        ways = 1
        for key, _ in alternative:
            ways *= max(1, sum(leaf.key == key for leaf in found))
        most += ways
    return most


def judge_filters(data: bytes) -> None:
    """Policies that are mostly valid, and a message for them: two judges and the index over several policies agree."""
    choices = Choices(data)
    is_of_body = choices.flag()
    scope = MESSAGE_BODY if is_of_body else MESSAGE_ATTRIBUTES
    texts = [_policy(choices, 2, is_nested=is_of_body) for _ in range(choices.below(3) + 1)]
    compiled: list[tuple[dict[str, Any], FilterPolicy]] = []
    for text in texts:
        try:
            compiled.append((text, compile_policy(json.dumps(text), scope)))
        except InvalidFilterPolicy as error:
            check_told(error)
    attributes: MessageAttributes = {}
    body, event = "no JSON", {}
    if is_of_body:
        event = {name: _event(choices) for name in _NAMES[: choices.below(4)]}
        body = json.dumps(event)
    else:
        for name in (*_NAMES, "a.b"):
            if choices.flag():
                event[name] = [_scalar(choices) for _ in range(choices.below(4))] if choices.flag() else _typed(choices)
        attributes = {name: _attribute(value) for name, value in event.items()}
    for text, read in compiled:
        if _tries(text, event) <= _JUDGED_MAX:
            expected = naive_filters.matches(text, event, is_of_attributes=not is_of_body)
            assert read.matches(attributes, body) is expected, f"{text} of {event}"
    _check_index([read for _, read in compiled], attributes, body)


def _typed(choices: Choices) -> Any:
    """A text or a number, which an attribute is without being a list."""
    return choices.choice([_TEXTS[1:], _NUMBERS][choices.below(2)])  # type: ignore[call-overload]


def _check_index(compiled: list[FilterPolicy], attributes: MessageAttributes, body: str) -> None:
    """The index finds who each policy by itself lets through, and nobody who was removed."""
    index: FilterIndex[int] = FilterIndex()
    for key, read in enumerate(compiled):
        index.set(key, read)
    index.set(len(compiled), compiled[0] if compiled else None)
    index.remove(len(compiled))
    found = index.matching(attributes, body)
    alone = [key for key, read in enumerate(compiled) if read.matches(attributes, body)]
    if attributes or any(read.is_of_body for read in compiled):  # without attributes nobody asks for them
        assert sorted(found) == alone, "the index finds others than the policies"


def judge_filter_text(data: bytes) -> None:
    """A policy as a text, and behind a NUL a message: whatever both are, it is judged or refused."""
    text, _, message = data.decode("utf-8", "replace").partition("\0")
    for scope in (MESSAGE_BODY, MESSAGE_ATTRIBUTES):
        try:
            read = compile_policy(text, scope)
        except InvalidFilterPolicy as error:
            check_told(error)
            continue
        attributes = {
            "a": MessageAttributeValue("String", message[:50]),
            "b": MessageAttributeValue("Number", message[:50]),
            "c": MessageAttributeValue("String.Array", message),
        }
        verdict = read.matches(attributes, message)
        assert compile_policy(text, scope).matches(attributes, message) is verdict


_FILTER_SEEDS = (
    '{"a":["x",{"prefix":"y"},{"numeric":[">",1,"<=",5]},{"anything-but":["z"]},null,true]}\0{"a":"x"}',
    '{"$or":[{"a":[1]},{"b":{"c":[{"exists":false}]}}],"d.e":[{"wildcard":"a*b"}]}\0{"d":{"e":"ab"},"a":[1,2]}',
    '{"c":[{"cidr":"10.0.0.0/8"},{"suffix":"s"},{"equals-ignore-case":"S"}]}\0["10.1.2.3"]',
    '{"b":[{"numeric":["=",3e2]},{"anything-but":{"wildcard":"*a*"}},{"exists":true}]}\x00300',
)
_FILTER_TOKENS = [
    "prefix",
    "suffix",
    "wildcard",
    "numeric",
    "cidr",
    "exists",
    "anything-but",
    "equals-ignore-case",
    "$or",
    ">=",
    "<=",
    "10.0.0.0/8",
    "::",
    "]",
    "}",
    "\\*",
    "\\u0000",
    "1e308",
    "-0",
    "null",
    "true",
]


# --- delivery policies --------------------------------------------------------------------

_RETRY = (
    "minDelayTarget",
    "maxDelayTarget",
    "numRetries",
    "numNoDelayRetries",
    "numMinDelayRetries",
    "numMaxDelayRetries",
)


def _retry(choices: Choices) -> dict[str, Any]:
    """Mostly in its bounds."""
    made: dict[str, Any] = {name: choices.below(120) + 1 for name in _RETRY[:3] if choices.flag()}
    made |= {name: choices.below(20) for name in _RETRY[3:] if choices.flag()}
    if choices.flag():
        made["backoffFunction"] = choices.choice(delivery_policies.FUNCTIONS)
    if choices.seldom():
        made[choices.choice(_RETRY)] = choices.json(1)
    return made


def _section(choices: Choices, name: str) -> Any:
    if choices.seldom():
        return choices.json(2)
    if name.endswith("etryPolicy"):
        return _retry(choices)
    if name.endswith("hrottlePolicy"):
        return {"maxReceivesPerSecond": choices.number()}
    return {"headerContentType": choices.choice(["text/plain", "a\r\nb: c", "application/json", 7, "\u00e9"])}


def _delivery_text(choices: Choices, names: tuple[str, ...], *, of_topic: bool) -> str:
    made: Any = {name: _section(choices, name) for name in names if choices.flag()}
    if of_topic:
        if choices.flag():
            made["disableSubscriptionOverrides"] = choices.choice([True, False, None, 1])
        made = {"http": made}
    return json.dumps(made)


_OF_TOPIC = ("defaultHealthyRetryPolicy", "defaultThrottlePolicy", "defaultRequestPolicy")
_OF_SUBSCRIPTION = ("healthyRetryPolicy", "throttlePolicy", "requestPolicy")


def judge_delivery(data: bytes) -> None:
    """A topic's and a subscription's policy, built or, behind a first byte of 0xff, as texts with a NUL between."""
    if data[:1] == b"\xff":
        topic_text, _, text = data[1:].decode("utf-8", "replace").partition("\0")
    else:
        choices = Choices(data)
        topic_text = _delivery_text(choices, _OF_TOPIC, of_topic=True)
        text = _delivery_text(choices, _OF_SUBSCRIPTION, of_topic=False)
    try:
        _check_delays(delivery_policies.of_topic(topic_text))
    except InvalidDeliveryPolicy as error:
        check_told(error)
        topic_text = ""
    try:
        _check_delays(delivery_policies.of_subscription(text))
    except InvalidDeliveryPolicy as error:
        check_told(error)
        return
    try:
        found = delivery_policies.in_force(topic_text, text)
    except InvalidDeliveryPolicy:
        return  # the two contradict each other, which the action refuses
    _check_delays(found)
    shown = delivery_policies.members_in_force(topic_text, text)
    json.dumps(shown)
    again = json.dumps({name: value for name, value in shown.items() if name in _OF_SUBSCRIPTION})
    assert delivery_policies.of_subscription(again, delivery_policies.of_topic(topic_text)) == found, (
        "what is shown differs"
    )


def _check_delays(found: DeliveryPolicy) -> None:
    delays = [found.delay_s(retry) for retry in range(1, found.retries + 1)]
    assert found.delay_s(found.retries + 1) is None
    assert all(delay is not None and 0 <= delay <= found.max_delay_s + 1e-6 for delay in delays)
    growing = [delay for delay in delays[found.at_once :] if delay is not None]
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(growing)), "delays fall"
    assert sum(delay or 0 for delay in delays) <= limits.RETRY_TOTAL_S_MAX
    found.content_type.encode("ascii")
    assert "\n" not in found.content_type
    assert "\r" not in found.content_type


# --- policies of queues ---------------------------------------------------------------------

_ARN = "arn:aws:sqs:us-east-1:111111111111:q"
_REQUESTS = tuple(
    policy.Request(principal, account, action, _ARN, address, is_secure, 1_795_312_685, is_any_region=is_secure)
    for principal, account in (("AKIDTWO", "222222222222"), ("root", "111111111111"), ("", ""))
    for action, address, is_secure in (("SendMessage", "10.0.0.5", False), ("DeleteQueue", "::1", True))
)
_OPERATORS = [
    "StringEquals",
    "StringNotEquals",
    "StringLike",
    "StringNotLike",
    "StringEqualsIgnoreCase",
    "ArnLike",
    "ArnEquals",
    "IpAddress",
    "NotIpAddress",
    "Bool",
    "NumericEquals",
    "NumericLessThan",
    "NumericGreaterThanEqualsIfExists",
    "DateLessThan",
    "DateGreaterThan",
    "Null",
    "BinaryEquals",
    "ForAnyValue:StringEquals",
]
_KEYS = [
    "aws:SourceIp",
    "aws:CurrentTime",
    "aws:EpochTime",
    "aws:SecureTransport",
    "aws:PrincipalArn",
    "aws:SourceArn",
    "aws:username",
    "aws:PrincipalAccount",
    "aws:SourceAccount",
    "aws:Unknown",
]
_VALUES = (
    "10.0.0.0/8",
    "10.0.0.5",
    "*",
    "true",
    "1e3",
    "2030-01-01T00:00:00Z",
    "arn:aws:iam::222222222222:*",
    _ARN,
    "a?",
)
_VALUES += ("222222222222", "${aws:username}", "", "arn:aws:iam::111111111111:root", "AKIDTWO")


def _one_or_more(choices: Choices, of: tuple[str, ...] | list[str]) -> Any:
    return [choices.choice(of) for _ in range(choices.below(3) + 1)] if choices.flag() else choices.choice(of)


def _statement(choices: Choices) -> dict[str, Any]:
    made: dict[str, Any] = {"Sid": choices.choice(["l", "m"]), "Effect": choices.choice(["Allow", "Deny"])}
    principal = choices.choice(
        ["*", {"AWS": _one_or_more(choices, _VALUES)}, {"AWS": "*"}, {"Service": "sns.amazonaws.com"}]
    )
    made[choices.choice(["Principal", "Principal", "NotPrincipal"])] = principal
    actions = ("sqs:*", "SQS:SendMessage", "sqs:DeleteQueue", "*", "sqs:S*d?essage")
    made[choices.choice(["Action", "Action", "NotAction"])] = _one_or_more(choices, actions)
    resources = (_ARN, "*", "arn:aws:sqs:*:111111111111:*", "arn:aws:sqs:us-east-1:1*:q")
    made[choices.choice(["Resource", "Resource", "NotResource"])] = _one_or_more(choices, resources)
    if choices.flag():
        made["Condition"] = {
            choices.choice(_OPERATORS): {choices.choice(_KEYS): _one_or_more(choices, _VALUES)}
            for _ in range(choices.below(3) + 1)
        }
    if choices.seldom():
        made[choices.text()] = choices.json()
    return made


def judge_policy(data: bytes) -> None:
    """A queue's policy, built or, behind a first byte of 0xff, as a text.

    What is accepted is judged without a failure, a Deny for all wins over it, and what AddPermission adds is taken
    away by RemovePermission.
    """
    if data[:1] == b"\xff":
        text = data[1:].decode("utf-8", "replace")
    else:
        choices = Choices(data)
        statements = [_statement(choices) for _ in range(choices.below(3) + 1)]
        text = json.dumps({"Version": "2012-10-17", "Id": "x", "Statement": statements})
    try:
        policies.check("Policy", text)
        is_accepted = bool(text)
    except SqsError as error:
        check_refusal(error)
        is_accepted = False
    for request in _REQUESTS:
        verdict = policy.evaluate(text, request)
        assert verdict in (policy.ALLOW, policy.DENY, policy.NEITHER)
        if is_accepted:
            _check_deny(text, request)
    try:
        more = policies.with_permission(text, _ARN, "l", ["111111111111"], ["*"])
    except SqsError as error:
        check_refusal(error)
        return
    if more is None or not is_accepted:
        return
    policies.check("Policy", more)
    assert policy.evaluate(more, _REQUESTS[2]) in (policy.ALLOW, policy.DENY)
    left = policies.without_permission(more, "l")
    assert left is not None
    for request in _REQUESTS:
        if left:
            assert policy.evaluate(left, request) == policy.evaluate(text, request), (
                "a permission left something behind"
            )


def _check_deny(text: str, request: policy.Request) -> None:
    document = json.loads(text)
    statements = document["Statement"] if isinstance(document["Statement"], list) else [document["Statement"]]
    denied = {"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"}
    whole = json.dumps({**document, "Statement": [*statements, denied]})
    assert policy.evaluate(whole, request) == policy.DENY, "a Deny for all does not win"


_POLICY = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "l",
                "Effect": "Allow",
                "Principal": {"AWS": ["111111111111", "*"]},
                "NotAction": ["sqs:*"],
                "Resource": _ARN,
                "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}, "Bool": {"aws:SecureTransport": False}},
            }
        ],
    }
).encode()

TARGETS = {
    "filters": Target(judge_filters, [bytes((at,)) + bytes(range(at, at + 80)) for at in range(0, 160, 4)], (), 400),
    "filter_text": Target(judge_filter_text, [seed.encode() for seed in _FILTER_SEEDS], _FILTER_TOKENS, 3_000),
    "delivery": Target(
        judge_delivery,
        [
            *(bytes(range(at, at + 60)) for at in range(0, 100, 5)),
            b'\xff{"http":{"defaultHealthyRetryPolicy":{"numRetries":5,"backoffFunction":"geometric"}}}\0{"healthyRetryPolicy":'
            b'{"minDelayTarget":1,"maxDelayTarget":60,"numRetries":50}}',
        ],
        [*_RETRY, *_OF_TOPIC, *_OF_SUBSCRIPTION, *delivery_policies.FUNCTIONS, "disableSubscriptionOverrides"],
        1_000,
    ),
    "policy": Target(
        judge_policy,
        [b"\xff" + _POLICY, *(bytes(range(at, at + 60)) for at in range(0, 100, 5))],
        [*_OPERATORS, *_KEYS, *_VALUES, "Statement", "Principal", "NotPrincipal", "Effect", "Allow", "Deny"],
        3_000,
    ),
}
