"""The rules for RedrivePolicy and RedriveAllowPolicy.

Sources: recordings of AWS for the errors of RedrivePolicy, and the SetQueueAttributes API page. The error texts for
RedriveAllowPolicy are our own.
"""

import json
from typing import Any, Final, NoReturn

from msgspec import Struct

from elasticq.model import documents, limits
from elasticq.model.errors import InvalidParameterValue, quoted
from elasticq.model.names import DEFAULT_ACCOUNT, arn_region, parse_queue_arn

POLICY: Final = "RedrivePolicy"
ALLOW_POLICY: Final = "RedriveAllowPolicy"


class Redrive(Struct, frozen=True):
    """A checked RedrivePolicy: after ``receives`` receives, a message moves to ``target`` (owner, name).

    ``region`` is the region in the target's ARN; empty if it has none.
    """

    target: tuple[str, str]
    receives: int
    region: str


def refuse(attribute: str, value: str, reason: str) -> NoReturn:
    raise InvalidParameterValue(f"Value {quoted(value)} for parameter {attribute} is invalid. Reason: {reason}")


def _members(attribute: str, value: str) -> dict[str, Any]:
    try:
        members = documents.read(value)
    except documents.Unreadable:
        members = None
    if not isinstance(members, dict):
        refuse(attribute, value, f"{_WORDS[attribute]} is not a valid JSON map.")
    return members


_WORDS: Final = {POLICY: "Redrive policy", ALLOW_POLICY: "Redrive allow policy"}


def read_policy(value: str, owner: str) -> Redrive:
    """Return the policy of a queue of ``owner``. Raise InvalidParameterValue if it is invalid.

    The policy's ``target`` has the region of ``owner``, even if the ARN names another region. A caller that
    checks the target must also check ``region``.
    """
    members = _members(POLICY, value)
    for name in ("maxReceiveCount", "deadLetterTargetArn"):
        if members.get(name) in (None, ""):
            refuse(POLICY, value, f"Redrive policy does not contain mandatory attribute: {name}.")
    arn = members["deadLetterTargetArn"]
    target = parse_queue_arn(arn, owner)
    if target is None:
        refuse(POLICY, value, "Invalid value for deadLetterTargetArn.")
    return Redrive(target, _receives(value, members["maxReceiveCount"]), arn_region(arn))


def _receives(value: str, given: object) -> int:
    """Return the number in a number or a string."""
    text = given if isinstance(given, str) else json.dumps(given)
    if not (text.isascii() and text.isdigit() and len(text) <= 9) or not 1 <= int(text) <= limits.RECEIVES_MAX:
        refuse(
            POLICY,
            value,
            f"Invalid value for maxReceiveCount: {quoted(text)}, valid values are from 1 to 1000 both inclusive.",
        )
    return int(text)


def check_policy(name: str, value: str) -> str:
    """Return the policy as clients read it, with a maxReceiveCount in a string replaced by a number, as on AWS.

    Terraform compares what it set with what it reads. It advises its users to set a number for that reason. Raise
    InvalidParameterValue if the policy is invalid.
    """
    if not value:
        return value
    _check_size(name, value)
    receives = read_policy(value, DEFAULT_ACCOUNT).receives
    members = _members(POLICY, value)
    if isinstance(members["maxReceiveCount"], int):
        return value
    return json.dumps({**members, "maxReceiveCount": receives}, separators=(",", ":"))


def check_allow_policy(name: str, value: str) -> str:
    if value:
        _check_size(name, value)
        read_allow_policy(value)
    return value


def _check_size(name: str, value: str) -> None:
    """Refuse a document that is too long. Only new values are checked: an old queue keeps a longer one."""
    if len(value.encode("utf-8", "replace")) > limits.REDRIVE_POLICY_BYTES_MAX:
        refuse(name, value, f"Must be at most {limits.REDRIVE_POLICY_BYTES_MAX} bytes long.")


def read_allow_policy(value: str) -> tuple[str, list[str]]:
    """Return (redrivePermission, sourceQueueArns). Raise InvalidParameterValue if the policy is invalid."""
    members = _members(ALLOW_POLICY, value)
    permission, sources = members.get("redrivePermission"), members.get("sourceQueueArns")
    if permission not in ("allowAll", "denyAll", "byQueue"):
        refuse(ALLOW_POLICY, value, "redrivePermission must be allowAll, denyAll or byQueue.")
    if permission != "byQueue":
        if sources is not None:
            refuse(ALLOW_POLICY, value, "sourceQueueArns can be given with redrivePermission byQueue only.")
        return permission, []
    if not isinstance(sources, list) or not 1 <= len(sources) <= limits.REDRIVE_SOURCES_MAX:
        refuse(ALLOW_POLICY, value, "sourceQueueArns must be a list of 1 to 10 queue ARNs.")
    if any(parse_queue_arn(source, DEFAULT_ACCOUNT) is None for source in sources):
        refuse(ALLOW_POLICY, value, "sourceQueueArns must be a list of 1 to 10 queue ARNs.")
    return permission, sources
