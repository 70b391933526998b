"""The results of commands on topics. ``wire/topic_xml.py`` encodes them as answers.

Lists and maps are always written, also if they are empty, as on AWS. An absent text (None) is left out.
"""

from msgspec import Struct, field

from elasticq.model.results import BatchError, Result


class TopicDone(Result):
    """The result of an action that answers only success, without a result element."""


class TopicTagged(Result):
    """The result of TagResource and UntagResource: an empty result element."""


class TopicArnResult(Result):
    topic_arn: str


class ListedTopic(Struct, rename="pascal", gc=False):
    topic_arn: str


class TopicsResult(Result):
    topics: list[ListedTopic] = field(default_factory=list)
    next_token: str | None = None


class TopicAttributesResult(Result):
    """The result of GetTopicAttributes and GetSubscriptionAttributes."""

    attributes: dict[str, str] = field(default_factory=dict)


class SubscribeResult(Result):
    """The result of Subscribe and ConfirmSubscription.

    number: that of the subscription. is_shown: whether the answer has the ARN instead of "pending confirmation".
    A repeated call needs both; they are not written.
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
    """The counts of a publish for the metrics of the member that answers. They are not written.

    delivered: copies that were stored for subscriptions. dead_lettered: those of them that are dead letters.
    filtered: subscriptions whose filter refused the message. failed: copies that could not be stored.
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
    """The result of Publish. ``topic``, ``number``: the numbers in MessageId and SequenceNumber."""

    message_id: str
    sequence_number: str | None = None  # FIFO only
    topic: int = 0
    number: int = 0
    counts: PublishCounts = field(default_factory=PublishCounts)


class PublishedEntry(Struct, gc=False):
    """A published entry of a batch (PublishBatchResultEntry)."""

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
    """The empty result of a read of phones or mobile push."""
