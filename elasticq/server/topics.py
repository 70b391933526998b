"""The topics and subscriptions of the settings: ``[topics.NAME]`` tables."""

import json
from collections.abc import Container, Mapping
from typing import Any

from msgspec import Struct, field

from elasticq.model.names import FIFO_SUFFIX, has_fifo_suffix, is_topic_name, queue_arn, topic_arn
from elasticq.model.topic_commands import CreateTopic, Subscribe, Tag


class SubscriptionSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One subscription: of a queue, by its name, or of a web server, by its URL.

    filter: FilterPolicy, as a table; filter_body: the filter applies to the body; attributes: others, with AWS's names.
    """

    queue: str = ""
    url: str = ""
    raw: bool = False
    filter: dict[str, Any] = field(default_factory=dict)
    filter_body: bool = False
    dead_letter_queue: str = ""
    attributes: dict[str, str] = field(default_factory=dict)


class TopicSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One topic. The server creates it at its start. A topic that exists keeps its attributes."""

    fifo: bool = False
    content_based_deduplication: bool = False
    subscriptions: list[SubscriptionSettings] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)


class TopicDeclarations:
    """The commands that create the topics, each followed by those of its subscriptions.

    named: each command after the name of its setting. wrong: a text for each setting that contradicts another; the
    rehearsal finds what the engine refuses.
    """

    def __init__(self, topics: Mapping[str, TopicSettings], region: str, account: str) -> None:
        self.wrong: list[str] = []
        self.named: list[tuple[str, CreateTopic | Subscribe]] = []
        self._region, self._account = region, account
        for name, topic in topics.items():
            self._declare(f"{name}{FIFO_SUFFIX}" if topic.fifo and not has_fifo_suffix(name) else name, topic)

    def doubts(self, queues: Container[str]) -> list[str]:
        """Return a text for each subscription whose queue is not among the queues of the settings."""
        own = queue_arn(self._region, self._account, "")
        found = []
        for _, command in self.named:
            endpoint = (command.endpoint or "") if isinstance(command, Subscribe) else ""
            name = endpoint.removeprefix(own)
            if name != endpoint and name not in queues and name.removesuffix(FIFO_SUFFIX) not in queues:
                found.append(f"a subscription in topics names {name}, but the settings have no such queue")
        return found

    def _declare(self, name: str, topic: TopicSettings) -> None:
        attributes, is_fifo = dict(topic.attributes), has_fifo_suffix(name)
        if not is_topic_name(name, is_fifo=is_fifo):
            self.wrong.append(f"topics.{name}: a name has 1 to 256 letters, digits, - or _")
        if is_fifo:
            attributes["FifoTopic"] = "true"
        if topic.content_based_deduplication:
            attributes["ContentBasedDeduplication"] = "true"
        tags = [Tag(key, value) for key, value in topic.tags.items()]
        self.named.append((f"topics.{name}", CreateTopic(name, attributes, tags)))
        for number, subscription in enumerate(topic.subscriptions, start=1):
            self._subscribe(name, f"topics.{name}.subscriptions, number {number}", subscription)

    def _subscribe(self, name: str, where: str, subscription: SubscriptionSettings) -> None:
        if bool(subscription.queue) == bool(subscription.url):
            self.wrong.append(f"{where}: set either queue or url")
            return
        protocol, endpoint = subscription.url.partition(":")[0], subscription.url
        if subscription.queue:
            protocol, endpoint = "sqs", self._queue_arn(subscription.queue)
        arn = topic_arn(self._region, self._account, name)
        self.named.append((where, Subscribe(arn, protocol, endpoint, self._attributes(subscription))))

    def _attributes(self, subscription: SubscriptionSettings) -> dict[str, str]:
        attributes = dict(subscription.attributes)
        if subscription.raw:
            attributes["RawMessageDelivery"] = "true"
        if subscription.filter_body:
            attributes["FilterPolicyScope"] = "MessageBody"
        if subscription.filter:
            attributes["FilterPolicy"] = json.dumps(subscription.filter)
        if subscription.dead_letter_queue:
            arn = self._queue_arn(subscription.dead_letter_queue)
            attributes["RedrivePolicy"] = json.dumps({"deadLetterTargetArn": arn})
        return attributes

    def _queue_arn(self, name: str) -> str:
        return name if name.startswith("arn:") else queue_arn(self._region, self._account, name)
