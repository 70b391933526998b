"""What an executed command on topics answers; ``wire/topic_xml.py`` writes it.

Lists and maps are always written, also when they are empty, as AWS does; a text that is None is left out.
"""

from msgspec import Struct, field

from elasticq.model.results import BatchError, Result


class TopicDone(Result):
    """The action answers nothing but success, without a result element."""


class TopicTagged(Result):
    """TagResource and UntagResource: a result element that is empty."""


class TopicArnResult(Result):
    topic_arn: str


class ListedTopic(Struct, rename="pascal", gc=False):
    topic_arn: str


class TopicsResult(Result):
    topics: list[ListedTopic] = field(default_factory=list)
    next_token: str | None = None


class TopicAttributesResult(Result):
    """GetTopicAttributes and GetSubscriptionAttributes."""

    attributes: dict[str, str] = field(default_factory=dict)


class SubscribeResult(Result):
    """Subscribe and ConfirmSubscription.

    number: the subscription's; is_shown: the ARN is told, not that its confirmation is pending. Both are for a
    repeated call, and not written.
    """

    subscription_arn: str
    number: int = 0
    is_shown: bool = True


class ListedSubscription(Struct, rename="pascal", gc=False):
    subscription_arn: str
    owner: str
    protocol: str
    endpoint: str
    topic_arn: str


class SubscriptionsResult(Result):
    subscriptions: list[ListedSubscription] = field(default_factory=list)
    next_token: str | None = None


class PublishCounts(Struct, array_like=True, gc=False):
    """For the metrics of the member that answers: copies that were stored for subscriptions, among them dead letters;
    subscriptions whose filter refused the message; copies that could be stored nowhere. Not written.
    """

    delivered: int = 0
    dead_lettered: int = 0
    filtered: int = 0
    failed: int = 0

    def add(self, more: "PublishCounts") -> None:
        self.delivered += more.delivered
        self.dead_lettered += more.dead_lettered
        self.filtered += more.filtered
        self.failed += more.failed


class PublishResult(Result):
    """``topic``, ``number``: what MessageId and SequenceNumber are made of."""

    message_id: str
    sequence_number: str | None = None  # FIFO only
    topic: int = 0
    number: int = 0
    counts: PublishCounts = field(default_factory=PublishCounts)


class PublishedEntry(Struct, gc=False):
    """PublishBatchResultEntry."""

    id: str
    message_id: str
    sequence_number: str | None = None
    number: int = 0


class PublishBatchResult(Result):
    successful: list[PublishedEntry] = field(default_factory=list)
    failed: list[BatchError] = field(default_factory=list)
    topic: int = 0
    counts: PublishCounts = field(default_factory=PublishCounts)


class ListedTag(Struct, rename="pascal", gc=False):
    key: str
    value: str


class TopicTagsResult(Result):
    tags: list[ListedTag] = field(default_factory=list)


class DataProtectionPolicyResult(Result):
    data_protection_policy: str


class NothingThereResult(Result):
    """What a read of phones or mobile push answers."""
