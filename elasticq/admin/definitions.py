"""Writes down the queues and topics of all accounts and regions, and makes them from what was written.

Queues come before topics, as subscriptions name queues, and dead-letter queues before those that name them. A file
without topics is one that versions without topics read, too.
"""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from elasticq.admin.calls import NotExecuted, ask, owner_of
from elasticq.admin.source import AdminSource
from elasticq.engine.filter_policy import MESSAGE_ATTRIBUTES, MESSAGE_BODY
from elasticq.engine.mutations import SubscriptionSet, TopicSet
from elasticq.engine.topic_attributes import FIFO
from elasticq.engine.topics import FILTER, FILTER_SCOPE
from elasticq.model import limits, topic_commands
from elasticq.model.commands import Attributes, QueueName, Tags
from elasticq.model.limits import TOPIC_MEMBERS
from elasticq.model.names import account_of, is_inner, queue_url, region_of, topic_arn

FORMAT: Final = 1
COMPUTED: Final = frozenset(
    (
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesDelayed",
        "ApproximateNumberOfMessagesNotVisible",
        "CreatedTimestamp",
        "LastModifiedTimestamp",
        "QueueArn",
    )
)
"""Attributes that nobody can set."""
LATER: Final = ("RedrivePolicy", "RedriveAllowPolicy")
"""Attributes that name other queues, and are set when all are there."""

Account = Annotated[str, Meta(max_length=12)]
Region = Annotated[str, Meta(max_length=32)]
TopicTags = Annotated[
    dict[Annotated[str, TOPIC_MEMBERS["Key"]], Annotated[str, TOPIC_MEMBERS["Value"]]], TOPIC_MEMBERS["Tags"]
]


class QueueDefinition(Struct, forbid_unknown_fields=True):
    name: QueueName
    account: Account = ""
    region: Region = ""
    attributes: Attributes = {}
    tags: Tags = {}


