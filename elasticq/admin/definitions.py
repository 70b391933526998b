"""Definitions: a file that describes the queues and topics of all accounts and regions. Its export and its load.

The load creates queues before topics, because subscriptions name queues. It sets redrive policies when all queues
exist. A file without topics can also be read by versions without topics.
"""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct

from elasticq.admin.calls import NotExecuted, ask, owner_of
from elasticq.admin.pauses import Pause, in_order
from elasticq.admin.source import AdminSource
from elasticq.engine.filters.policy import MESSAGE_ATTRIBUTES, MESSAGE_BODY
from elasticq.engine.stored.mutations import SubscriptionSet, TopicSet
from elasticq.engine.stored.topic_attributes import FIFO
from elasticq.engine.stored.topic_index import FILTER, FILTER_SCOPE
from elasticq.model import limits, topic_commands
from elasticq.model.commands import Attributes, QueueName, Tags
from elasticq.model.limits import TOPIC_MEMBERS
from elasticq.model.names import account_of, queue_url, region_of, topic_arn

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
"""Attributes that the server computes, so clients cannot set them."""
LATER: Final = ("RedrivePolicy", "RedriveAllowPolicy")
"""Attributes that name other queues. They are set when all queues exist."""

Account = Annotated[str, Meta(max_length=12)]
Region = Annotated[str, Meta(max_length=32)]
TopicTags = Annotated[
    dict[Annotated[str, TOPIC_MEMBERS["Key"]], Annotated[str, TOPIC_MEMBERS["Value"]]], TOPIC_MEMBERS["Tags"]
]


class QueueDefinition(Struct, forbid_unknown_fields=True):
    """A queue."""

    name: QueueName
    account: Account = ""
    region: Region = ""
    attributes: Attributes = {}
    tags: Tags = {}


