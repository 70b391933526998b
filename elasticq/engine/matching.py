"""Finds in slices which subscriptions a publish is for, where that takes long.

A publish to a topic of 100,000 filter policies, or of a body with 500,000 values, is more work than others may wait
for. The handler then raises ``Unfinished``. The node goes on with the work between other calls, and executes the call
again with the finished ``Matching`` in its context. Nothing of it is stored: the next master begins again.
"""

from collections.abc import Iterator
from typing import Final

from elasticq.engine.filters.values import Budget
from elasticq.engine.stored.topic_index import Subscription, Topic
from elasticq.model.commands import MessageAttributes
from elasticq.model.errors import invalid_parameter

SLICE: Final = 50_000
"""The work of one slice, which takes a few milliseconds."""
SLICES_MAX: Final = 5_000  # of one call


class Unfinished(Exception):
    """The call must be executed again when ``matching`` is finished."""

    def __init__(self, matching: "Matching") -> None:
        super().__init__()
        self.matching = matching


class _Task:
    """The search for the subscriptions of one message; found: the numbers of those that have turned up so far."""

    __slots__ = ("found", "steps")

    def __init__(self, topic: Topic, attributes: MessageAttributes | None, body: str, budget: Budget) -> None:
        self.found: dict[int, None] = {}
        self.steps: Iterator[None] | None = topic.collect(attributes, body, budget, self.found)

    def go_on(self) -> bool:
        """Do the next slice; return whether the search is at its end."""
        if self.steps is not None:
            for _ in self.steps:
                return False
            self.steps = None
        return True


class Matching:
    """What is known of the messages of one call, by their places in it."""

    __slots__ = ("_budget", "_last", "_slices", "_tasks")

    def __init__(self) -> None:
        self._budget = Budget(SLICE)
        self._slices = 0
        self._tasks: dict[int, _Task] = {}
        self._last: _Task | None = None

    def go_on(self) -> bool:
        """Do the next slice for the last message that was asked about; return whether to execute the call again."""
        self._budget.left = SLICE
        self._slices += 1
        return self._slices > SLICES_MAX or self._last is None or self._last.go_on()

    def of(self, place: int, topic: Topic, attributes: MessageAttributes | None, body: str) -> list[Subscription]:
        """Return the confirmed subscriptions that get a message, by number, those that there still are.

        Raises Unfinished, TopicError.
        """
        if self._slices > SLICES_MAX:
            raise invalid_parameter("Message Reason: it takes too long to match it with the topic's filter policies")
        task = self._tasks.get(place)
        if task is None:
            task = self._tasks[place] = self._last = _Task(topic, attributes, body, self._budget)
        if not task.go_on():
            raise Unfinished(self)
        return [topic.subscriptions[number] for number in sorted(task.found) if number in topic.subscriptions]
