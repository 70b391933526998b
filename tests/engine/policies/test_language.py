"""Policies that are refused when they are set, as nobody could say what they mean."""

import json
from typing import Any

import pytest
from msgspec import structs

from elasticq.engine.policies.evaluation import DENY, NEITHER, Request, evaluate
from elasticq.engine.policies.queue_policies import check
from elasticq.model.errors import InvalidAttributeValue, OverLimit
from elasticq.model.limits import POLICY_BYTES_MAX

ARN = "arn:aws:sqs:us-east-1:111111111111:orders"
DENY_ALL: dict[str, Any] = {"Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": ARN}
REQUEST = Request("AKIDOTHER", "222222222222", "SendMessage", ARN, "10.1.2.3", False, 1_800_000_000)


def is_refused(text: str) -> bool:
    try:
        assert check("Policy", text) == text
    except InvalidAttributeValue:
        return True
    return False


def document(*statements: object, **members: object) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements), **members})


def without(*names: str) -> dict[str, Any]:
    return {key: value for key, value in DENY_ALL.items() if key not in names}


# IAM user guide, "Grammar of the IAM JSON policy language".
DOCUMENTS = {
    "no JSON": "{",
    "a list": "[]",
    "a number": "1",
    "no statement": "{}",
    "a statement of another kind": '{"Statement": 1}',
    "statements of another kind": document(1),
    "statements in two lists": document([DENY_ALL]),
    "a version that is none": document(DENY_ALL, Version="2012-10-18"),
    "a version in a list": document(DENY_ALL, Version=["2012-10-17"]),
    "an Id that is no text": document(DENY_ALL, Id=1),
    "an element that is unknown": document(DENY_ALL, Statements=[]),
    "an element in lower case": json.dumps({"statement": [DENY_ALL]}),
    "a key of the document twice": '{"Statement": [], "Statement": []}',
    "a key of a statement twice": document(DENY_ALL).replace('"Effect": "Deny"', '"Effect": "Deny", "Effect": "Allow"'),
    "a key of a condition twice": document(
        {**DENY_ALL, "Condition": {"StringEquals": {"aws:username": "x", "aws:userid": "x"}}}
    ).replace("aws:userid", "aws:username"),
    "a number that is no JSON": '{"Id": NaN, "Statement": []}',
    "two statements of one name": document({**DENY_ALL, "Sid": "a"}, {**DENY_ALL, "Sid": "a"}),
    "a name that is no text": document({**DENY_ALL, "Sid": 1}),
    "a name in a list": document({**DENY_ALL, "Sid": ["a"]}),
}


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_documents(text: str) -> None:
    assert is_refused(text)