class SubscriptionDefinition(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A subscription. account, region: those of the subscriber; empty if they equal those of the topic."""

    protocol: Annotated[str, TOPIC_MEMBERS["Protocol"]]
    endpoint: Annotated[str, TOPIC_MEMBERS["Endpoint"]]
    attributes: topic_commands.Attributes = {}
    account: Account = ""
    region: Region = ""


class TopicDefinition(Struct, forbid_unknown_fields=True):
    """A topic with its subscriptions."""

    name: topic_commands.TopicName
    account: Account = ""
    region: Region = ""
    attributes: topic_commands.Attributes = {}
    tags: TopicTags = {}
    data_protection_policy: topic_commands.Policy = ""
    subscriptions: Annotated[list[Raw], Meta(max_length=limits.TOPIC_SUBSCRIPTIONS_MAX)] = []


# The lists hold the JSON of each item, so a long list is read and written item by item.
class Definitions(Struct, forbid_unknown_fields=True):
    """The queues and topics of a server. elasticq: the number of the format."""

    elasticq: Annotated[int, Meta(ge=0, le=limits.INTEGER_RANGE[1])]
    queues: Annotated[list[Raw], Meta(max_length=limits.QUEUES_MAX)]
    topics: Annotated[list[Raw], Meta(max_length=limits.TOPICS_MAX)] = []


_OUTLINE: Final = msgspec.json.Decoder(Definitions)
_QUEUE: Final = msgspec.json.Decoder(QueueDefinition)
_TOPIC: Final = msgspec.json.Decoder(TopicDefinition)
_SUBSCRIPTION: Final = msgspec.json.Decoder(SubscriptionDefinition)


class Progress:
    """The progress of a load. at: what is being loaded; done: the names of what was created and changed so far."""

    def __init__(self) -> None:
        self.at = ""
        self.done: dict[str, list[str]] = {"made": [], "changed": [], "topics_made": [], "topics_changed": []}

    def __str__(self) -> str:
        done = self.done
        made = f"{len(done['made'])} queues and {len(done['topics_made'])} topics were created"
        return f"{made}, {len(done['changed'])} queues and {len(done['topics_changed'])} topics were updated"


class LoadFailed(NotExecuted):
    """A load that stopped because a definition was refused. done: as in ``Progress``."""

    def __init__(self, error: NotExecuted, progress: Progress) -> None:
        super().__init__(error.status, error.code, f"{progress.at}: {error.message} Before that {progress}.")
        self.done = progress.done


async def export(source: AdminSource) -> list[bytes]:
    """Return the definitions as JSON, in parts. Raise NotExecuted if a queue or topic cannot be read."""
    queues, pause = list[_Item](), Pause()
    for figures in source.queues():
        await pause()
        url, owner = queue_url(source.endpoint, figures.account, figures.name), figures.account
        attributes = await ask(source, "GetQueueAttributes", {"QueueUrl": url, "AttributeNames": ["All"]}, owner)
        tags = await ask(source, "ListQueueTags", {"QueueUrl": url}, owner)
        kept = {name: value for name, value in attributes.get("Attributes", {}).items() if name not in COMPUTED}
        region = region_of(owner, source.region)
        queue = QueueDefinition(figures.name, account_of(owner), region, kept, tags.get("Tags", {}))
        queues.append(((queue.name, queue.account, queue.region), Raw(msgspec.json.encode(queue))))
    topics = list[_Item]()
    for row, subscriptions in source.topics():
        topic = await _of_topic(source, row, subscriptions)
        topics.append(((topic.name, topic.account, topic.region), topic))
        await pause()
    parts = [b'{\n  "elasticq": %d,\n  "queues": ' % FORMAT]
    await _write(await in_order(queues, _place), 2, parts)
    if topics:
        parts.append(b',\n  "topics": ')
        await _write(await in_order(topics, _place), 2, parts)
    return [*parts, b"\n}"]


_Item = tuple[tuple[str, ...], Raw | TopicDefinition]
"""What determines the place of a definition in its list, and the definition.

Of 100,000 definitions the JSON is kept: the garbage collector would visit the dicts of so many objects in one turn.
"""


def _place(item: _Item) -> tuple[str, ...]:
    return item[0]


async def _write(items: list[_Item], indent: int, parts: list[bytes]) -> None:
    """Append the JSON of a list to ``parts``, indented by ``indent`` spaces. Leave the list empty."""
    if not items:
        parts.append(b"[]")
        return
    pause, margin = Pause(), b"\n" + b" " * (indent + 2)
    items.reverse()
    separator = b"["
    while items:  # items are freed one by one, as freeing all at once would block the loop
        await pause()
        item = items.pop()[1]
        parts.append(separator + margin)
        separator = b","
        if isinstance(item, TopicDefinition) and item.subscriptions:
            subscriptions, item.subscriptions = item.subscriptions, []
            text = msgspec.json.format(msgspec.json.encode(item), indent=2).replace(b"\n", margin)
            head, _, tail = text.rpartition(b"[]")
            parts.append(head)
            await _write([((), each) for each in subscriptions], indent + 4, parts)
            parts.append(tail)
        else:
            parts.append(msgspec.json.format(msgspec.json.encode(item), indent=2).replace(b"\n", margin))
    parts.append(b"\n" + b" " * indent + b"]")


async def _of_topic(source: AdminSource, topic: TopicSet, subscriptions: list[SubscriptionSet]) -> TopicDefinition:
    definition = TopicDefinition(
        topic.name,
        account_of(topic.account),
        region_of(topic.account, source.region),
        topic.attributes,
        topic.tags,
        topic.data_protection_policy,
    )
    found, pause = list[_Item](), Pause()
    for row in subscriptions:
        await pause()
        if row.is_pending:
            continue  # it was not confirmed
        scope = {FILTER_SCOPE: MESSAGE_ATTRIBUTES} if FILTER in row.attributes else {}  # the default, made explicit
        one = SubscriptionDefinition(row.protocol, row.endpoint, scope | row.attributes)
        if row.account != topic.account:
            one.account, one.region = account_of(row.account), region_of(row.account, source.region)
        found.append(((one.protocol, one.endpoint), Raw(msgspec.json.encode(one))))
    for _, raw in await in_order(found, _place):
        await pause()
        assert isinstance(raw, Raw)
        definition.subscriptions.append(raw)
    return definition


async def load(source: AdminSource, body: bytes) -> Progress:
    """Create the queues, topics and subscriptions that are missing; set attributes and tags of those that exist.

    Return the names of what was done: queues under ``made`` and ``changed``, topics under ``topics_made`` and
    ``topics_changed``. Web servers are asked to confirm their new subscriptions. Raise NotExecuted before any change
    if the body is malformed. Raise LoadFailed if a definition is refused; the changes before it remain. The loop
    serves others meanwhile.
    """
    outline = await _outlined(body)
    progress = Progress()
    try:
        await _load_queues(source, outline.queues, progress)
        await _load_topics(source, outline.topics, progress)
    except NotExecuted as error:
        raise LoadFailed(error, progress) from error
    return progress


async def _outlined(body: bytes) -> Definitions:
    """Validate a definitions file. Return its lists of queues and topics, each item still as JSON.

    Raise NotExecuted if the file is malformed or has another format number.
    """
    pause = Pause()
    try:
        outline = _OUTLINE.decode(body)
        await pause()
        for queue in outline.queues:
            _QUEUE.decode(queue)
            await pause()
        for topic in outline.topics:
            for subscription in _TOPIC.decode(topic).subscriptions:
                _SUBSCRIPTION.decode(subscription)
                await pause()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotExecuted(400, "InvalidParameterValue", f"The definitions are malformed: {error}") from error
    if outline.elasticq != FORMAT:
        raise NotExecuted(400, "InvalidParameterValue", f"This version reads definitions of format {FORMAT}.")
    return outline


async def _load_queues(source: AdminSource, queues: list[Raw], progress: Progress) -> None:
    pause, done = Pause(), progress.done
    for each in queues:
        await pause()
        queue = _QUEUE.decode(each)
        progress.at = f"Queue {queue.name}"
        owner = owner_of(source, queue.account, queue.region)
        settable = {name: value for name, value in queue.attributes.items() if name not in LATER}
        if source.queue(owner, queue.name) is not None:
            settable.pop("FifoQueue", None)
            await _change(source, queue, settable, owner)
            done["changed"].append(queue.name)
        else:
            made = {"QueueName": queue.name, "Attributes": settable, "tags": queue.tags}
            await ask(source, "CreateQueue", made, owner)
            done["made"].append(queue.name)
    for each in queues:
        await pause()
        queue = _QUEUE.decode(each)
        progress.at = f"Queue {queue.name}"
        named = {name: value for name, value in queue.attributes.items() if name in LATER}
        if named:
            await _change(source, queue, named, owner_of(source, queue.account, queue.region), with_tags=False)


async def _load_topics(source: AdminSource, topics: list[Raw], progress: Progress) -> None:
    pause = Pause()
    for each in topics:
        topic = _TOPIC.decode(each)
        progress.at = f"Topic {topic.name}"
        owner = owner_of(source, topic.account, topic.region)
        row, find = source.topic(owner, topic.name) or (None, None)
        await _load_topic(source, topic, owner, row)
        progress.done["topics_made" if row is None else "topics_changed"].append(topic.name)
        for given in topic.subscriptions:
            await pause()
            subscription = _SUBSCRIPTION.decode(given)
            there = None if find is None else find(subscription.protocol, subscription.endpoint)
            await _load_subscription(source, topic, subscription, owner, there)


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
    """Return the attributes that differ from the present ones, in the order in which they must be set.

    A filter of bodies may be nested, a filter of attributes may not. So the scope is set before the filter if it
    becomes the body, and after the filter if it becomes the attributes. Then no step is refused, and each message is
    filtered.
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
