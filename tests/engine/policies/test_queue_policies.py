"""Statements that AddPermission writes and RemovePermission takes away, and the quotas of a policy."""

import json

import pytest

from elasticq.engine.policies.queue_policies import check, with_permission, without_permission
from elasticq.model import limits
from elasticq.model.errors import InvalidAttributeValue, OverLimit

ARN = "arn:aws:sqs:us-east-1:000000000000:jobs"


def added(value: str, label: str, accounts: int = 1, actions: int = 1) -> str:
    names = [f"{number:012}" for number in range(accounts)]
    policy = with_permission(value, ARN, label, names, ["SendMessage", "ReceiveMessage"][:actions])
    assert policy is not None
    return policy


def test_a_permission_reads_as_aws_writes_it() -> None:
    policy = json.loads(added(added("", "one"), "two", 2, 2))
    assert list(policy) == ["Version", "Id", "Statement"]
    assert (policy["Version"], policy["Id"]) == ("2008-10-17", f"{ARN}/SQSDefaultPolicy")
    one, two = policy["Statement"]
    assert one == {
        "Sid": "one",
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::000000000000:root"},
        "Action": "SQS:SendMessage",
        "Resource": ARN,
    }
    assert two["Action"] == ["SQS:SendMessage", "SQS:ReceiveMessage"]
    assert len(two["Principal"]["AWS"]) == 2


def test_a_label_is_taken_once_and_goes_with_its_statement() -> None:
    policy = added(added("", "one"), "two")
    assert with_permission(policy, ARN, "one", ["000000000000"], ["SendMessage"]) is None
    assert without_permission(policy, "three") is None
    left = without_permission(policy, "one")
    assert left is not None
    assert [statement["Sid"] for statement in json.loads(left)["Statement"]] == ["two"]
    assert without_permission(left, "two") == ""


def test_what_somebody_wrote_by_hand_stays() -> None:
    own = json.dumps({"Version": "2012-10-17", "Id": "mine", "Statement": []})
    policy = json.loads(added(own, "one"))
    assert (policy["Version"], policy["Id"]) == ("2012-10-17", "mine")
    assert check("Policy", own) == own
    assert check("Policy", "") == ""
    for value in ("{", "[]", '{"Statement": 3}'):
        with pytest.raises(InvalidAttributeValue):
            check("Policy", value)


def test_quotas_are_aws_and_hold_for_added_statements_too() -> None:
    policy = ""
    for number in range(limits.POLICY_STATEMENTS_MAX):
        policy = added(policy, str(number))
    assert check("Policy", policy) == policy
    with pytest.raises(OverLimit, match="statements"):
        added(policy, "more")
    with pytest.raises(OverLimit, match="principals"):
        added("", "one", accounts=limits.POLICY_PRINCIPALS_MAX + 1)
    with pytest.raises(OverLimit, match="over max allowed size"):
        check("Policy", " " * (limits.POLICY_BYTES_MAX + 1))
