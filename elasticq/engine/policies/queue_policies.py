"""Queue policies: what a Policy attribute may say, and the statements that AddPermission writes into it.

Source: AWS's quotas for policies, the AddPermission API page, and recordings of the document that it makes.
"""

import json
from typing import Any, Final

from elasticq.engine.policies import language as policy_language
from elasticq.model import limits
from elasticq.model.errors import InvalidAttributeValue, OverLimit

ATTRIBUTE: Final = "Policy"

Statement = dict[str, Any]


def check(name: str, value: str) -> str:
    """The policy as it reads back: as it was given; empty removes it. Raises InvalidAttributeValue, OverLimit."""
    if value:
        _check_length(value)
        document = _document(value)
        _check_counts(document)
        try:
            policy_language.statements(document)
        except policy_language.Unreadable:
            raise _invalid() from None
    return value


def _document(value: str) -> dict[str, Any]:
    """With ``Statement`` a list; empty for none. Raises InvalidAttributeValue."""
    try:
        return policy_language.document(value) if value else {"Statement": []}
    except policy_language.Unreadable:
        raise _invalid() from None


def _invalid() -> InvalidAttributeValue:
    """The error for a bad policy; AWS does not say what is wrong with it."""
    return InvalidAttributeValue(f"Invalid value for the parameter {ATTRIBUTE}.")


def _check_length(value: str) -> None:
    if len(value.encode("utf-8", "replace")) > limits.POLICY_BYTES_MAX:
        raise OverLimit("Submitted policy is over max allowed size.")


def _check_counts(document: dict[str, Any]) -> None:
    statements: list[Statement] = document["Statement"]
    _check_count(len(statements), limits.POLICY_STATEMENTS_MAX, "statements were found in the submitted policy")
    for statement in statements:
        actions = _count(statement.get("Action", statement.get("NotAction", [])))
        where = "were found in a statement from the submitted policy"
        _check_count(actions, limits.POLICY_ACTIONS_MAX, f"actions {where}")
    principals = sum(_principals(statement) for statement in statements)
    _check_count(principals, limits.POLICY_PRINCIPALS_MAX, "principals were found in the submitted policy")
    conditions = sum(_count(statement.get("Condition", {})) for statement in statements)
    _check_count(conditions, limits.POLICY_CONDITIONS_MAX, "conditions were found in the submitted policy")


def _check_count(count: int, count_max: int, what: str) -> None:
    if count > count_max:
        raise OverLimit(f"{count} {what}, max allowed is {count_max}")


def _count(value: object) -> int:
    return len(value) if isinstance(value, (list, dict)) else 1


def _principals(statement: Statement) -> int:
    principal = statement.get("Principal", statement.get("NotPrincipal", {}))
    return sum(map(_count, principal.values())) if isinstance(principal, dict) else 1


# --- permissions ---------------------------------------------------------------------


def _alone(values: list[str]) -> str | list[str]:
    """A list as AWS writes it in a policy: a single text stands alone."""
    return values[0] if len(values) == 1 else values


def permission(service: str, arn: str, label: str, accounts: list[str], actions: list[str]) -> Statement:
    """What AddPermission writes; service: SQS or SNS, which stands before its actions."""
    return {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {"AWS": _alone([f"arn:aws:iam::{account}:root" for account in accounts])},
        "Action": _alone([f"{service}:{action}" for action in actions]),
        "Resource": arn,
    }


def with_permission(value: str, arn: str, label: str, accounts: list[str], actions: list[str]) -> str | None:
    """The policy with one more statement; None if the label is taken. Raises OverLimit."""
    document = _document(value)
    document.setdefault("Version", "2008-10-17")
    document.setdefault("Id", f"{arn}/SQSDefaultPolicy")
    if any(statement.get("Sid") == label for statement in document["Statement"]):
        return None
    statement = permission("SQS", arn, label, accounts, actions)
    # Version and Id before the statements, as AWS writes it.
    head = {"Version": document.pop("Version"), "Id": document.pop("Id")}
    whole = {**head, **document, "Statement": [*document["Statement"], statement]}
    text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False)
    _check_length(text)
    _check_counts(whole)
    return text


def without_permission(value: str, label: str) -> str | None:
    """The policy without the label's statement, empty without any; None if there is no such label."""
    document = _document(value)
    left = [statement for statement in document["Statement"] if statement.get("Sid") != label]
    if len(left) == len(document["Statement"]):
        return None
    return json.dumps({**document, "Statement": left}, separators=(",", ":"), ensure_ascii=False) if left else ""