class SubscriptionDefinition(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """account, region: of who subscribed; empty where they are the topic's."""

    protocol: Annotated[str, TOPIC_MEMBERS["Protocol"]]
    endpoint: Annotated[str, TOPIC_MEMBERS["Endpoint"]]
    attributes: topic_commands.Attributes = {}
    account: Account = ""
    region: Region = ""


class TopicDefinition(Struct, forbid_unknown_fields=True):
    name: topic_commands.TopicName
    account: Account = ""
    region: Region = ""
    attributes: topic_commands.Attributes = {}
    tags: TopicTags = {}
    data_protection_policy: topic_commands.Policy = ""
    subscriptions: Annotated[list[SubscriptionDefinition], Meta(max_length=limits.TOPIC_SUBSCRIPTIONS_MAX)] = []


class Definitions(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """``elasticq``: the format, so that a reader knows what it has."""

    elasticq: Annotated[int, Meta(ge=0, le=limits.INTEGER_RANGE[1])]
    queues: Annotated[list[QueueDefinition], Meta(max_length=limits.QUEUES_MAX)]
    topics: Annotated[list[TopicDefinition], Meta(max_length=limits.TOPICS_MAX)] = []


async def export(source: AdminSource) -> bytes:
    """Return the definitions as JSON. Raises NotExecuted."""
    queues = []
    for figures in source.queues():
        if is_inner(figures.account):
            continue  # it is its subscription's
        url, owner = queue_url(source.endpoint, figures.account, figures.name), figures.account
        attributes = await ask(source, "GetQueueAttributes", {"QueueUrl": url, "AttributeNames": ["All"]}, owner)
        tags = await ask(source, "ListQueueTags", {"QueueUrl": url}, owner)
        kept = {name: value for name, value in attributes.get("Attributes", {}).items() if name not in COMPUTED}
        region = region_of(owner, source.region)
        queues.append(QueueDefinition(figures.name, account_of(owner), region, kept, tags.get("Tags", {})))
    queues.sort(key=lambda queue: (queue.name, queue.account, queue.region))
    topics = []
    for topic, subscriptions in source.topics():
        topics.append(_of_topic(source, topic, subscriptions))
        await asyncio.sleep(0)
    topics.sort(key=lambda topic: (topic.name, topic.account, topic.region))
    return msgspec.json.format(msgspec.json.encode(Definitions(FORMAT, queues, topics)), indent=2)


def _of_topic(source: AdminSource, topic: TopicSet, subscriptions: list[SubscriptionSet]) -> TopicDefinition:
    definition = TopicDefinition(
        topic.name,
        account_of(topic.account),
        region_of(topic.account, source.region),
        topic.attributes,
        topic.tags,
        topic.data_protection_policy,
    )
    for row in subscriptions:
        if row.is_pending:
            continue  # nobody confirmed it
        scope = {FILTER_SCOPE: MESSAGE_ATTRIBUTES} if FILTER in row.attributes else {}  # said, though it is the default
        one = SubscriptionDefinition(row.protocol, row.endpoint, scope | row.attributes)
        if row.account != topic.account:
            one.account, one.region = account_of(row.account), region_of(row.account, source.region)
        definition.subscriptions.append(one)
    definition.subscriptions.sort(key=lambda one: (one.protocol, one.endpoint))
    return definition


async def load(source: AdminSource, body: bytes) -> dict[str, list[str]]:
    """Make the queues, topics and subscriptions that are missing, and set attributes and tags of those that exist.

    Returns the names of queues under ``made`` and ``changed``, of topics under ``topics_made`` and
    ``topics_changed``. Web servers are asked to confirm their new subscriptions. Raises NotExecuted, with what was
    done before left done.
    """
    try:
        definitions = msgspec.json.decode(body, type=Definitions)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotExecuted(400, "InvalidParameterValue", f"These are no definitions: {error}") from error
    if definitions.elasticq != FORMAT:
        raise NotExecuted(400, "InvalidParameterValue", f"This version reads definitions of format {FORMAT}.")
    told: dict[str, list[str]] = {"made": [], "changed": [], "topics_made": [], "topics_changed": []}
    known = {(figures.account, figures.name) for figures in source.queues()}
    for queue in definitions.queues:
        owner = owner_of(source, queue.account, queue.region)
        settable = {name: value for name, value in queue.attributes.items() if name not in LATER}
        if (owner, queue.name) in known:
            settable.pop("FifoQueue", None)
            await _change(source, queue, settable, owner)
            told["changed"].append(queue.name)
        else:
            made = {"QueueName": queue.name, "Attributes": settable, "tags": queue.tags}
            await ask(source, "CreateQueue", made, owner)
            told["made"].append(queue.name)
    for queue in definitions.queues:
        named = {name: value for name, value in queue.attributes.items() if name in LATER}
        if named:
            await _change(source, queue, named, owner_of(source, queue.account, queue.region), with_tags=False)
    existing = (
        {(topic.account, topic.name): (topic, rows) for topic, rows in source.topics()} if definitions.topics else {}
    )
    for topic in definitions.topics:
        owner = owner_of(source, topic.account, topic.region)
        row, subscriptions = existing.get((owner, topic.name), (None, list[SubscriptionSet]()))
        await _load_topic(source, topic, owner, row)
        told["topics_made" if row is None else "topics_changed"].append(topic.name)
        present = {(each.protocol, each.endpoint): each for each in subscriptions}
        for subscription in topic.subscriptions:
            there = present.get((subscription.protocol, subscription.endpoint))
            await _load_subscription(source, topic, subscription, owner, there)
    return told


async def _load_topic(source: AdminSource, topic: TopicDefinition, owner: str, row: TopicSet | None) -> None:
    arn = topic_arn(source.region, owner, topic.name)
    tags = [{"Key": key, "Value": value} for key, value in topic.tags.items()]
    if row is None:
        made = {"Name": topic.name, "Attributes": topic.attributes, "Tags": tags}
        protection = {"DataProtectionPolicy": topic.data_protection_policy} if topic.data_protection_policy else {}
        await ask(source, "CreateTopic", {**made, **protection}, owner)
        return
    for name, value in _differing(topic.attributes, row.attributes):
        if name != FIFO:
            given = {"TopicArn": arn, "AttributeName": name, "AttributeValue": value}
            await ask(source, "SetTopicAttributes", given, owner)
    if tags:
        await ask(source, "TagResource", {"ResourceArn": arn, "Tags": tags}, owner)
    if topic.data_protection_policy != row.data_protection_policy:
        policy = {"ResourceArn": arn, "DataProtectionPolicy": topic.data_protection_policy}
        await ask(source, "PutDataProtectionPolicy", policy, owner)


async def _load_subscription(
    source: AdminSource,
    topic: TopicDefinition,
    subscription: SubscriptionDefinition,
    owner: str,
    row: SubscriptionSet | None,
) -> None:
    arn = topic_arn(source.region, owner, topic.name)
    if subscription.account:
        owner = owner_of(source, subscription.account, subscription.region)
    if row is None:
        to = {"TopicArn": arn, "Protocol": subscription.protocol, "Endpoint": subscription.endpoint}
        await ask(source, "Subscribe", {**to, "Attributes": subscription.attributes}, owner)
        return
    for name, value in _differing(subscription.attributes, row.attributes):
        given = {"SubscriptionArn": f"{arn}:{row.key}", "AttributeName": name, "AttributeValue": value}
        await ask(source, "SetSubscriptionAttributes", given, owner)


def _differing(wanted: Mapping[str, str], present: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the attributes to be set, in their order.

    A filter of bodies may be nested, one of attributes may not. So the scope is set before the filter where it becomes
    the body, and after it where it becomes the attributes: no step is refused, and no message goes by unfiltered.
    """
    found = [(name, value) for name, value in wanted.items() if present.get(name) != value]
    scope_is_first = wanted.get(FILTER_SCOPE) == MESSAGE_BODY
    return sorted(found, key=lambda pair: (pair[0] == FILTER_SCOPE) != scope_is_first)


async def _change(
    source: AdminSource, queue: QueueDefinition, attributes: dict[str, str], owner: str, *, with_tags: bool = True
) -> None:
    url = queue_url(source.endpoint, owner, queue.name)
    if attributes:
        await ask(source, "SetQueueAttributes", {"QueueUrl": url, "Attributes": attributes}, owner)
    if with_tags and queue.tags:
        await ask(source, "TagQueue", {"QueueUrl": url, "Tags": queue.tags}, owner)
