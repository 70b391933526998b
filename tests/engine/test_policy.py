"""Policies: IAM's order, principals, actions, resources and conditions."""

import json
from typing import Any

import pytest

from elasticq.engine import policy
from elasticq.engine.policy import ALLOW, DENY, NEITHER, Request, evaluate

ARN = "arn:aws:sqs:us-east-1:111111111111:orders"
REQUEST = Request(
    principal="AKIDOTHER",
    account="222222222222",
    action="SendMessage",
    arn=ARN,
    source_ip="10.1.2.3",
    is_secure=False,
    now_s=1_800_000_000,  # 2027-01-15T08:00:00Z
)
EVERYBODY: dict[str, Any] = {"Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": ARN}


def verdict(*statements: dict[str, Any]) -> str:
    return evaluate(json.dumps({"Version": "2012-10-17", "Statement": list(statements)}), REQUEST)


def test_deny_wins_wherever_it_stands() -> None:
    deny = EVERYBODY | {"Effect": "Deny"}
    assert verdict() == NEITHER
    assert verdict(EVERYBODY) == ALLOW
    assert verdict(deny) == DENY
    assert verdict(EVERYBODY, deny) == verdict(deny, EVERYBODY) == verdict(EVERYBODY, deny, EVERYBODY) == DENY


@pytest.mark.parametrize("text", ["{", "[]", '{"Statement": 1}', '{"Statement": [{"Effect": "Maybe"}]}'])
def test_a_policy_that_cannot_be_read_denies(text: str) -> None:
    assert evaluate(text, REQUEST) == DENY


@pytest.mark.parametrize(
    ("principal", "matches"),
    [
        ("*", True),
        ({"AWS": "*"}, True),
        ({"AWS": "222222222222"}, True),
        ({"AWS": ["333333333333", "222222222222"]}, True),
        ({"AWS": "arn:aws:iam::222222222222:root"}, True),
        ({"AWS": "arn:aws:iam::222222222222:user/AKIDOTHER"}, True),
        ({"AWS": "arn:aws:iam::222222222222:user/AKID*"}, False),
        ({"AWS": "arn:aws:iam::222222222222:user/AKIDNOBODY"}, False),
        ({"AWS": "arn:aws:iam::333333333333:root"}, False),
        ({"AWS": []}, False),
        ({"Service": "sns.amazonaws.com"}, False),
        ("222222222222", False),
        (None, False),
    ],
)
def test_principals(principal: object, matches: bool) -> None:
    assert verdict(EVERYBODY | {"Principal": principal}) == (ALLOW if matches else NEITHER)
    others = {name: value for name, value in EVERYBODY.items() if name != "Principal"} | {"NotPrincipal": principal}
    assert verdict(others | {"Effect": "Deny"}) == (NEITHER if matches else DENY)


def test_a_statement_without_principal_or_action_allows_nobody() -> None:
    for name in ("Principal", "Action"):
        assert verdict({key: value for key, value in EVERYBODY.items() if key != name}) == NEITHER


@pytest.mark.parametrize(
    ("action", "matches"),
    [
        ("*", True),
        ("sqs:*", True),
        ("SQS:SendMessage", True),
        ("sqs:sendmessage", True),
        ("sqs:Send*", True),
        ("sqs:S?ndMessage", True),
        (["sqs:ReceiveMessage", "sqs:SendMessage"], True),
        ("sqs:ReceiveMessage", False),
        ("SendMessage", False),
        ("sns:*", False),
        ([], False),
    ],
)
def test_actions(action: object, matches: bool) -> None:
    assert verdict(EVERYBODY | {"Action": action}) == (ALLOW if matches else NEITHER)
    others = {name: value for name, value in EVERYBODY.items() if name != "Action"} | {"NotAction": action}
    assert verdict(others) == (NEITHER if matches else ALLOW)


@pytest.mark.parametrize(
    ("resource", "matches"),
    [
        (ARN, True),
        ("*", True),
        ("arn:aws:sqs:*:111111111111:ord*", True),
        ("arn:aws:sqs:eu-west-1:111111111111:orders", True),  # the region is display
        (["arn:aws:sqs:us-east-1:111111111111:other", ARN], True),
        ("arn:aws:sqs:us-east-1:111111111111:order", False),
        ("arn:aws:sqs:us-east-1:333333333333:orders", False),
        ("orders", False),
    ],
)
def test_resources(resource: object, matches: bool) -> None:
    assert verdict(EVERYBODY | {"Resource": resource}) == (ALLOW if matches else NEITHER)


