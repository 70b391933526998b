"""The DeliveryPolicy of topics and subscriptions: how often a notification is retried, and after which delays.

There are four phases: retries without delay, retries after the shortest delay, retries with a growing delay, and
retries after the longest delay. Source: the SNS developer guide, "Message delivery retries". It only draws the four
functions of growth, without formulas.
"""

from typing import Any, Final

from msgspec import Struct

from elasticq.model import documents, limits
from elasticq.model.errors import quoted

FIXED: Final = "disableSubscriptionOverrides"
FUNCTIONS: Final = ("linear", "arithmetic", "geometric", "exponential")


class InvalidDeliveryPolicy(ValueError):
    """The error for an invalid policy. Its text names the member and the reason."""


class DeliveryPolicy(Struct, frozen=True):
    """The effective policy of one subscription. Delays are in seconds; the defaults are AWS's.

    - retries: The total number of retries after the first attempt.
    - at_once, at_min, at_max: The retries without delay, after the shortest delay, and after the longest delay.
    - per_second: The maximum number of notifications a second; None: no limit.
    """

    min_delay_s: int = 20
    max_delay_s: int = 20
    retries: int = 3
    at_once: int = 0
    at_min: int = 0
    at_max: int = 0
    function: str = "linear"
    per_second: int | None = None
    content_type: str = "text/plain; charset=UTF-8"

    def delay_s(self, retry: int) -> float | None:
        """Return the delay before this retry, counted from 1; None if there is no such retry."""
        if retry > self.retries:
            return None
        if retry <= self.at_once:
            return 0
        if retry <= self.at_once + self.at_min:
            return self.min_delay_s
        growing = self.retries - self.at_once - self.at_min - self.at_max
        place = retry - self.at_once - self.at_min - 1
        if place >= growing:
            return self.max_delay_s
        return self._grown_s(place, growing - 1)

    def _grown_s(self, place: int, last: int) -> float:
        """Return the growing delay at this place of 0 to ``last``, from the shortest to the longest delay."""
        if not last:
            return self.min_delay_s
        if self.function == "geometric":
            return float(self.min_delay_s * (self.max_delay_s / self.min_delay_s) ** (place / last))
        if self.function == "exponential":
            share = (2**place - 1) / (2**last - 1)
        elif self.function == "arithmetic":
            share = place * (place + 1) / (last * (last + 1))
        else:
            share = place / last
        return float(self.min_delay_s + (self.max_delay_s - self.min_delay_s) * share)

    @property
    def total_s(self) -> float:
        """Return the sum of all retry delays."""
        return sum(self.delay_s(retry) or 0 for retry in range(1, self.retries + 1))


DEFAULT: Final = DeliveryPolicy()


def of_topic(text: str) -> DeliveryPolicy:
    """Return the policy of a topic: its DeliveryPolicy over the default. Raise InvalidDeliveryPolicy if it
    is invalid.
    """
    http = _http(text)
    return _policy(
        DEFAULT,
        _object(http, "defaultHealthyRetryPolicy", "http."),
        _object(http, "defaultThrottlePolicy", "http."),
        _object(http, "defaultRequestPolicy", "http."),
    )


def of_subscription(text: str, of_the_topic: DeliveryPolicy = DEFAULT) -> DeliveryPolicy:
    """Return the policy of a subscription: its DeliveryPolicy over the topic's. Raise InvalidDeliveryPolicy
    if invalid.
    """
    members = _document(text)
    return _policy(
        of_the_topic,
        _object(members, "healthyRetryPolicy", ""),
        _object(members, "throttlePolicy", ""),
        _object(members, "requestPolicy", ""),
    )


def in_force(topic_text: str, subscription_text: str) -> DeliveryPolicy:
    """Return the effective policy for the two texts, which are valid; either may be empty.

    A topic may forbid its subscriptions to have policies of their own.
    """
    topic = of_topic(topic_text)
    return topic if _http(topic_text).get(FIXED) else of_subscription(subscription_text, topic)


