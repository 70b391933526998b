"""The parser of policies. It reads a text exactly, or refuses it.

A misspelt member, a value of the wrong shape or an unknown operator would change the meaning of a statement. A Deny
without meaning would silently deny nothing. So the parser skips nothing and guesses nothing.

Sources, all in the IAM user guide: "Grammar of the IAM JSON policy language", "AWS JSON policy elements" (Principal,
NotPrincipal, Action, Resource), "Condition operators" and "Multivalued context keys".
"""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from operator import eq, ge, gt, le, lt
from typing import Any, Final

from msgspec import Struct, structs

from elasticq.engine.policies.patterns import are_alike, arn_parts, arn_patterns, is_like
from elasticq.model import documents
from elasticq.model.times import extended_s

VERSIONS: Final = ("2008-10-17", "2012-10-17")

Network = IPv4Network | IPv6Network
Json = dict[str, Any]


class Unreadable(ValueError):
    """The error for a text that is not a policy, or whose meaning is not certain."""


class Principals(Struct, frozen=True):
    """The principals of a statement. Roles and federated users do not exist here, so they are dropped."""

    is_everybody: bool
    accounts: frozenset[str]
    users: frozenset[tuple[str, str]]  # (account, the user's name without its path)
    services: frozenset[str] = frozenset()


class Operator(Struct, frozen=True):
    """A comparison of a condition.

    - wanted, value: Parse the policy's and the request's value. They raise ValueError.
    - holds: Compares the request's value with a wanted one.
    - is_negated: Whether it holds if no wanted value does, and if the request has no value.
    - takes_variables: Whether a wanted value may contain policy variables.
    """

    wanted: Callable[[str], Any]
    value: Callable[[str | int], Any]
    holds: Callable[[Any, Any], bool]
    takes_variables: bool = False
    is_negated: bool = False


class Condition(Struct, frozen=True):
    """One condition of a statement.

    - operator: None for Null. Then ``wanted`` has True if the key must be absent, False if it must be present.
    - key: In lower case, because case does not matter.
    - is_absent_enough: Whether a request without the key fulfils it.
    - has_variables: Whether a wanted value has policy variables. Then ``wanted`` has the unparsed texts.
    """

    operator: Operator | None
    key: str
    wanted: tuple[Any, ...]
    is_absent_enough: bool
    has_variables: bool


class Statement(Struct, frozen=True):
    """One parsed statement.

    - actions: Patterns in lower case.
    - resources: Patterns; None if the statement names no resources and so applies to the whole queue or topic.
    """

    is_deny: bool
    principals: Principals
    are_principals_excepted: bool
    actions: tuple[str, ...]
    are_actions_excepted: bool
    resources: tuple[str, ...] | None
    are_resources_excepted: bool
    conditions: tuple[Condition, ...]


def document(text: str) -> Json:
    """Return the policy as JSON, with its statements as a list of objects. Raise Unreadable if it is invalid.

    The statements themselves are not checked.
    """
    try:
        documents.read(text)
        found = json.loads(text, object_pairs_hook=_distinct)
    except ValueError as error:
        raise Unreadable("not JSON") from error
    members = _members(found, "the document", {"Version", "Id", "Statement"}, {"Statement"})
    if members.get("Version", VERSIONS[0]) not in VERSIONS:
        raise Unreadable("Version")
    if not isinstance(members.get("Id", ""), str):
        raise Unreadable("Id")
    listed = members["Statement"] if isinstance(members["Statement"], list) else [members["Statement"]]
    if not all(isinstance(each, dict) for each in listed):
        raise Unreadable("Statement")
    return {**members, "Statement": listed}


def statements(of: Json) -> tuple[Statement, ...]:
    """Return the parsed statements of a document. Raise Unreadable if one is invalid."""
    labels = [each["Sid"] for each in of["Statement"] if each.get("Sid")]
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) < len(labels):
        raise Unreadable("Sid")
    return tuple(_statement(each) for each in of["Statement"])


def _distinct(pairs: list[tuple[str, Any]]) -> Json:
    """Return the pairs as a dict. Raise Unreadable if a key occurs twice.

    IAM: "Individual elements must not contain multiple instances of the same key."
    """
    members = dict(pairs)
    if len(members) < len(pairs):
        raise Unreadable("a duplicate key")
    return members


def _members(value: object, what: str, known: set[str], wanted: set[str]) -> Json:
    if not isinstance(value, dict) or not wanted <= value.keys() <= known:
        raise Unreadable(what)
    return value


def _texts(value: object, what: str) -> tuple[str, ...]:
    """Return the texts: a single one, or a list of at least one. Raise Unreadable otherwise."""
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(each, str) for each in listed):
        raise Unreadable(what)
    return tuple(listed)


