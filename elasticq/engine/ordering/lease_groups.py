"""The progress of leases in the groups of FIFO queues, where messages in flight block the rest of their group.

A lease may receive the messages behind its own in a group. To find them without visiting all of its messages, each
search remembers how far the last one came. This progress can be rebuilt from the lease's calls at any time.
"""

from elasticq.engine.ordering.groups import Group
from elasticq.engine.stored.mutations import LeaseCalled


class GroupProgress:
    """A cached position in one group, from which a lease continues its search for messages to receive.

    - last: From the group's oldest message to this one, all messages are in flight in this lease. 0 if the oldest one
      is not.
    - changes: The group's ``changes`` counter when ``last`` was found. If the counter differs, ``last`` is out of date.
    """

    __slots__ = ("changes", "last")

    def __init__(self) -> None:
        self.changes = -1
        self.last = 0


class LeaseGroups:
    """The messages of one lease and their groups.

    - calls: The receive calls that were learnt.
    - delivery_numbers: The delivery numbers of the lease's messages by sequence.
    - groups: The search position in each group that has messages of the lease.
    - new: Messages whose group was not looked up yet.
    """

    __slots__ = ("calls", "delivery_numbers", "groups", "new")

    def __init__(self) -> None:
        self.calls: dict[int, LeaseCalled] = {}
        self.delivery_numbers: dict[int, int] = {}
        self.groups: dict[Group, GroupProgress] = {}
        self.new: list[int] = []

    def learn(self, calls: dict[int, LeaseCalled]) -> None:
        """Add the calls that are newer than those already learnt."""
        fresh = []
        for number in reversed(calls):
            if self.calls.get(number) is calls[number]:
                break
            fresh.append(number)
        for number in reversed(fresh):
            called = self.calls[number] = calls[number]
            self.delivery_numbers.update(zip(called.sequences, called.delivery_numbers, strict=True))
            self.new += called.sequences