# The same page and, of each element, "AWS JSON policy elements".
STATEMENTS: dict[str, dict[str, Any]] = {
    "no effect": without("Effect"),
    "an effect that is none": {**DENY_ALL, "Effect": "deny"},
    "an effect in a list": {**DENY_ALL, "Effect": ["Deny"]},
    "an element that is unknown": {**DENY_ALL, "Conditions": {}},
    "an element in lower case": {**without("Action"), "action": "sqs:*"},
    "nobody": without("Principal"),
    "somebody and all but somebody": {**DENY_ALL, "NotPrincipal": "*"},
    "an Allow to all but somebody": {
        **without("Principal"),
        "Effect": "Allow",
        "NotPrincipal": {"AWS": "222222222222"},
    },
    "nothing": without("Action"),
    "something and all but something": {**DENY_ALL, "NotAction": "sqs:*"},
    "a queue and all but a queue": {**DENY_ALL, "NotResource": ARN},
}
ODD: dict[str, list[object]] = {
    "Principal": [
        None,
        1,
        "222222222222",
        "arn:aws:iam::222222222222:root",
        ["*"],
        [],
        {},
        {"*": "*"},
        {"aws": "222222222222"},
        {"Aws": "*"},
        {"AWS": []},
        {"AWS": ""},
        {"AWS": None},
        {"AWS": 222222222222},
        {"AWS": {"AWS": "*"}},
        {"AWS": [["222222222222"]]},
        {"AWS": "2222"},
        {"AWS": "222222222222:root"},
        {"AWS": " 222222222222"},
        {"AWS": "arn:aws:iam::222222222222"},
        {"AWS": "arn:aws:iam::222222222222:ROOT"},
        {"AWS": "arn:aws:iam::222222222222:user/AKID*"},
        {"AWS": "arn:aws:iam::*:root"},
        {"AWS": "arn:aws:iam::222222222222:group/admins"},
        {"AWS": "AKIDOTHER"},
        {"Service": []},
        {"Service": [{"x": 1}]},
    ],
    "Action": [
        None,
        1,
        "",
        [],
        {},
        [["sqs:*"]],
        ["sqs:SendMessage", 1],
        "SendMessage",
        "sqs:",
        "sqs SendMessage",
        "**",
    ],
    "Resource": [
        None,
        1,
        [],
        {},
        [[ARN]],
        [ARN, None],
    ],
    "Condition": [
        None,
        1,
        "",
        [],
        ["StringEquals"],
        {"StringEquals": ["aws:username"]},
        {"StringEquals": None},
        {"StringEquals": {"aws:username": []}},
        {"StringNotEquals": {"aws:username": []}},
        {"StringEquals": {"aws:username": None}},
        {"StringEquals": {"aws:username": {"a": "b"}}},
        {"StringEquals": {"aws:username": [["x"]]}},
        {"StringEquals": {"aws:username": 1e300}},
        {"StringEquals": {"username": "x"}},
        {"StringEquals": {"": "x"}},
        {"StringSounds": {"aws:username": "x"}},
        {"stringEquals": {"aws:username": "x"}},
        {"StringEqualsIfexists": {"aws:username": "x"}},
        {"StringEqualsIfExistsIfExists": {"aws:username": "x"}},
        {"ForSomeValues:StringEquals": {"aws:username": "x"}},
        {":StringEquals": {"aws:username": "x"}},
        {"ForAllValues:ForAnyValue:StringEquals": {"aws:username": "x"}},
        {"StringSounds": {}},
        {"Null": {"aws:SourceIp": "TRUE"}},
        {"Null": {"aws:SourceIp": "yes"}},
        {"Null": {"aws:SourceIp": 1}},
        {"Null": {"aws:SourceIp": "true "}},
        {"NullIfExists": {"aws:SourceIp": "true"}},
        {"ForAnyValue:Null": {"aws:SourceIp": "true"}},
        {"Bool": {"aws:SecureTransport": "yes"}},
        {"Bool": {"aws:SecureTransport": 0}},
        {"NumericEquals": {"aws:EpochTime": "soon"}},
        {"NumericNotEquals": {"aws:EpochTime": "nan"}},
        {"NumericLessThan": {"aws:EpochTime": "inf"}},
        {"NumericLessThan": {"aws:EpochTime": "1_000"}},
        {"NumericLessThan": {"aws:EpochTime": "1e3"}},
        {"NumericLessThan": {"aws:EpochTime": "\uff11"}},
        {"NumericLessThan": {"aws:EpochTime": "${aws:EpochTime}"}},
        {"DateLessThan": {"aws:CurrentTime": "2027-13-01T00:00:00Z"}},
        {"DateLessThan": {"aws:CurrentTime": "2027-*"}},
        {"DateLessThan": {"aws:CurrentTime": "tomorrow"}},
        {"IpAddress": {"aws:SourceIp": "here"}},
        {"IpAddress": {"aws:SourceIp": "10.*"}},
        {"IpAddress": {"aws:SourceIp": "10.0.0.0/33"}},
        {"IpAddress": {"aws:SourceIp": "10.0.0.0/255.0.0.0"}},
        {"IpAddress": {"aws:SourceIp": "010.0.0.0/8"}},
        {"IpAddress": {"aws:SourceIp": 167772160}},
        {"IpAddress": {"aws:SourceIp": "fe80::1%eth0"}},
        {"IpAddress": {"aws:SourceIp": "::ffff:10.0.0.0/104"}},  # an IPv4 network that no IPv4 client would be in
        {"BinaryEquals": {"aws:username": "QUtJRA=="}},  # of IAM, and of no key here
    ],
}


