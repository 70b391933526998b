"""The evaluation of a request by the Policy of a queue or a topic: allowed, denied, or not mentioned.

As in IAM, a matching Deny wins, then a matching Allow. Otherwise the result is NEITHER. Some conditions cannot be
decided here, such as those with a policy variable, or with a key that requests here do not have. They fail an Allow and
fulfil a Deny. So a policy never allows more than it does on AWS. Source: IAM user guide, "Policy evaluation logic" and
"Condition operators". language.py parses the text.
"""

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from msgspec import Struct

from elasticq.engine.policies import language as policy_language
from elasticq.engine.policies.language import VARIABLE, Condition, Principals, Statement, Unreadable
from elasticq.engine.policies.patterns import are_alike, arn_parts, arn_patterns, is_like

ALLOW: Final = "Allow"
DENY: Final = "Deny"
NEITHER: Final = ""


class Request(Struct, frozen=True):
    """A request to evaluate.

    - principal: The name of a user in ``account``.
    - action: The name of the action without its service.
    - arn: The ARN of the queue or topic.
    - is_any_region: Whether one queue answers in all regions, so the region in a policy's Resource is ignored.
    - service: The service of the action.
    - caller: The AWS service that makes the request. It is not a user of any account.
    - source_arn: The resource for which the service makes the request.
    - source_owner: The account that owns this resource. For a user's request to a topic, the user's own account.
    """

    principal: str
    account: str
    action: str
    arn: str
    source_ip: str
    is_secure: bool
    now_s: int
    is_any_region: bool = False
    service: str = "sqs"
    caller: str = ""
    source_arn: str = ""
    source_owner: str = ""

    @property
    def user_arn(self) -> str:
        return f"arn:aws:iam::{self.account}:user/{self.principal}"


class NotUnderstood(Exception):
    """The error for a condition that cannot be decided here."""


def evaluate(policy: str, request: Request) -> str:
    """Return ALLOW, DENY or NEITHER. An unreadable policy denies."""
    try:
        statements = _statements(policy)
    except Unreadable:
        return DENY
    found = NEITHER
    for statement in statements:
        if (found != ALLOW or statement.is_deny) and _matches(statement, request):
            if statement.is_deny:
                return DENY
            found = ALLOW
    return found


@lru_cache(maxsize=256)  # policies rarely change but are needed for each call; 8 KiB each at most
def _statements(policy: str) -> tuple[Statement, ...]:
    return policy_language.statements(policy_language.document(policy))


def _matches(statement: Statement, request: Request) -> bool:
    return (
        _is_meant(statement, request)
        and _is_action(statement, request.service, request.action) != statement.are_actions_excepted
        and _is_about(statement, request)
        and all(_holds(condition, statement, request) for condition in statement.conditions)
    )


# --- principals, actions, resources ------------------------------------------------


def _is_meant(statement: Statement, request: Request) -> bool:
    if not statement.are_principals_excepted:
        return _is_named(statement.principals, request)
    return not _is_excepted(statement.principals, request)


def _is_named(principals: Principals, request: Request) -> bool:
    """Return whether the principals include the requester. An account includes all of its users."""
    if request.caller:
        return principals.is_everybody or request.caller in principals.services
    user = request.account, request.principal
    return principals.is_everybody or request.account in principals.accounts or user in principals.users


def _is_excepted(principals: Principals, request: Request) -> bool:
    """Return whether a NotPrincipal excepts the requester.

    IAM: a NotPrincipal must name the user and its account, "Otherwise, the policy might deny access to the entire
    account". If it names an account and one of its users, the other users are denied.
    """
    if request.caller:
        return principals.is_everybody or request.caller in principals.services
    user = request.account, request.principal
    return principals.is_everybody or (request.account in principals.accounts and user in principals.users)


def _is_action(statement: Statement, service: str, action: str) -> bool:
    name = f"{service}:{action}".lower()
    return any(is_like(name, pattern) for pattern in statement.actions)


