"""Policies: IAM's order, principals, actions, resources and conditions."""

import json
from typing import Any

import msgspec
import pytest

from elasticq.engine.policies.evaluation import ALLOW, DENY, NEITHER, Request, evaluate
from elasticq.engine.policies.patterns import is_like

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


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in EVERYBODY.items() if key != name}


# IAM user guide, "AWS JSON policy elements: Principal".
@pytest.mark.parametrize(
    ("principal", "matches"),
    [
        ("*", True),
        ({"AWS": "*"}, True),
        ({"AWS": ["333333333333", "*"]}, True),
        ({"AWS": "222222222222"}, True),
        ({"AWS": ["333333333333", "222222222222"]}, True),
        ({"AWS": "arn:aws:iam::222222222222:root"}, True),
        ({"AWS": "arn:aws-cn:iam::222222222222:root"}, True),  # the partition is display
        ({"AWS": "arn:aws:iam::222222222222:user/AKIDOTHER"}, True),
        # A user's path is no part of the name, and names are unique in an account ("IAM identifiers").
        ({"AWS": "arn:aws:iam::222222222222:user/division/team/AKIDOTHER"}, True),
        ({"AWS": "arn:aws:iam::222222222222:user/AKIDNOBODY"}, False),
        ({"AWS": "arn:aws:iam::333333333333:user/AKIDOTHER"}, False),
        ({"AWS": "arn:aws:iam::333333333333:root"}, False),
        ({"AWS": "arn:aws:iam::222222222222:role/AKIDOTHER"}, False),
        ({"AWS": "arn:aws:sts::222222222222:assumed-role/AKIDOTHER/session"}, False),
        ({"AWS": "arn:aws:sts::222222222222:federated-user/AKIDOTHER"}, False),
        ({"Service": "sns.amazonaws.com"}, False),
        ({"Service": ["sns.amazonaws.com"], "AWS": "222222222222"}, True),
        ({"Federated": "cognito-identity.amazonaws.com", "CanonicalUser": "79a59df900b949e5"}, False),
    ],
)
def test_principals(principal: object, matches: bool) -> None:
    assert verdict(EVERYBODY | {"Principal": principal}) == (ALLOW if matches else NEITHER)
    assert verdict(EVERYBODY | {"Principal": principal, "Effect": "Deny"}) == (DENY if matches else NEITHER)


USER, OTHER_USER = (f"arn:aws:iam::222222222222:user/{name}" for name in ("AKIDOTHER", "AKIDNOBODY"))


# IAM user guide, "AWS JSON policy elements: NotPrincipal", "Specifying NotPrincipal with Deny": "you must also specify
# the account ARN", and of an account that stands there with one of its users all others are denied.
@pytest.mark.parametrize(
    ("principal", "is_denied"),
    [
        ("*", False),
        ({"AWS": [USER, "arn:aws:iam::222222222222:root"]}, False),
        ({"AWS": ["222222222222", OTHER_USER, USER]}, False),
        ({"AWS": USER}, True),
        ({"AWS": "222222222222"}, True),
        ({"AWS": [OTHER_USER, "arn:aws:iam::222222222222:root"]}, True),
        ({"AWS": [USER, "arn:aws:iam::333333333333:root"]}, True),
        ({"Service": "sns.amazonaws.com"}, True),
    ],
)
def test_a_deny_to_all_but_some(principal: object, is_denied: bool) -> None:
    statement = without("Principal") | {"NotPrincipal": principal, "Effect": "Deny"}
    assert verdict(EVERYBODY, statement) == (DENY if is_denied else ALLOW)


# IAM user guide, "AWS JSON policy elements: Action".
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
        ("sns:*", False),
    ],
)
def test_actions(action: object, matches: bool) -> None:
    assert verdict(EVERYBODY | {"Action": action}) == (ALLOW if matches else NEITHER)
    assert verdict(without("Action") | {"NotAction": action}) == (NEITHER if matches else ALLOW)