_ELEMENTS: Final = {"Sid", "Effect", "Condition"} | {
    prefix + name for name in ("Principal", "Action", "Resource") for prefix in ("", "Not")
}


def _statement(given: Json) -> Statement:
    members = _members(given, "a statement", _ELEMENTS, {"Effect"})
    effect = members["Effect"]
    principal, are_principals_excepted = _one_of(members, "Principal")
    action, are_actions_excepted = _one_of(members, "Action")
    # A policy belongs to one queue, so a statement without resources applies to all of it.
    has_resource = "Resource" in members or "NotResource" in members
    resource, are_resources_excepted = _one_of(members, "Resource") if has_resource else (None, False)
    if effect not in ("Allow", "Deny"):
        raise Unreadable("Effect")
    if are_principals_excepted and effect == "Allow":
        raise Unreadable("NotPrincipal")  # IAM: 'Using it with "Effect":"Allow" is not supported.'
    return Statement(
        is_deny=effect == "Deny",
        principals=_principals(principal),
        are_principals_excepted=are_principals_excepted,
        actions=_actions(action),
        are_actions_excepted=are_actions_excepted,
        resources=_texts(resource, "Resource") if has_resource else None,
        are_resources_excepted=are_resources_excepted,
        conditions=_conditions(members.get("Condition", {})),
    )


def _one_of(members: Json, name: str) -> tuple[Any, bool]:
    """Return the member and False, or its opposite, such as NotAction, and True. Raise Unreadable if not exactly one
    exists.
    """
    if (name in members) == (f"Not{name}" in members):
        raise Unreadable(name)
    return (members[name], False) if name in members else (members[f"Not{name}"], True)


# --- principals, actions, resources ------------------------------------------------

_KINDS: Final = {"AWS", "CanonicalUser", "Federated", "Service"}
_ACCOUNT: Final = re.compile(r"([0-9]{12})\Z|arn:aws[a-z-]*:iam::([0-9]{12}):root\Z")
_USER: Final = re.compile(r"arn:aws[a-z-]*:iam::([0-9]{12}):user/(?:[!-~]*/)?([\w+=,.@-]+)\Z", re.ASCII)
_NOBODY_HERE: Final = re.compile(
    r"arn:aws[a-z-]*:(?:iam::[0-9]{12}:role|sts::[0-9]{12}:(?:assumed-role|federated-user))/[\w+=,.@/-]+\Z", re.ASCII
)
_ACTION: Final = re.compile(r"\*\Z|[a-z0-9-]+:[a-z0-9*?]+\Z")


def _principals(value: object) -> Principals:
    """Return the principals of ``"*"`` or of a map of lists. Wildcards in names are not allowed."""
    if value == "*":
        return Principals(is_everybody=True, accounts=frozenset(), users=frozenset())
    named = _members(value, "Principal", _KINDS, set())
    lists = {kind: _texts(listed, "Principal") for kind, listed in named.items()}
    if not lists:
        raise Unreadable("Principal")
    accounts, users = set(), set()
    texts = lists.get("AWS", ())
    for text in texts:
        if (account := _ACCOUNT.match(text)) is not None:
            accounts.add(account[1] or account[2])
        elif (user := _USER.match(text)) is not None:
            users.add((user[1], user[2]))
        elif text != "*" and not _NOBODY_HERE.match(text):
            raise Unreadable("Principal")
    services = frozenset(lists.get("Service", ()))
    return Principals("*" in texts, frozenset(accounts), frozenset(users), services)


def _actions(value: object) -> tuple[str, ...]:
    """Return the action patterns, each prefixed with its service name."""
    patterns = tuple(each.lower() for each in _texts(value, "Action"))
    if not all(_ACTION.match(each) for each in patterns):
        raise Unreadable("Action")
    return patterns


# --- conditions -------------------------------------------------------------------

_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?\Z")
_NETWORK: Final = re.compile(r"[0-9A-Fa-f.:]+(?:/[0-9]{1,3})?\Z")
_KEY: Final = re.compile(r"[A-Za-z0-9-]+:.+\Z")
_EVERY: Final = "ForAllValues"
_ANY: Final = "ForAnyValue"
_IF_EXISTS: Final = "IfExists"
VARIABLE: Final = "${"


def _conditions(value: object) -> tuple[Condition, ...]:
    if not isinstance(value, dict) or not all(isinstance(keys, dict) for keys in value.values()):
        raise Unreadable("Condition")
    read = []
    for name, keys in value.items():
        operator, is_absent_enough = _operator(name)
        read += [_condition(operator, is_absent_enough, key, wanted) for key, wanted in keys.items()]
    return tuple(read)


