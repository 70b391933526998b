"""Judges a request by a queue's Policy: allowed, denied, or not mentioned.

IAM's order: a Deny that matches wins; else an Allow that matches; else nothing
is said. A condition that is not understood (operator, key or policy variable)
fails an Allow and fulfils a Deny, so that a policy never opens more than AWS
would read in it. Source: IAM user guide, "Policy evaluation logic" and
"Condition operators".
"""

import ipaddress
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from elasticq.engine.policies import read
from elasticq.model.errors import InvalidAttributeValue
from elasticq.model.names import ACCOUNT
from elasticq.model.times import extended_s

ALLOW: Final = "Allow"
DENY: Final = "Deny"
NEITHER: Final = ""


class Request(Struct, frozen=True):
    """action: its name without "sqs:"; arn: of the queue; principal: a user's name in ``account``."""

    principal: str
    account: str
    action: str
    arn: str
    source_ip: str
    is_secure: bool
    now_s: int

    @property
    def user_arn(self) -> str:
        return f"arn:aws:iam::{self.account}:user/{self.principal}"


class NotUnderstood(Exception):
    """A condition that nobody can decide here."""


def evaluate(policy: str, request: Request) -> str:
    """ALLOW, DENY or NEITHER. A policy that cannot be read denies."""
    found = NEITHER
    try:
        statements = _statements(policy)
    except InvalidAttributeValue:
        return DENY
    for statement in statements:
        effect = statement["Effect"]
        if (found != ALLOW or effect == DENY) and _matches(statement, effect, request):
            if effect == DENY:
                return DENY
            found = ALLOW
    return found


@lru_cache(maxsize=256)  # policies change seldom and are asked for each call; 12 MB of the largest; read only
def _statements(policy: str) -> list[dict[str, Any]]:
    statements: list[dict[str, Any]] = read(policy)["Statement"]
    return statements


def _matches(statement: dict[str, Any], effect: str, request: Request) -> bool:
    return (
        _is_meant(statement, "Principal", effect, lambda value: _is_principal(value, request))
        and _is_meant(statement, "Action", effect, lambda value: _is_action(value, request.action))
        and _is_meant(statement, "Resource", effect, lambda value: _is_resource(value, request.arn))
        and _holds(statement.get("Condition", {}), effect, request)
    )


def _is_meant(statement: dict[str, Any], name: str, effect: str, is_one: Callable[[object], bool]) -> bool:
    """By ``name``, or by its opposite, such as NotAction. A statement without either is about everything it denies."""
    if name in statement:
        return is_one(statement[name])
    if f"Not{name}" in statement:
        return not is_one(statement[f"Not{name}"])
    return name == "Resource" or effect == DENY  # a queue's policy is about that queue


