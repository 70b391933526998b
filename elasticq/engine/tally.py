"""Counters of a master's work since its process started, for the metrics.

They are in memory only, neither replicated nor persisted. Work that is rolled back stays counted.
"""

from typing import Final

from elasticq.engine.state import State

OFTEN: Final = 10
"""A message that was received so often was never deleted: its consumers probably fail."""
OFTEN_MAX: Final = 16
"""The number of such messages that are remembered for each queue."""


class Copies:
    """Counts of the copies that one subscription should get.

    delivered: stored in its queue; dead_lettered: stored in its dead-letter queue instead; failed: stored nowhere.
    """

    def __init__(self) -> None:
        self.delivered = 0
        self.dead_lettered = 0
        self.failed = 0


class Tally:
    """The counters of one process.

    expired: numbers of messages that were removed after their retention period, by the id of their queue.
    copies: counts of copies, by the number of the subscription.
    fetched: cluster time of the newest receive of a queue, by its id.
    often: sequences of messages that were received OFTEN times or more, by the id of their queue, the newest last.
    """

    def __init__(self) -> None:
        self.expired: dict[int, int] = {}
        self.copies: dict[int, Copies] = {}
        self.fetched: dict[int, int] = {}
        self.often: dict[int, dict[int, None]] = {}

    def expire(self, queue_id: int, count: int) -> None:
        self.expired[queue_id] = self.expired.get(queue_id, 0) + count

    def received_often(self, queue_id: int, sequence: int) -> None:
        """Remember a message that was received OFTEN times or more. Forget the one that was noted longest ago."""
        known = self.often.setdefault(queue_id, {})
        known.pop(sequence, None)
        known[sequence] = None
        if len(known) > OFTEN_MAX:
            del known[next(iter(known))]

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
        if len(self.fetched) > len(state.queues):
            self.fetched = {key: time_ms for key, time_ms in self.fetched.items() if key in state.queues}
        if len(self.often) > len(state.queues):
            self.often = {key: known for key, known in self.often.items() if key in state.queues}
        topics = state.topics
        if len(self.copies) > topics.subscription_count:
            kept = self.copies.items()
            self.copies = {number: found for number, found in kept if topics.subscription(number) is not None}