def _is_about(statement: Statement, request: Request) -> bool:
    """Return whether the statement applies to the request's resource. A pattern with a variable applies
    only in a Deny.
    """
    if statement.resources is None:
        return True
    if any(VARIABLE in pattern for pattern in statement.resources):
        return statement.is_deny
    return any(_is_resource(request, pattern) for pattern in statement.resources) != statement.are_resources_excepted


def _is_resource(request: Request, pattern: str) -> bool:
    arn, wanted = request.arn, arn_patterns(pattern)
    if wanted is None:  # no ARN: only a text such as "*" matches
        return pattern.startswith("*") and is_like(arn, pattern)
    if is_like(arn, pattern):
        return True
    return request.is_any_region and are_alike(arn_parts(arn), [*wanted[:3], "*", *wanted[4:]])


# --- conditions -------------------------------------------------------------------


def _holds(condition: Condition, statement: Statement, request: Request) -> bool:
    try:
        return _is_fulfilled(condition, request)
    except NotUnderstood:
        return statement.is_deny


def _is_fulfilled(condition: Condition, request: Request) -> bool:
    value, operator = _value(condition.key, request), condition.operator
    if operator is None:
        return (value is None) in condition.wanted
    if condition.has_variables:
        raise NotUnderstood
    if value is None:
        return condition.is_absent_enough
    try:
        read = operator.value(value)
    except ValueError:
        raise NotUnderstood from None
    return any(operator.holds(read, wanted) for wanted in condition.wanted) != operator.is_negated


def _value(key: str, request: Request) -> str | int | None:
    """Return the request's value of a key, times in seconds; None if the request has none.

    Raise NotUnderstood if the key is unknown.
    """
    read_value = _KEYS.get(key)
    if read_value is not None:
        if request.caller and key in _OF_USERS:
            return None
        return read_value(request)
    if key in _ABSENT:
        return None
    raise NotUnderstood


def _plain_address(text: str) -> str:
    """Return an IPv4-mapped address, such as ::ffff:10.0.0.5, as IPv4; any other text unchanged.

    A socket that listens on ``::`` reports IPv4 clients in this form.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return text if mapped is None else str(mapped)


_KEYS: Final[dict[str, Callable[[Request], str | int | None]]] = {
    "aws:currenttime": lambda request: request.now_s,
    "aws:epochtime": lambda request: request.now_s,
    "aws:principalaccount": lambda request: request.account,
    "aws:principalarn": lambda request: request.user_arn,
    "aws:principaltype": lambda request: "User",
    "aws:principalisawsservice": lambda request: "true" if request.caller else "false",
    "aws:principalservicename": lambda request: request.caller or None,
    "aws:resourceaccount": lambda request: request.arn.split(":")[4],
    "aws:requestedregion": lambda request: request.arn.split(":")[3],
    "aws:securetransport": lambda request: "true" if request.is_secure else "false",
    "aws:sourceaccount": lambda request: request.source_owner if request.source_arn else None,
    "aws:sourcearn": lambda request: request.source_arn or None,
    "aws:sourceowner": lambda request: request.source_owner or None,
    "aws:sourceip": lambda request: _plain_address(request.source_ip),
    "aws:userid": lambda request: request.principal,
    "aws:username": lambda request: request.principal,
    "aws:viaawsservice": lambda request: "false",
}
_OF_USERS: Final = frozenset(
    (
        "aws:principalaccount",
        "aws:principalarn",
        "aws:principaltype",
        "aws:securetransport",
        "aws:sourceip",
        "aws:userid",
        "aws:username",
    )
)
"""Keys without a value in a request of a service."""
_ABSENT: Final = frozenset(
    (
        "aws:sourceorgid",
        "aws:sourcevpc",
        "aws:sourcevpce",
        "aws:vpcsourceip",
        "aws:principalorgid",
        "aws:multifactorauthpresent",
        "aws:multifactorauthage",
        "aws:federatedprovider",
        "aws:tokenissuetime",
    )
)
"""Keys that AWS knows and that requests here never have."""