@pytest.mark.parametrize(
    ("resource", "matches"),
    [
        (ARN, True),
        ("*", True),
        ("arn:aws:sqs:*:111111111111:ord*", True),
        ("arn:aws:sqs:eu-west-1:111111111111:orders", False),
        (["arn:aws:sqs:us-east-1:111111111111:other", ARN], True),
        ("arn:aws:sqs:us-east-1:111111111111:order", False),
        ("arn:aws:sqs:us-east-1:333333333333:orders", False),
    ],
)
def test_resources(resource: object, matches: bool) -> None:
    assert verdict(EVERYBODY | {"Resource": resource}) == (ALLOW if matches else NEITHER)
    assert verdict(without("Resource") | {"NotResource": resource}) == (NEITHER if matches else ALLOW)


def test_where_all_regions_are_one_a_resource_may_name_any() -> None:
    policy = json.dumps({"Statement": [EVERYBODY | {"Resource": "arn:aws:sqs:eu-west-1:111111111111:orders"}]})
    assert evaluate(policy, REQUEST) == NEITHER
    assert evaluate(policy, msgspec.structs.replace(REQUEST, is_any_region=True)) == ALLOW


def test_a_statement_without_resources_is_about_its_queue() -> None:
    assert verdict(without("Resource")) == ALLOW


def test_a_resource_with_a_variable_opens_nothing_and_closes_what_it_may() -> None:
    """IAM user guide, "IAM policy elements: Variables and tags"; nothing here computes them."""
    for name in ("Resource", "NotResource"):
        statement = without("Resource") | {name: "arn:aws:sqs:*:111111111111:${aws:username}"}
        assert verdict(statement) == NEITHER
        assert verdict(EVERYBODY, statement | {"Effect": "Deny"}) == DENY


