"""The topics and subscriptions of a process, as the admin port sees them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from elasticq.admin.source import FindSubscription
from elasticq.admin.subscriptions import SubscriptionCounts
from elasticq.engine.state import Queue
from elasticq.engine.stored.mutations import SubscriptionSet, TopicSet
from elasticq.engine.stored.topic_index import QUEUE_PROTOCOL, Subscription, Topic
from elasticq.engine.tally import Tally
from elasticq.model.names import inner_owner
from elasticq.model.topic_results import PublishCounts
from elasticq.node.node import Node
from elasticq.server.pushes import Pushes

if TYPE_CHECKING:
    from elasticq.push.pusher import Counts


class ViewOfTopics(ABC):
    """The part of a View about topics. pushing: the posts to web servers, None before they start and in a proxy."""

    pushing: Pushes | None = None

    @property
    @abstractmethod
    def _is_proxy(self) -> bool:
        """Return whether this process is a proxy, which has no state."""

    @property
    @abstractmethod
    def _node(self) -> Node:
        """Return the node. The process must not be a proxy."""

    def pushes(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        counts = {} if self.pushing is None else self.pushing.counts
        return {key: (each.delivered, each.retried, each.failed) for key, each in counts.items()}

    def delivered_in_steps(self) -> dict[tuple[str, str], PublishCounts]:
        return {} if self._is_proxy else self._node.housekeeping.delivered

    def topics(self) -> Iterator[tuple[TopicSet, list[SubscriptionSet]]]:
        if self._is_proxy:
            return
        for topic in list(self._node.state.topics.by_number.values()):
            if topic.row is not None:
                yield topic.row, [each.row for each in topic.subscriptions.values()]

    def topic(self, owner: str, name: str) -> tuple[TopicSet, FindSubscription] | None:
        found = None if self._is_proxy else self._node.state.topics.names.get((owner, name))
        return None if found is None or found.row is None else (found.row, partial(_subscription_of, found))

    def subscriptions(self) -> Iterator[SubscriptionCounts]:
        if self._is_proxy:
            return
        topics = self._node.state.topics
        for number in sorted({*self._tally.copies, *self._posts, *topics.pushed}):
            found = topics.subscription(number)
            counts = None if found is None else self._counts_of(found)
            if counts is not None:
                yield counts

    def subscription(self, key: str) -> SubscriptionCounts | None:
        if self._is_proxy:
            return None
        found = self._node.state.topics.by_key.get(key)
        return None if found is None else self._counts_of(found)

    def _counts_of(self, subscription: Subscription) -> SubscriptionCounts | None:
        row = subscription.row
        copies, posts = self._tally.copies.get(row.number), self._posts.get(row.number)
        topic = self._node.state.topics.by_number.get(row.topic)
        is_queue = row.protocol == QUEUE_PROTOCOL
        waiting = (
            None if is_queue or topic is None or topic.row is None else self._waiting_in(topic.row.account, row.key)
        )
        if topic is None or topic.row is None or (copies is None and posts is None and not waiting):
            return None
        stored, refused = (0, 0) if copies is None else (copies.delivered, copies.dead_lettered + copies.failed)
        return SubscriptionCounts(
            topic=(topic.row.account, topic.row.name),
            key=row.key,
            protocol=row.protocol,
            queue=subscription.target[1] if is_queue else "",
            delivered=stored if is_queue else 0 if posts is None else posts.delivered,
            retried=0 if posts is None else posts.retried,
            failed=refused + (0 if posts is None else posts.failed),
            waiting=waiting or 0,
            error=self._error_of(subscription, posts),
        )

    def _error_of(self, subscription: Subscription, posts: "Counts | None") -> str:
        """Return why the last failed copy or post to a subscription failed, empty if that is unknown."""
        if posts is not None:
            return posts.error
        is_queue = subscription.row.protocol == QUEUE_PROTOCOL
        return "the queue does not exist" if is_queue and self._queue(*subscription.target) is None else ""

    def _waiting_in(self, owner: str, key: str) -> int:
        """Return how many notifications wait in the inner queue of a subscription."""
        queue = self._queue(inner_owner(owner), key)
        return 0 if queue is None else queue.count

    @property
    def _tally(self) -> Tally:
        return self._node.journal.context.tally

    @property
    def _posts(self) -> "dict[int, Counts]":
        return {} if self.pushing is None else self.pushing.by_subscription

    def _queue(self, owner: str, name: str) -> Queue | None:
        return None if self._is_proxy else self._node.state.names.get((owner, name))


def _subscription_of(topic: Topic, protocol: str, endpoint: str) -> SubscriptionSet | None:
    number = topic.by_endpoint.get((protocol, endpoint))
    return None if number is None else topic.subscriptions[number].row
