"""The queues by account and name, also in the order of names: a page costs only as much as its entries."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

Key = tuple[str, str]
"""Owner (model/names.py) and name."""
Queue = TypeVar("Queue")
_LAST: Final = chr(0x10FFFF)
"""Sorts after all characters of names."""


class QueueNames(dict[Key, Queue]):
    """A dictionary that also keeps its keys sorted, once ``order`` was called. It is filled without sorting during a
    start.

    ``follower`` is called with each key and its new value; None: the key was deleted.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ordered: list[Key] | None = None
        self.follower: Callable[[Key, Queue | None], None] | None = None

    def __setitem__(self, key: Key, queue: Queue) -> None:
        if self._ordered is not None and key not in self:
            insort(self._ordered, key)
        super().__setitem__(key, queue)
        if self.follower is not None:
            self.follower(key, queue)

    def __delitem__(self, key: Key) -> None:
        super().__delitem__(key)
        if self._ordered is not None:
            del self._ordered[bisect_left(self._ordered, key)]
        if self.follower is not None:
            self.follower(key, None)

    def order(self) -> list[Key]:
        if self._ordered is None:
            self._ordered = sorted(self)
        return self._ordered

    def of(self, account: str, prefix: str, after: str) -> Iterator[str]:
        """Yield the names of the account that begin with ``prefix`` and come after ``after``, in order."""
        ordered = self.order()
        place = bisect_left(ordered, (account, max(prefix, after)))
        while place < len(ordered):
            owner, name = ordered[place]
            if owner != account or not name.startswith(prefix):
                return
            if name > after:
                yield name
            place += 1

    def last_of(self, account: str, prefix: str) -> str:
        """Return the last name that begins with ``prefix``. At least one must exist."""
        ordered = self.order()
        return ordered[bisect_left(ordered, (account, prefix + _LAST)) - 1][1]

    def before(self, account: str, name: str) -> str:
        """Return the name before ``name``, which must not be the first of the account."""
        ordered = self.order()
        return ordered[bisect_left(ordered, (account, name)) - 1][1]
