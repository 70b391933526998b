"""The index of dead-letter sources: for each dead-letter queue, the queues that use it, in the order of names."""

from collections.abc import Iterator

from elasticq.engine.stored.queue_names import Key, QueueNames
from elasticq.engine.stored.redrive_policies import Redrive


class DeadLetterSources:
    """The queues with a redrive policy. The targets need not exist."""

    def __init__(self) -> None:
        self._names: QueueNames[Key] = QueueNames()  # keys: the target's path and the source's name
        self._targets: dict[Key, str] = {}  # target's path by source

    def put(self, source: Key, policy: Redrive | None) -> None:
        """Store the policy of the queue with this name; None: it has none, or the queue does not exist."""
        before = self._targets.pop(source, None)
        if before is not None and (before, source[1]) in self._names:
            del self._names[before, source[1]]
        if policy is not None:
            path = _path(policy.target)
            self._targets[source] = path
            self._names[path, source[1]] = source

    def order(self) -> None:
        """Sort the names once. After that, ``put`` keeps them sorted."""
        self._names.order()

    def of(self, target: Key, after: str = "") -> Iterator[str]:
        """Yield the names of a queue's sources that come after ``after``, in order."""
        return self._names.of(_path(target), "", after)

    def has(self, target: Key) -> bool:
        return next(self.of(target), None) is not None


def _path(key: Key) -> str:
    return "/".join(key)
