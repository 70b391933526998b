"""Counters of a master's work since its process started, for the metrics.

They are in memory only, neither replicated nor persisted. Work that is rolled back stays counted.
"""

from elasticq.engine.state import State


class Copies:
    """Counts of the copies that one subscription should get.

    delivered: stored in its queue; dead_lettered: stored in its dead-letter queue instead; failed: stored nowhere.
    """

    __slots__ = ("dead_lettered", "delivered", "failed")

    def __init__(self) -> None:
        self.delivered = 0
        self.dead_lettered = 0
        self.failed = 0


class Tally:
    """The counters of one process.

    expired: numbers of messages that were removed after their retention period, by the id of their queue.
    copies: counts of copies, by the number of the subscription.
    """

    __slots__ = ("copies", "expired")

    def __init__(self) -> None:
        self.expired: dict[int, int] = {}
        self.copies: dict[int, Copies] = {}

    def expire(self, queue_id: int, count: int) -> None:
        self.expired[queue_id] = self.expired.get(queue_id, 0) + count

    def of(self, subscription: int) -> Copies:
        """Return the counts of a subscription. The caller may add to them."""
        found = self.copies.get(subscription)
        if found is None:
            found = self.copies[subscription] = Copies()
        return found

    def forget(self, state: State) -> None:
        """Drop the counts of queues and subscriptions that are gone, to bound the memory."""
        if len(self.expired) > len(state.queues):
            self.expired = {key: count for key, count in self.expired.items() if key in state.queues}
        topics = state.topics
        if len(self.copies) > topics.subscription_count:
            kept = self.copies.items()
            self.copies = {number: found for number, found in kept if topics.subscription(number) is not None}
