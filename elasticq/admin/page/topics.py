"""The data of the pages of topics, and which subscriptions a message would reach, read through SNS's actions."""

import asyncio
from collections import Counter
from typing import Any, Final

import msgspec

from elasticq.admin.calls import Ask
from elasticq.admin.pauses import Pause
from elasticq.admin.source import AdminSource
from elasticq.engine.filters.policy import MESSAGE_ATTRIBUTES, InvalidFilterPolicy, compile_policy
from elasticq.engine.filters.values import Budget
from elasticq.engine.matching import SLICE
from elasticq.engine.stored.topic_index import FILTER, FILTER_SCOPE
from elasticq.model.commands import MessageAttributes
from elasticq.model.topic_commands import Publish
from elasticq.runtime.meter import Published

SHOWN_MAX: Final = 1_000
DETAILED_MAX: Final = 100
"""The number of subscriptions of a topic whose attributes are read, one by one."""


async def listed(ask: Ask, wanted: str) -> list[dict[str, Any]]:
    """Return the topics with ``wanted`` in their names: name, arn, and the number of subscriptions per protocol."""
    topics = await _all(ask, "ListTopics", "Topics", {})
    subscriptions = await _all(ask, "ListSubscriptions", "Subscriptions", {})
    protocols: dict[str, Counter[str]] = {}
    for each in subscriptions:
        protocols.setdefault(each["TopicArn"], Counter())[each["Protocol"]] += 1
    found = [
        {
            "name": name_in(each["TopicArn"]),
            "arn": each["TopicArn"],
            "protocols": sorted(protocols.get(each["TopicArn"], Counter()).items()),
        }
        for each in topics
    ]
    return sorted((each for each in found if wanted in each["name"]), key=lambda each: each["name"])


async def one(ask: Ask, arn: str) -> dict[str, Any]:
    """Return a topic's attributes, tags and subscriptions. The first DETAILED_MAX of these have their attributes."""
    attributes = (await ask("GetTopicAttributes", {"TopicArn": arn}))["Attributes"]
    tags = (await ask("ListTagsForResource", {"ResourceArn": arn}))["Tags"]
    return {
        "attributes": attributes,
        "tags": {each["Key"]: each["Value"] for each in tags},
        "subscriptions": await _subscriptions(ask, arn),
    }


async def matching(ask: Ask, given: dict[str, Any]) -> tuple[list[str], list[str], int]:
    """Return the endpoints that a Publish would reach, those that it would not, and the number of unchecked ones.

    Only filters decide. Unconfirmed subscriptions are in neither list. Raise NotExecuted if the topic does not exist,
    ValueError if the members of the Publish are malformed.
    """
    try:
        publish = msgspec.convert(given, Publish)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    reached: list[str] = []
    kept: list[str] = []
    subscriptions = await _subscriptions(ask, str(publish.topic_arn))
    for each in subscriptions[:DETAILED_MAX]:
        if each["is_pending"]:
            continue
        is_taken = await takes(each["attributes"], publish.message_attributes, publish.message or "")
        (reached if is_taken else kept).append(each["Endpoint"])
    return reached, kept, max(0, len(subscriptions) - DETAILED_MAX)


async def takes(subscription: dict[str, str], attributes: MessageAttributes | None, body: str) -> bool:
    """Return whether the filter among a subscription's attributes accepts a message. The loop serves others meanwhile.

    A subscription without a filter accepts each message; one with an invalid filter accepts none.
    """
    text = subscription.get(FILTER)
    if not text:
        return True
    try:
        policy = compile_policy(text, subscription.get(FILTER_SCOPE, MESSAGE_ATTRIBUTES))
    except InvalidFilterPolicy:
        return False
    budget, found = Budget(SLICE), dict[bool, None]()
    for _ in policy.match_in_steps(attributes, body, budget, found):
        await asyncio.sleep(0)
        budget.left = SLICE
    return bool(found)


def published(source: AdminSource, owner: str, name: str) -> Published | None:
    """Return this member's counts of a topic's messages, None if it has none."""
    answered = source.meter().by_topic().get((owner, name))
    in_steps = source.delivered_in_steps().get((owner, name))
    return answered if in_steps is None else (answered or Published()).plus(in_steps)


def name_in(arn: str) -> str:
    """Return the name at the end of a topic's ARN."""
    return arn.rpartition(":")[2]


async def _subscriptions(ask: Ask, arn: str) -> list[dict[str, Any]]:
    found = await _all(ask, "ListSubscriptionsByTopic", "Subscriptions", {"TopicArn": arn})
    pause = Pause()
    for number, each in enumerate(found):
        await pause()
        each["is_pending"] = not each["SubscriptionArn"].startswith("arn:")
        each["attributes"] = {}
        if number < DETAILED_MAX and not each["is_pending"]:
            asked = await ask("GetSubscriptionAttributes", {"SubscriptionArn": each["SubscriptionArn"]})
            each["attributes"] = asked["Attributes"]
    return found


async def _all(ask: Ask, action: str, member: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the items of all pages of a list action, but stop at SHOWN_MAX items."""
    found: list[dict[str, Any]] = []
    pause, token = Pause(), ""
    while len(found) < SHOWN_MAX:
        page = await ask(action, {**given, "NextToken": token} if token else given)
        found += page[member]
        await pause()
        token = page.get("NextToken", "")
        if not token:
            break
    return found