CONDITIONS: list[tuple[dict[str, Any], bool]] = [
    ({"StringEquals": {"aws:PrincipalAccount": "222222222222"}}, True),
    ({"StringEquals": {"aws:PrincipalAccount": ["1", "222222222222"]}}, True),
    ({"StringEquals": {"aws:username": "akidother"}}, False),
    ({"StringEqualsIgnoreCase": {"aws:username": "akidother"}}, True),
    ({"StringNotEquals": {"aws:PrincipalAccount": ["222222222222", "1"]}}, False),
    ({"StringLike": {"aws:username": "AKID*"}}, True),
    ({"StringNotLike": {"aws:username": "AKID*"}}, False),
    ({"ArnEquals": {"aws:PrincipalArn": "arn:aws:iam::222222222222:user/*"}}, True),
    ({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:user/AKIDOTHER"}}, True),
    ({"ArnNotLike": {"aws:PrincipalArn": "arn:aws:iam::*:user/AKIDOTHER"}}, False),
    ({"ArnEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:111111111111:topic"}}, False),
    ({"ArnNotEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:111111111111:topic"}}, True),
    ({"ArnEqualsIfExists": {"aws:SourceArn": "arn:aws:sns:us-east-1:111111111111:topic"}}, True),
    ({"Null": {"aws:SourceArn": "true"}}, True),
    ({"Null": {"aws:SourceIp": True}}, False),
    ({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, True),
    ({"IpAddress": {"aws:SourceIp": ["192.168.0.0/16", "10.1.2.3"]}}, True),
    ({"IpAddress": {"aws:SourceIp": "2001:db8::/32"}}, False),
    ({"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, False),
    ({"Bool": {"aws:SecureTransport": "false"}}, True),
    ({"Bool": {"aws:SecureTransport": True}}, False),
    ({"DateLessThan": {"aws:CurrentTime": "2027-01-15T08:00:01Z"}}, True),
    ({"DateLessThan": {"aws:CurrentTime": "2027-01-15T09:00:00+01:00"}}, False),
    ({"DateGreaterThanEquals": {"aws:CurrentTime": "2027-01-15"}}, True),
    ({"DateGreaterThan": {"aws:EpochTime": "1800000000"}}, False),
    ({"NumericLessThanEquals": {"aws:EpochTime": "1800000000"}}, True),
    ({"Bool": {"aws:SecureTransport": "false"}, "IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, True),
    ({"Bool": {"aws:SecureTransport": "true"}, "IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, False),
]


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS)
def test_conditions(condition: dict[str, Any], holds: bool) -> None:
    assert verdict(EVERYBODY | {"Condition": condition}) == (ALLOW if holds else NEITHER)
    assert verdict(EVERYBODY | {"Effect": "Deny", "Condition": condition}) == (DENY if holds else NEITHER)


@pytest.mark.parametrize(
    "condition",
    [
        {"StringSounds": {"aws:username": "x"}},
        {"ForAnyValue:StringLike": {"aws:PrincipalOrgPaths": "o-1/*"}},
        {"StringEquals": {"aws:PrincipalTag/team": "x"}},
        {"StringEquals": {"aws:username": "${aws:PrincipalTag/name}"}},
        {"IpAddress": {"aws:SourceIp": "here"}},
        {"NumericEquals": {"aws:EpochTime": "soon"}},
        {"DateLessThan": {"aws:CurrentTime": "2027-13-01T00:00:00Z"}},
        {"StringEquals": ["aws:username"]},
        ["StringEquals"],
    ],
)
def test_what_is_not_understood_opens_nothing_and_closes_what_it_may(condition: object) -> None:
    assert verdict(EVERYBODY | {"Condition": condition}) == NEITHER
    assert verdict(EVERYBODY | {"Effect": "Deny", "Condition": condition}) == DENY


def test_a_pattern_of_many_stars_is_judged_at_once() -> None:
    pattern = "*a" * 2_000 + "b"
    assert not policy._is_like("a" * 4_000, pattern)
    assert policy._is_like("a" * 4_000, "*a" * 2_000)
    assert verdict(EVERYBODY | {"Action": pattern}) == NEITHER