# IAM user guide, "Condition operators"; where another page or tool is the source, it is named.
CONDITIONS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"StringEquals": {}}, True),
    ({"StringEquals": {"aws:PrincipalAccount": "222222222222"}}, True),
    ({"StringEquals": {"aws:PrincipalAccount": 222222222222}}, True),  # "Grammar": quotation marks are optional
    ({"StringEquals": {"aws:PrincipalAccount": ["1", "222222222222"]}}, True),
    ({"StringEquals": {"AWS:principalACCOUNT": "222222222222"}}, True),  # "Condition": key names are not case-sensitive
    ({"StringEquals": {"aws:username": "akidother"}}, False),
    ({"StringEqualsIgnoreCase": {"aws:username": "akidother"}}, True),
    ({"StringNotEqualsIgnoreCase": {"aws:username": "akidother"}}, False),
    ({"StringNotEquals": {"aws:PrincipalAccount": ["222222222222", "1"]}}, False),
    ({"StringEquals": {"aws:username": "AKID*"}}, False),
    ({"StringLike": {"aws:username": "AKID*"}}, True),
    ({"StringLike": {"aws:username": "AKIDOTHE?"}}, True),
    ({"StringNotLike": {"aws:username": "AKID*"}}, False),
    ({"StringEquals": {"aws:SourceAccount": "222222222222"}}, False),  # a key that the request does not have
    ({"StringNotEquals": {"aws:SourceAccount": "222222222222"}}, True),
    ({"StringNotLike": {"aws:SourceAccount": "*"}}, True),
    ({"StringEqualsIfExists": {"aws:SourceAccount": "222222222222"}}, True),
    ({"StringEqualsIfExists": {"aws:PrincipalAccount": "1"}}, False),
    ({"StringNotEqualsIfExists": {"aws:SourceAccount": "222222222222"}}, True),
    ({"ArnEquals": {"aws:PrincipalArn": "arn:aws:iam::222222222222:user/*"}}, True),
    ({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:user/AKIDOTHER"}}, True),
    ({"ArnLike": {"aws:PrincipalArn": "arn:aws:iam:*:user/AKIDOTHER:x"}}, False),  # part by part
    ({"StringLike": {"aws:PrincipalArn": "arn:aws:*:user/AKIDOTHER"}}, True),  # as one text
    ({"ArnNotLike": {"aws:PrincipalArn": "arn:aws:iam::*:user/AKIDOTHER"}}, False),
    ({"ArnEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:111111111111:topic"}}, False),
    ({"ArnNotEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:111111111111:topic"}}, True),
    ({"ArnEqualsIfExists": {"aws:SourceArn": "arn:aws:sns:us-east-1:111111111111:topic"}}, True),
    ({"Null": {"aws:SourceArn": "true"}}, True),
    ({"Null": {"aws:SourceArn": "false"}}, False),
    ({"Null": {"aws:TokenIssueTime": "true"}}, True),  # the guide's example: no temporary credentials
    ({"Null": {"aws:SourceIp": True}}, False),
    ({"Null": {"aws:SourceIp": "false"}}, True),
    ({"Null": {"aws:SourceIp": ["true", "false"]}}, True),
    ({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, True),
    ({"IpAddress": {"aws:SourceIp": "10.9.9.9/8"}}, True),  # bits of the host do not matter
    ({"IpAddress": {"aws:SourceIp": "203.0.113.0/24"}}, False),  # the guide's example
    ({"IpAddress": {"aws:SourceIp": ["203.0.113.0/24", "2001:DB8:1234:5678::/64"]}}, False),  # the same
    ({"IpAddress": {"aws:SourceIp": ["192.168.0.0/16", "10.1.2.3"]}}, True),
    ({"IpAddress": {"aws:SourceIp": "2001:db8::/32"}}, False),
    ({"IpAddress": {"aws:SourceIp": "::/0"}}, False),
    ({"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, False),
    ({"NotIpAddress": {"aws:SourceIp": ["203.0.113.0/24", "192.0.2.0/24"]}}, True),
    ({"IpAddressIfExists": {"aws:VpcSourceIp": "203.0.113.0/24"}}, True),  # iam.cloudcopilot.io, IpAddressIfExists
    ({"NotIpAddressIfExists": {"aws:VpcSourceIp": "203.0.113.0/24"}}, True),  # the same, NotIpAddressIfExists
    ({"Bool": {"aws:SecureTransport": "false"}}, True),
    ({"Bool": {"aws:SecureTransport": "False"}}, True),
    ({"Bool": {"aws:SecureTransport": False}}, True),
    ({"Bool": {"aws:SecureTransport": True}}, False),
    ({"Bool": {"aws:MultiFactorAuthPresent": "false"}}, False),  # absent from calls with long-term keys
    ({"BoolIfExists": {"aws:MultiFactorAuthPresent": "false"}}, True),
    # The AWS CLI's example of simulate-custom-policy: a call before the time that the policy wants.
    ({"DateGreaterThan": {"aws:CurrentTime": "2028-08-16T12:00:00Z"}}, False),
    ({"DateLessThan": {"aws:CurrentTime": "2027-01-15T08:00:01Z"}}, True),
    ({"DateLessThan": {"aws:CurrentTime": "2027-01-15T09:00:00+01:00"}}, False),
    ({"DateGreaterThanEquals": {"aws:CurrentTime": "2027-01-15"}}, True),
    ({"DateEquals": {"aws:CurrentTime": "2027-01-15T08:00:00Z"}}, True),
    ({"DateNotEquals": {"aws:CurrentTime": "1800000000"}}, False),
    ({"DateGreaterThan": {"aws:EpochTime": "1800000000"}}, False),
    ({"DateGreaterThan": {"aws:CurrentTime": "1800000000000"}}, False),  # seconds, not milliseconds
    ({"DateGreaterThan": {"aws:TokenIssueTime": "2020-01-01T00:00:01Z"}}, False),  # the guide's: a key that is absent
    ({"NumericLessThanEquals": {"aws:EpochTime": "1800000000"}}, True),
    ({"NumericLessThan": {"aws:EpochTime": 1800000000.5}}, True),
    ({"NumericNotEquals": {"aws:EpochTime": ["1", "1800000000.0"]}}, False),
    ({"NumericGreaterThan": {"aws:MultiFactorAuthAge": "-1"}}, False),
    # "Multivalued context keys": every value of the request, or any; of no value every one and not any.
    ({"ForAllValues:StringEquals": {"aws:username": ["x", "AKIDOTHER"]}}, True),
    ({"ForAllValues:StringEquals": {"aws:username": "x"}}, False),
    ({"ForAllValues:StringEquals": {"aws:SourceAccount": "x"}}, True),
    ({"ForAnyValue:StringEquals": {"aws:username": ["x", "AKIDOTHER"]}}, True),
    ({"ForAnyValue:StringEquals": {"aws:SourceAccount": "x"}}, False),
    ({"ForAnyValue:StringNotEquals": {"aws:SourceAccount": "x"}}, False),
    ({"ForAnyValue:StringNotEquals": {"aws:username": "x"}}, True),
    # "Conditions with multiple context keys or values": all operators and all keys, any value.
    ({"Bool": {"aws:SecureTransport": "false"}, "IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, True),
    ({"Bool": {"aws:SecureTransport": "true"}, "IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, False),
    ({"StringEquals": {"aws:PrincipalAccount": "222222222222", "aws:username": "x"}}, False),
]


@pytest.mark.parametrize(("condition", "holds"), CONDITIONS)
def test_conditions(condition: dict[str, Any], holds: bool) -> None:
    assert verdict(EVERYBODY | {"Condition": condition}) == (ALLOW if holds else NEITHER)
    assert verdict(EVERYBODY | {"Effect": "Deny", "Condition": condition}) == (DENY if holds else NEITHER)


@pytest.mark.parametrize(
    "condition",
    [
        {"ForAnyValue:StringLike": {"aws:PrincipalOrgPaths": "o-1/*"}},
        {"StringEquals": {"aws:PrincipalTag/team": "x"}},
        {"Null": {"aws:PrincipalTag/team": "true"}},
        {"StringEquals": {"aws:username": "${aws:PrincipalTag/name}"}},
        {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:user/${aws:username}"}},
        {"NumericEquals": {"aws:username": "1"}},
        {"IpAddress": {"aws:username": "10.0.0.0/8"}},
        {"ArnLike": {"aws:username": "arn:aws:iam::*:user/x"}},
        {"StringLike": {"aws:CurrentTime": "2027-*"}},
    ],
)
def test_what_nobody_can_decide_opens_nothing_and_closes_what_it_may(condition: dict[str, Any]) -> None:
    assert verdict(EVERYBODY | {"Condition": condition}) == NEITHER
    assert verdict(EVERYBODY | {"Effect": "Deny", "Condition": condition}) == DENY
    also_false = condition | {"Bool": {"aws:SecureTransport": "true"}}
    assert verdict(EVERYBODY, EVERYBODY | {"Effect": "Deny", "Condition": also_false}) == ALLOW


@pytest.mark.parametrize(
    ("source_ip", "network", "is_in"),
    [
        ("::ffff:10.1.2.3", "10.0.0.0/8", True),
        ("::ffff:a01:203", "10.1.2.3", True),
        ("::ffff:10.1.2.3", "11.0.0.0/8", False),
        ("::ffff:10.1.2.3", "::/0", False),
        ("2001:db8::1", "2001:db8::/32", True),
        ("2001:db8::1", "0.0.0.0/0", False),
        ("fe80::1%eth0", "fe80::/10", True),
    ],
)
def test_an_ipv4_client_of_a_socket_on_all_addresses_is_in_ipv4s_networks(
    source_ip: str, network: str, is_in: bool
) -> None:
    """Such a socket names its IPv4 clients by IPv6 addresses (RFC 4291, 2.5.5.2)."""
    request = msgspec.structs.replace(REQUEST, source_ip=source_ip)
    for operator, holds in (("IpAddress", is_in), ("NotIpAddress", not is_in)):
        deny = EVERYBODY | {"Effect": "Deny", "Condition": {operator: {"aws:SourceIp": network}}}
        assert evaluate(json.dumps({"Statement": [EVERYBODY, deny]}), request) == (DENY if holds else ALLOW)


def test_a_client_without_an_address_fulfils_a_deny_by_address() -> None:
    request = msgspec.structs.replace(REQUEST, source_ip="")
    deny = EVERYBODY | {"Effect": "Deny", "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}
    assert evaluate(json.dumps({"Statement": [EVERYBODY, deny]}), request) == DENY


def test_a_pattern_of_many_stars_is_judged_at_once() -> None:
    pattern = "*a" * 2_000 + "b"
    assert not is_like("a" * 4_000, pattern)
    assert is_like("a" * 4_000, "*a" * 2_000)
    assert verdict(EVERYBODY | {"Action": f"sqs:{pattern}"}) == NEITHER
