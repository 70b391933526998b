"""A search for the subscriptions that match a publish, divided into slices.

A topic with 100,000 filter policies, or a body with 500,000 values, would make other calls wait too long. The handler
then raises ``Unfinished``. The node does further slices between other calls. When the search is finished, the node
executes the call again with the ``Matching`` in its context. The search is not stored: a new master starts it again.
"""

from collections.abc import Iterator
from typing import Final

from elasticq.engine.filters.values import Budget
from elasticq.engine.stored.topic_index import Topic
from elasticq.model.commands import MessageAttributes
from elasticq.model.errors import invalid_parameter

SLICE: Final = 50_000
"""The work of one slice, which takes a few milliseconds."""
SLICES_MAX: Final = 5_000  # for one call


class Unfinished(Exception):
    """A search needs more slices. The node must execute the call again when ``matching`` is finished."""

    def __init__(self, matching: "Matching") -> None:
        super().__init__()
        self.matching = matching


class _MessageSearch:
    """The search for the subscriptions of one message; found: numbers of the matches so far."""

    def __init__(self, topic: Topic, attributes: MessageAttributes | None, body: str, budget: Budget) -> None:
        self.found: dict[int, None] = {}
        self.steps: Iterator[None] | None = topic.collect(attributes, body, budget, self.found)

    def go_on(self) -> bool:
        """Do the next slice; return whether the search is finished."""
        if self.steps is not None:
            for _ in self.steps:
                return False
            self.steps = None
        return True


class Matching:
    """The searches for the messages of one call, by their positions in the call."""

    def __init__(self) -> None:
        self._budget = Budget(SLICE)
        self._slices = 0
        self._tasks: dict[int, _MessageSearch] = {}
        self._last: _MessageSearch | None = None

    def go_on(self) -> bool:
        """Do the next slice for the message whose search is unfinished; return whether to execute the call again."""
        self._budget.left = SLICE
        self._slices += 1
        return self._slices > SLICES_MAX or self._last is None or self._last.go_on()

    def of(self, place: int, topic: Topic, attributes: MessageAttributes | None, body: str) -> list[int]:
        """Return the numbers of the confirmed subscriptions that match a message and still exist, growing.

        place: position of the message in its call. Raise Unfinished if more slices are needed, and TopicError if the
        call has used SLICES_MAX slices.
        """
        if self._slices > SLICES_MAX:
            raise invalid_parameter("Message Reason: it takes too long to match it with the topic's filter policies")
        task = self._tasks.get(place)
        if task is None:
            task = self._tasks[place] = self._last = _MessageSearch(topic, attributes, body, self._budget)
        if not task.go_on():
            raise Unfinished(self)
        return sorted(task.found.keys() & topic.subscriptions.keys())