for element, values in ODD.items():
    STATEMENTS |= {f"{element} {json.dumps(value)}": {**DENY_ALL, element: value} for value in values}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS.keys())
def test_statements(statement: dict[str, Any]) -> None:
    assert not is_refused(document(DENY_ALL))
    assert is_refused(document(statement))
    assert is_refused(document(DENY_ALL, statement))


NOT_ARNS = ["", "orders", "'$sqs_queue_arn'", "arn:aws:sqs", "arn:aws:sqs:*:orders", "ARN:a:b:c:d:e"]


@pytest.mark.parametrize("text", NOT_ARNS)
def test_text_that_is_no_arn_is_stored_and_matches_nothing(text: str) -> None:
    """AWS stores such a policy. This was recorded with a Resource and an aws:SourceArn that were no ARNs."""
    everybody = {**DENY_ALL, "Principal": {"AWS": "*"}}
    by_service = structs.replace(REQUEST, caller="sns.amazonaws.com", source_arn="arn:aws:sns:us-east-1:1:news")
    for effect in ("Allow", "Deny"):
        for element in ({"Resource": text}, {"Condition": {"ArnEquals": {"aws:SourceArn": text}}}):
            stored = document({**everybody, "Effect": effect, **element})
            assert not is_refused(stored)
            assert evaluate(stored, REQUEST) == evaluate(stored, by_service) == NEITHER
    other = document({**everybody, "Condition": {"ArnNotEquals": {"aws:SourceArn": text}}})
    assert not is_refused(other)
    assert evaluate(other, by_service) == DENY, "no ARN equals the text"


def test_the_refusal_is_awss() -> None:
    with pytest.raises(InvalidAttributeValue) as caught:
        check("Policy", document({**DENY_ALL, "Principal": ["*"]}))
    assert (caught.value.code, caught.value.status) == ("InvalidAttributeValue", 400)
    assert caught.value.message == "Invalid value for the parameter Policy."


def test_what_an_earlier_version_stored_denies_all_it_could_mean() -> None:
    allow = {**DENY_ALL, "Effect": "Allow"}
    for statement in STATEMENTS.values():
        assert evaluate(document(allow, statement), REQUEST) == DENY


@pytest.mark.parametrize("name", ["Effect", "Principal", "Action", "Resource", "Condition", "Sid"])
def test_no_depth_of_lists_or_objects_is_too_much_for_the_reader(name: str) -> None:
    """At every depth that a policy's length allows, on both sides of where Python's reader gives up."""
    around = len(document({**DENY_ALL, name: "@"}))
    for opener, closer in (("[", "]"), ('{"a":', "}")):
        for depth in {1, 2, 5, *range(900, 1_010, 3), (POLICY_BYTES_MAX - around) // len(opener + closer)}:
            if (len(opener + closer) * depth) + around <= POLICY_BYTES_MAX:
                inside = '"a"' if opener == "[" else "1"
                text = document({**DENY_ALL, name: "@"}).replace('"@"', opener * depth + inside + closer * depth)
                if not (name in ("Action", "Resource") and depth == 1):
                    assert is_refused(text), (name, depth)


def test_what_is_too_long_is_not_read_at_all() -> None:
    with pytest.raises(OverLimit, match="Submitted policy is over max allowed size"):
        check("Policy", "[" * (POLICY_BYTES_MAX + 1))