def _listed(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [str(each).lower() if isinstance(each, bool) else str(each) for each in values]


# --- who, what, on what -----------------------------------------------------------


def _is_principal(value: object, request: Request) -> bool:
    if isinstance(value, dict):
        return any(_is_user(each, request) for each in _listed(value.get("AWS", [])))
    return value == "*"


def _is_user(text: str, request: Request) -> bool:
    """An account (by number or its root) means all of its users."""
    if ACCOUNT.match(text):
        return text == request.account
    return text in ("*", f"arn:aws:iam::{request.account}:root", request.user_arn)


def _is_action(value: object, action: str) -> bool:
    name = f"sqs:{action}".lower()
    return any(_is_like(name, each.lower()) for each in _listed(value))


def _is_resource(value: object, arn: str) -> bool:
    return any(_is_arn_like(arn, each) or _is_like(arn, each) for each in _listed(value))


def _is_arn_like(arn: str, pattern: str) -> bool:
    """Part by part, as ``*`` does not reach over a colon; a queue answers in any region, so that is not compared."""
    parts, patterns = arn.split(":", 5), pattern.split(":", 5)
    if len(parts) != 6 or len(patterns) != 6:
        return False
    is_queue = parts[2] == "sqs"
    pairs = enumerate(zip(parts, patterns, strict=True))
    return all((is_queue and place == 3) or _is_like(part, wanted) for place, (part, wanted) in pairs)


def _is_like(text: str, pattern: str) -> bool:
    """``*`` is any text, ``?`` one character; by hand, as a regular expression of many ``*`` can try for ever."""
    at, place, star, tried = 0, 0, -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "*":
            star, tried = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("?", text[at]):
            at, place = at + 1, place + 1
        elif star >= 0:  # let the last * take one more
            tried += 1
            at, place = tried, star + 1
        else:
            return False
    return not pattern[place:].strip("*")


# --- conditions -------------------------------------------------------------------


def _holds(conditions: object, effect: str, request: Request) -> bool:
    """All operators, and all keys of each."""
    try:
        if not isinstance(conditions, dict):
            raise NotUnderstood
        for operator, keys in conditions.items():
            if not isinstance(keys, dict):
                raise NotUnderstood
            for key, wanted in keys.items():
                if not _is_fulfilled(operator, key, _listed(wanted), request):
                    return False
    except NotUnderstood:
        return effect == DENY
    return True


def _is_fulfilled(operator: str, key: str, wanted: list[str], request: Request) -> bool:
    value = _value(key, request)
    if operator == "Null":
        return (value is None) == (wanted == ["true"])
    name = operator.removesuffix("IfExists")
    compare, is_negated = _OPERATORS.get(name, (None, False))
    if compare is None or any("${" in each for each in wanted):
        raise NotUnderstood
    if value is None:
        return is_negated or name != operator
    return any(compare(value, each) for each in wanted) != is_negated


def _value(key: str, request: Request) -> str | None:
    """What the request says of a key; None: nothing, as no service and no organisation calls here."""
    key = key.lower()
    read_value = _KEYS.get(key)
    if read_value is not None:
        return read_value(request)
    if key in _ABSENT:
        return None
    raise NotUnderstood


_KEYS: Final[dict[str, Callable[[Request], str]]] = {
    "aws:currenttime": lambda request: str(request.now_s),
    "aws:epochtime": lambda request: str(request.now_s),
    "aws:principalaccount": lambda request: request.account,
    "aws:principalarn": lambda request: request.user_arn,
    "aws:principaltype": lambda request: "User",
    "aws:principalisawsservice": lambda request: "false",
    "aws:resourceaccount": lambda request: request.arn.split(":")[4],
    "aws:requestedregion": lambda request: request.arn.split(":")[3],
    "aws:securetransport": lambda request: "true" if request.is_secure else "false",
    "aws:sourceip": lambda request: request.source_ip,
    "aws:userid": lambda request: request.principal,
    "aws:username": lambda request: request.principal,
    "aws:viaawsservice": lambda request: "false",
}
_ABSENT: Final = frozenset(
    (
        "aws:sourcearn",
        "aws:sourceaccount",
        "aws:sourceowner",
        "aws:sourceorgid",
        "aws:sourcevpc",
        "aws:sourcevpce",
        "aws:vpcsourceip",
        "aws:principalorgid",
        "aws:principalservicename",
        "aws:multifactorauthpresent",
        "aws:multifactorauthage",
        "aws:federatedprovider",
        "aws:tokenissuetime",
    )
)
"""Known to AWS, and never part of a request here."""


def _is_in_network(value: str, wanted: str) -> bool:
    try:
        return ipaddress.ip_address(value) in ipaddress.ip_network(wanted, strict=False)
    except ValueError:
        raise NotUnderstood from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise NotUnderstood from None


def _time_s(text: str) -> float:
    at_s = extended_s(text)
    return _number(text) if at_s is None else float(at_s)


_Comparison = Callable[[str, str], bool]


def _with_opposite(name: str, opposite: str, compare: _Comparison) -> dict[str, tuple[_Comparison, bool]]:
    return {name: (compare, False), opposite: (compare, True)}


_OPERATORS: Final[dict[str, tuple[_Comparison | None, bool]]] = {
    **_with_opposite("StringEquals", "StringNotEquals", lambda value, wanted: value == wanted),
    **_with_opposite(
        "StringEqualsIgnoreCase",
        "StringNotEqualsIgnoreCase",
        lambda value, wanted: value.casefold() == wanted.casefold(),
    ),
    **_with_opposite("StringLike", "StringNotLike", _is_like),
    **_with_opposite("ArnEquals", "ArnNotEquals", _is_arn_like),
    **_with_opposite("ArnLike", "ArnNotLike", _is_arn_like),
    **_with_opposite("IpAddress", "NotIpAddress", _is_in_network),
    **_with_opposite("NumericEquals", "NumericNotEquals", lambda value, wanted: _number(value) == _number(wanted)),
    **_with_opposite("DateEquals", "DateNotEquals", lambda value, wanted: _time_s(value) == _time_s(wanted)),
    "Bool": (lambda value, wanted: value == wanted.lower(), False),
    "NumericLessThan": (lambda value, wanted: _number(value) < _number(wanted), False),
    "NumericLessThanEquals": (lambda value, wanted: _number(value) <= _number(wanted), False),
    "NumericGreaterThan": (lambda value, wanted: _number(value) > _number(wanted), False),
    "NumericGreaterThanEquals": (lambda value, wanted: _number(value) >= _number(wanted), False),
    "DateLessThan": (lambda value, wanted: _time_s(value) < _time_s(wanted), False),
    "DateLessThanEquals": (lambda value, wanted: _time_s(value) <= _time_s(wanted), False),
    "DateGreaterThan": (lambda value, wanted: _time_s(value) > _time_s(wanted), False),
    "DateGreaterThanEquals": (lambda value, wanted: _time_s(value) >= _time_s(wanted), False),
}
