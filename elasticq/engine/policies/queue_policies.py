"""Queue policies: the rules for the Policy attribute, and the statements that AddPermission adds to it.

Sources: AWS's quotas for policies, the AddPermission API page, and recordings of the document that it creates.
"""

import json
from typing import Any, Final

from elasticq.engine.policies import language as policy_language
from elasticq.model import limits
from elasticq.model.errors import InvalidAttributeValue, OverLimit

ATTRIBUTE: Final = "Policy"

Statement = dict[str, Any]


def check(name: str, value: str) -> str:
    """Return the policy unchanged; empty deletes it. Raise InvalidAttributeValue or OverLimit if it is invalid."""
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
    """Return the document with ``Statement`` as a list; it is empty without a policy. Raise InvalidAttributeValue."""
    try:
        return policy_language.document(value) if value else {"Statement": []}
    except policy_language.Unreadable:
        raise _invalid() from None


def _invalid() -> InvalidAttributeValue:
    """Return the error for an invalid policy. AWS does not report what is wrong with it."""
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
    """Return a list as AWS writes it in a policy: a single text without a list."""
    return values[0] if len(values) == 1 else values


def permission(service: str, arn: str, label: str, accounts: list[str], actions: list[str]) -> Statement:
    """Return the statement that AddPermission adds. ``service`` is the prefix of its actions, SQS or SNS."""
    return {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {"AWS": _alone([f"arn:aws:iam::{account}:root" for account in accounts])},
        "Action": _alone([f"{service}:{action}" for action in actions]),
        "Resource": arn,
    }


def with_permission(value: str, arn: str, label: str, accounts: list[str], actions: list[str]) -> str | None:
    """Return the policy with one more statement; None if the label is used. Raise OverLimit if it becomes too large."""
    document = _document(value)
    document.setdefault("Version", "2008-10-17")
    document.setdefault("Id", f"{arn}/SQSDefaultPolicy")
    if any(statement.get("Sid") == label for statement in document["Statement"]):
        return None
    statement = permission("SQS", arn, label, accounts, actions)
    # AWS writes Version and Id before the statements.
    head = {"Version": document.pop("Version"), "Id": document.pop("Id")}
    whole = {**head, **document, "Statement": [*document["Statement"], statement]}
    text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False)
    _check_length(text)
    _check_counts(whole)
    return text


def without_permission(value: str, label: str) -> str | None:
    """Return the policy without the label's statement, empty if it was the last one; None if the label does
    not exist.
    """
    document = _document(value)
    left = [statement for statement in document["Statement"] if statement.get("Sid") != label]
    if len(left) == len(document["Statement"]):
        return None
    return json.dumps({**document, "Statement": left}, separators=(",", ":"), ensure_ascii=False) if left else ""
