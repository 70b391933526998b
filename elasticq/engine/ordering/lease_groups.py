"""Remembers what a lease received from a queue whose groups wait for messages in flight. It can be built anew any time.

A lease may receive what stands behind its own messages. To find it without a walk through all of them, each look
remembers how far the last one came.
"""

from elasticq.engine.ordering.groups import Group
from elasticq.engine.stored.mutations import LeaseCalled


class GroupProgress:
    """How far a lease has come in one group.

    last: the newest message up to which all in flight were the lease's, 0 if there is none; changes: the group's
    number of changes when that was found.
    """

    __slots__ = ("changes", "last")

    def __init__(self) -> None:
        self.changes = -1
        self.last = 0


class LeaseGroups:
    """The messages of one lease and their groups.

    calls: the receive calls that were learnt; delivery_numbers: by sequence, of the lease's messages; groups: those of
    its messages; new: messages whose group has not been looked for yet.
    """

    __slots__ = ("calls", "delivery_numbers", "groups", "new")

    def __init__(self) -> None:
        self.calls: dict[int, LeaseCalled] = {}
        self.delivery_numbers: dict[int, int] = {}
        self.groups: dict[Group, GroupProgress] = {}
        self.new: list[int] = []

    def learn(self, calls: dict[int, LeaseCalled]) -> None:
        """Takes over the calls that came since the last look."""
        fresh = []
        for number in reversed(calls):
            if self.calls.get(number) is calls[number]:
                break
            fresh.append(number)
        for number in reversed(fresh):
            called = self.calls[number] = calls[number]
            self.delivery_numbers.update(zip(called.sequences, called.delivery_numbers, strict=True))
            self.new += called.sequences
