"""What a master did since its process began, for the metrics: counted where it is done, no part of the state, not kept.

Work that is rolled back with its entry stays counted: these are figures for people.
"""

from elasticq.engine.state import State


class Copies:
    """What became of the copies that one subscription was to get.

    delivered: stored in its queue; dead_lettered: in the dead-letter queue instead; failed: stored nowhere.
    """

    __slots__ = ("dead_lettered", "delivered", "failed")

    def __init__(self) -> None:
        self.delivered = 0
        self.dead_lettered = 0
        self.failed = 0


class Tally:
    """expired: messages that outlived their retention and were removed, by the id of their queue.

    copies: by the number of the subscription.
    """

    __slots__ = ("copies", "expired")

    def __init__(self) -> None:
        self.expired: dict[int, int] = {}
        self.copies: dict[int, Copies] = {}

    def expire(self, queue_id: int, count: int) -> None:
        self.expired[queue_id] = self.expired.get(queue_id, 0) + count

    def of(self, subscription: int) -> Copies:
        """Return the counts of a subscription, to be added to."""
        found = self.copies.get(subscription)
        if found is None:
            found = self.copies[subscription] = Copies()
        return found

    def forget(self, state: State) -> None:
        """Drop the counts of what is gone, so that there are never many more of them than queues and subscriptions."""
        if len(self.expired) > len(state.queues):
            self.expired = {key: count for key, count in self.expired.items() if key in state.queues}
        topics = state.topics
        if len(self.copies) > topics.subscription_count:
            kept = self.copies.items()
            self.copies = {number: found for number, found in kept if topics.subscription(number) is not None}
