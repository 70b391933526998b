"""The index of topics and their subscriptions for a publish: by name, by ARN, and by the conditions of their filters.

The rows are mutations and are in ``State.tables``. ``writers/topics.py`` updates this index. The endpoint and the
policies of a subscription are parsed once, when its row is set, and its filter is compiled then.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from elasticq.engine.filters.index import FilterIndex
from elasticq.engine.filters.policy import (
    MATCHES_NOTHING,
    MESSAGE_ATTRIBUTES,
    FilterPolicy,
    InvalidFilterPolicy,
    compile_policy,
)
from elasticq.engine.filters.values import Budget
from elasticq.engine.stored.mutations import SubscriptionSet, TopicSet
from elasticq.engine.stored.queue_names import QueueNames
from elasticq.model import documents
from elasticq.model.commands import MessageAttributes
from elasticq.model.names import has_fifo_suffix, parse_queue_arn

FILTER: Final = "FilterPolicy"
FILTER_SCOPE: Final = "FilterPolicyScope"
RAW: Final = "RawMessageDelivery"
REDRIVE: Final = "RedrivePolicy"
QUEUE_PROTOCOL: Final = "sqs"
WEB_PROTOCOLS: Final = ("http", "https")


class Subscription:
    """A subscription with parsed attributes.

    - target: Owner and name of the queue that takes its messages, which may not exist. It is an inner queue for a
      subscription that is not a queue.
    - dead_letters: Owner and name of the queue for messages that ``target`` cannot take; None: there is none.
    - unreadable: Names of attributes with damaged values. Such a filter matches nothing. Such a redrive policy counts
      as absent.
    """

    __slots__ = ("dead_letters", "filter", "is_raw", "row", "target", "unreadable")

    def __init__(self, row: SubscriptionSet) -> None:
        self.row = row
        self.unreadable: tuple[str, ...] = ()
        self.is_raw = row.attributes.get(RAW) == "true"
        self.target = row.queue_owner, row.endpoint.rpartition(":")[2] if row.protocol == QUEUE_PROTOCOL else row.key
        self.dead_letters: tuple[str, str] | None = None
        self.filter: FilterPolicy | None = None
        if REDRIVE in row.attributes:
            self._read_redrive(row.attributes[REDRIVE])
        if FILTER in row.attributes:
            self._read_filter(row.attributes[FILTER])

    def _read_redrive(self, text: str) -> None:
        try:
            self.dead_letters = parse_queue_arn(documents.read(text)["deadLetterTargetArn"], self.row.account)
        except (documents.Unreadable, TypeError, KeyError):
            self.unreadable += (REDRIVE,)

    def _read_filter(self, text: str) -> None:
        try:
            self.filter = compile_policy(text, self.row.attributes.get(FILTER_SCOPE, MESSAGE_ATTRIBUTES))
        except InvalidFilterPolicy:
            self.filter = MATCHES_NOTHING
            self.unreadable += (FILTER,)


class Topic:
    """A topic and its subscriptions by number.

    - row: None once the topic is deleted, while it still has subscriptions.
    - by_endpoint: The number of the subscription by protocol and endpoint.
    - is_fifo: Whether the topic's name is that of a FIFO topic.
    - left: Deleted subscriptions that may be restored. They are not in ``subscriptions``.
    """

    __slots__ = ("_filters", "by_endpoint", "is_fifo", "left", "row", "subscriptions")

    def __init__(self, row: TopicSet | None) -> None:
        self.row = row
        self.is_fifo = False
        self.subscriptions: dict[int, Subscription] = {}
        self.left: dict[int, Subscription] = {}
        self.by_endpoint: dict[tuple[str, str], int] = {}
        self._filters: FilterIndex[int] = FilterIndex()  # of the confirmed subscriptions

    @property
    def confirmed(self) -> int:
        return len(self._filters)

    def all(self) -> Iterator[Subscription]:
        """Return all subscriptions, including deleted ones that may be restored."""
        return chain(self.subscriptions.values(), self.left.values())

    def add(self, subscription: Subscription) -> None:
        row = subscription.row
        number = row.number
        if row.is_left:
            self.left[number] = subscription
            return
        self.subscriptions[number] = subscription
        self.by_endpoint[row.protocol, row.endpoint] = number
        if not subscription.row.is_pending:
            self._filters.set(number, subscription.filter)

    def remove(self, number: int) -> None:
        if self.left.pop(number, None) is not None:
            return
        row = self.subscriptions.pop(number).row
        if self.by_endpoint.get((row.protocol, row.endpoint)) == number:
            del self.by_endpoint[row.protocol, row.endpoint]
        self._filters.remove(number)

    def collect(
        self, attributes: MessageAttributes | None, body: str, budget: Budget, found: dict[int, None]
    ) -> Iterator[None]:
        """Add the numbers of the confirmed subscriptions that get a message to ``found``. Yield when the budget is
        spent.
        """
        return self._filters.collect(attributes, body, budget, found)

    @property
    def is_filtered(self) -> bool:
        """Return whether any subscription has a filter policy."""
        return not self._filters.is_empty

    def matching(self, attributes: MessageAttributes | None, body: str) -> list[int]:
        """Return the numbers of the confirmed subscriptions that get a message, growing."""
        return sorted(self._filters.matching(attributes, body))


class Topics:
    """All topics and subscriptions of a state."""

    def __init__(self) -> None:
        self.by_number: dict[int, Topic] = {}
        self.names: QueueNames[Topic] = QueueNames()
        self.by_key: dict[str, Subscription] = {}  # by the end of the ARN
        self.orphans: dict[int, Topic] = {}  # deleted topics that still have subscriptions
        self.pending: list[tuple[int, int]] = []  # (created_ms, number) of unconfirmed subscriptions, oldest first
        self.pushed: dict[int, Subscription] = {}  # subscriptions of web servers
        self._numbers: dict[int, Subscription] = {}
        self._by_owner: dict[str, dict[int, Subscription]] = {}

    @property
    def subscription_count(self) -> int:
        return len(self._numbers)

    def put_topic(self, row: TopicSet) -> None:
        topic = self.by_number.get(row.number) or self.orphans.pop(row.number, None)
        if topic is None:
            topic = Topic(None)
        self.by_number[row.number] = topic
        topic.row, topic.is_fifo = row, has_fifo_suffix(row.name)
        holder = self.names.get((row.account, row.name))
        if holder is None or holder.row is None or holder.row.number <= row.number:
            self.names[(row.account, row.name)] = topic

    def drop_topic(self, number: int) -> None:
        topic = self.by_number.pop(number, None)
        if topic is None or topic.row is None:
            return
        key = (topic.row.account, topic.row.name)
        if self.names.get(key) is topic:
            del self.names[key]
        topic.row = None
        if topic.subscriptions or topic.left:
            self.orphans[number] = topic

    def put_subscription(self, row: SubscriptionSet) -> None:
        self.drop_subscription(row.number)
        topic = self.by_number.get(row.topic) or self.orphans.setdefault(row.topic, Topic(None))
        subscription = Subscription(row)
        topic.add(subscription)
        self._numbers[row.number] = subscription
        if not row.is_left:
            self.by_key[row.key] = subscription
            self._by_owner.setdefault(row.account, {})[row.number] = subscription
        if row.is_pending:
            insort(self.pending, (row.created_ms, row.number))
        if row.protocol in WEB_PROTOCOLS:
            self.pushed[row.number] = subscription

    def drop_subscription(self, number: int) -> None:
        subscription = self._numbers.pop(number, None)
        if subscription is None:
            return
        row = subscription.row
        topic = self.by_number.get(row.topic) or self.orphans[row.topic]
        topic.remove(number)
        if not topic.subscriptions and not topic.left:
            self.orphans.pop(row.topic, None)
        if row.is_pending:
            del self.pending[bisect_left(self.pending, (row.created_ms, number))]
        self.pushed.pop(number, None)
        if row.is_left:
            return
        self.by_key.pop(row.key, None)
        owned = self._by_owner[row.account]
        del owned[number]
        if not owned:
            del self._by_owner[row.account]

    def pending_until(self, until_ms: int, most: int) -> list[Subscription]:
        """Return up to ``most`` unconfirmed subscriptions created at ``until_ms`` or before, oldest first."""
        return [self._numbers[number] for created_ms, number in self.pending[:most] if created_ms <= until_ms]

    def all_subscriptions(self) -> Iterable[Subscription]:
        return self._numbers.values()

    def subscription(self, number: int) -> Subscription | None:
        return self._numbers.get(number)

    def of_owner(self, owner: str, after: int) -> Iterator[Subscription]:
        """Yield the subscriptions of an owner with numbers above ``after``, except those of deleted topics."""
        found: dict[int, Subscription] = self._by_owner.get(owner, {})
        for number in sorted(found):
            if number > after and found[number].row.topic in self.by_number:
                yield found[number]
