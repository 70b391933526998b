"""How often a notification is tried again, and after which waits."""

import json
from typing import Any

import pytest

from elasticq.engine.stored.delivery_policies import (
    DEFAULT,
    DeliveryPolicy,
    InvalidDeliveryPolicy,
    in_force,
    of_subscription,
    of_topic,
)


def delays(policy: DeliveryPolicy) -> list[float | None]:
    return [policy.delay_s(retry) for retry in range(1, policy.retries + 2)]


def test_the_default_is_three_retries_twenty_seconds_apart() -> None:
    assert delays(DEFAULT) == [20, 20, 20, None]
    assert in_force("", "") == DEFAULT


def test_the_phases_follow_each_other() -> None:
    policy = DeliveryPolicy(min_delay_s=10, max_delay_s=30, retries=8, at_once=1, at_min=2, at_max=2, function="linear")
    assert delays(policy) == [0, 10, 10, 10, 20, 30, 30, 30, None]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("linear", [1, 6, 11, 16]),
        ("arithmetic", [1, 3.5, 8.5, 16]),
        ("geometric", [1, 2.52, 6.35, 16]),
        ("exponential", [1, 3.14, 7.43, 16]),
    ],
)
def test_delays_grow_from_the_shortest_to_the_longest(function: str, expected: list[float]) -> None:
    policy = DeliveryPolicy(min_delay_s=1, max_delay_s=16, retries=4, function=function)
    assert [round(delay, 2) for delay in delays(policy)[:-1] if delay is not None] == expected
    assert DeliveryPolicy(min_delay_s=5, max_delay_s=9, retries=1, function=function).delay_s(1) == 5


OF_TOPIC = {
    "http": {
        "defaultHealthyRetryPolicy": {"minDelayTarget": 1, "maxDelayTarget": 2, "numRetries": 2},
        "defaultThrottlePolicy": {"maxReceivesPerSecond": 5},
        "defaultRequestPolicy": {"headerContentType": "application/json"},
    }
}


def test_a_subscription_has_its_topics_policy_but_for_what_it_sets() -> None:
    topic = json.dumps(OF_TOPIC)
    assert in_force(topic, "") == of_topic(topic)
    assert of_topic(topic).per_second == 5
    own = json.dumps({"healthyRetryPolicy": {"numRetries": 1}})
    policy = in_force(topic, own)
    assert (policy.retries, policy.min_delay_s, policy.content_type) == (1, 20, "application/json")
    slower = in_force(topic, json.dumps({"throttlePolicy": {"maxReceivesPerSecond": 1}}))
    assert (slower.per_second, slower.retries) == (1, 2)


def test_a_topic_may_forbid_subscriptions_their_own() -> None:
    topic = json.dumps({"http": {**OF_TOPIC["http"], "disableSubscriptionOverrides": True}})
    assert in_force(topic, json.dumps({"healthyRetryPolicy": {"numRetries": 0}})) == of_topic(topic)


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ("{", "failed to parse JSON. "),
        ("[]", "must be an object"),
        ({"healthyRetryPolicy": []}, "healthyRetryPolicy must be an object"),
        ({"healthyRetryPolicy": {"numRetries": 101}}, "numRetries must be a number from 0 to 100, not 101"),
        ({"healthyRetryPolicy": {"numRetries": "3"}}, "numRetries must be a number from 0 to 100, not 3"),
        ({"healthyRetryPolicy": {"numRetries": True}}, "numRetries must be a number from 0 to 100, not True"),
        ({"healthyRetryPolicy": {"minDelayTarget": 0}}, "minDelayTarget must be a number from 1 to 3600, not 0"),
        ({"healthyRetryPolicy": {"minDelayTarget": 21}}, "minDelayTarget must not be above maxDelayTarget"),
        (
            {"healthyRetryPolicy": {"numNoDelayRetries": 4}},
            "numNoDelayRetries, numMinDelayRetries and numMaxDelayRetries together must not be above numRetries",
        ),
        (
            {"healthyRetryPolicy": {"numRetries": 100, "minDelayTarget": 37, "maxDelayTarget": 37}},
            "all delays together must not be above 3600 seconds",
        ),
        (
            {"healthyRetryPolicy": {"backoffFunction": "cubic"}},
            "backoffFunction must be one of linear, arithmetic, geometric, exponential",
        ),
        (
            {"requestPolicy": {"headerContentType": "a\r\nX: y"}},
            "headerContentType must be a text of printable ASCII characters",
        ),
    ],
)
def test_a_policy_is_refused_with_its_reason(policy: Any, text: str) -> None:
    given = policy if isinstance(policy, str) else json.dumps(policy)
    with pytest.raises(InvalidDeliveryPolicy) as raised:
        of_subscription(given)
    assert str(raised.value).startswith(text)