def members_in_force(topic_text: str, subscription_text: str) -> dict[str, Any]:
    """Return the members of a subscription's effective policy.

    The topic's value is used for a member that the subscription does not set, or may not set.
    """
    http = _http(topic_text)
    own = {} if http.get(FIXED) else _document(subscription_text)
    below = {
        "healthyRetryPolicy": http.get("defaultHealthyRetryPolicy"),
        "sicklyRetryPolicy": http.get("defaultSicklyRetryPolicy"),
        "throttlePolicy": http.get("defaultThrottlePolicy"),
        "requestPolicy": http.get("defaultRequestPolicy"),
        "guaranteed": False,
    }
    return {name: own.get(name) or value for name, value in below.items()}  # the same choice as ``in_force``


def without_nulls(members: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (members or {}).items() if value is not None}


def _http(text: str) -> dict[str, Any]:
    """Return the ``http`` member of a topic's policy. Raise InvalidDeliveryPolicy if it is invalid."""
    http = _object(_document(text), "http", "")
    if not isinstance(http.get(FIXED) or False, bool):
        raise InvalidDeliveryPolicy(f"http.{FIXED} must be true or false")
    return http


def _document(text: str) -> dict[str, Any]:
    try:
        members = documents.read(text) if text else {}
    except documents.Unreadable as error:
        raise InvalidDeliveryPolicy(f"failed to parse JSON. {error}") from None
    if not isinstance(members, dict):
        raise InvalidDeliveryPolicy("must be an object")
    return members


def _object(members: dict[str, Any], name: str, path: str) -> dict[str, Any]:
    value = members.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidDeliveryPolicy(f"{path}{name} must be an object")
    return value


def _policy(
    base: DeliveryPolicy, retry: dict[str, Any], throttle: dict[str, Any], request: dict[str, Any]
) -> DeliveryPolicy:
    """Return ``base`` with these members. As on AWS, a retry policy replaces that of ``base`` as a whole."""
    below = DEFAULT if retry else base
    function = retry.get("backoffFunction") or below.function
    content_type = request.get("headerContentType") or base.content_type
    if function not in FUNCTIONS:
        raise InvalidDeliveryPolicy(f"backoffFunction must be one of {', '.join(FUNCTIONS)}")
    if not isinstance(content_type, str) or not content_type.isprintable() or not content_type.isascii():
        raise InvalidDeliveryPolicy("headerContentType must be a text of printable ASCII characters")
    policy = DeliveryPolicy(
        min_delay_s=_number(retry, "minDelayTarget", below.min_delay_s, 1, limits.RETRY_DELAY_S_MAX),
        max_delay_s=_number(retry, "maxDelayTarget", below.max_delay_s, 1, limits.RETRY_DELAY_S_MAX),
        retries=_number(retry, "numRetries", below.retries, 0, limits.RETRIES_MAX),
        at_once=_number(retry, "numNoDelayRetries", below.at_once, 0, limits.RETRIES_MAX),
        at_min=_number(retry, "numMinDelayRetries", below.at_min, 0, limits.RETRIES_MAX),
        at_max=_number(retry, "numMaxDelayRetries", below.at_max, 0, limits.RETRIES_MAX),
        function=function,
        per_second=_number(throttle, "maxReceivesPerSecond", 0, 1, limits.RETRY_DELAY_S_MAX) or base.per_second,
        content_type=content_type,
    )
    if policy.min_delay_s > policy.max_delay_s:
        raise InvalidDeliveryPolicy("minDelayTarget must not be above maxDelayTarget")
    if policy.at_once + policy.at_min + policy.at_max > policy.retries:
        raise InvalidDeliveryPolicy(
            "numNoDelayRetries, numMinDelayRetries and numMaxDelayRetries together must not be above numRetries"
        )
    if policy.total_s > limits.RETRY_TOTAL_S_MAX:
        raise InvalidDeliveryPolicy(f"all delays together must not be above {limits.RETRY_TOTAL_S_MAX} seconds")
    return policy


def _number(members: dict[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = members.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidDeliveryPolicy(f"{name} must be a number from {least} to {most}, not {quoted(str(value))}")
    return value