def _operator(name: str) -> tuple[Operator | None, bool]:
    """Return the operator, and whether a request without the key fulfils the condition.

    IAM, "Multivalued context keys": without any value, ForAllValues is true and ForAnyValue is false.
    """
    if name == "Null":
        return None, False
    quantifier, _, bare = name.rpartition(":")
    operator = OPERATORS.get(bare.removesuffix(_IF_EXISTS))
    if operator is None or (bare != name and quantifier not in (_EVERY, _ANY)):
        raise Unreadable(name)
    is_empty_enough = operator.is_negated if bare == name else quantifier == _EVERY
    return operator, is_empty_enough or bare.endswith(_IF_EXISTS)


def _condition(operator: Operator | None, is_absent_enough: bool, key: str, given: object) -> Condition:
    values = tuple(_value(each) for each in (given if isinstance(given, list) else [given]))
    if not values or not _KEY.match(key):
        raise Unreadable("a condition's key, or that it has no values")
    has_variables = operator is not None and operator.takes_variables and any(VARIABLE in each for each in values)
    try:
        read = _is_absent if operator is None else operator.wanted
        wanted = values if has_variables else tuple(map(read, values))
    except ValueError as error:
        raise Unreadable("a condition's value") from error
    return Condition(operator, key.lower(), wanted, is_absent_enough, has_variables)


def _value(given: object) -> str:
    """Return a condition's value as text.

    IAM: "Quotation marks are optional for numeric and Boolean values."
    """
    if isinstance(given, str):
        return given
    text = json.dumps(given) if isinstance(given, (bool, int, float)) else ""
    if text not in ("true", "false") and not _NUMBER.match(text):
        raise Unreadable("a condition's value")
    return text


def _is_absent(text: str) -> bool:
    """Return the value of a Null condition. Raise ValueError for other texts than true and false.

    IAM: "use either true (the key doesn't exist) or false".
    """
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _boolean(text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower()


def _number(text: str) -> Decimal:
    if not _NUMBER.match(text):
        raise ValueError(text)
    return Decimal(text)


def _time_s(text: str) -> Decimal:
    at_s = extended_s(text)
    return _number(text) if at_s is None else Decimal(at_s)


def _network(text: str) -> Network:
    """Return the network. Raise ValueError for an IPv4-mapped IPv6 network.

    It would match no client, because ``evaluation.py`` converts such addresses to IPv4.
    """
    if not _NETWORK.match(text):
        raise ValueError(text)
    network = ip_network(text, strict=False)
    if network.version == 6 and network.network_address.ipv4_mapped is not None:
        raise ValueError(text)
    return network


def _text(value: str | int) -> str:
    """Return the text. Raise ValueError for a time, which has no text to compare."""
    if isinstance(value, int):
        raise ValueError("a time is not a text")
    return value


def _decimal(value: str | int) -> Decimal:
    return _number(str(value))


def _with_opposite(name: str, opposite: str, operator: Operator) -> dict[str, Operator]:
    return {name: operator, opposite: structs.replace(operator, is_negated=True)}


def _ordered(kind: str, wanted: Callable[[str], Any]) -> dict[str, Operator]:
    """Return the six operators of an ordered type."""
    unequal = {"LessThan": lt, "LessThanEquals": le, "GreaterThan": gt, "GreaterThanEquals": ge}
    return {
        **_with_opposite(f"{kind}Equals", f"{kind}NotEquals", Operator(wanted, _decimal, eq)),
        **{f"{kind}{name}": Operator(wanted, _decimal, compare) for name, compare in unequal.items()},
    }


def _of_texts(holds: Callable[[str, str], bool], read: Callable[[str], str] = str) -> Operator:
    return Operator(read, lambda value: read(_text(value)), holds, takes_variables=True)


_arns_alike: Final = Operator(arn_patterns, lambda value: arn_parts(_text(value)), are_alike, takes_variables=True)
OPERATORS: Final[dict[str, Operator]] = {
    **_with_opposite("StringEquals", "StringNotEquals", _of_texts(eq)),
    **_with_opposite("StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase", _of_texts(eq, str.casefold)),
    **_with_opposite("StringLike", "StringNotLike", _of_texts(is_like)),
    **_with_opposite("ArnEquals", "ArnNotEquals", _arns_alike),
    **_with_opposite("ArnLike", "ArnNotLike", _arns_alike),
    **_with_opposite(
        "IpAddress",
        "NotIpAddress",
        Operator(_network, lambda value: ip_address(_text(value)), lambda address, network: address in network),
    ),
    **_ordered("Numeric", _number),
    **_ordered("Date", _time_s),
    "Bool": Operator(_boolean, _text, eq, takes_variables=True),
}
"""BinaryEquals is missing, because no key of a request here is binary."""
