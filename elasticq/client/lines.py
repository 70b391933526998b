"""Keeps the sends to one message group of a FIFO queue in the order in which they were called.

A send to several groups, which is a batch, joins the lines of all of them at once, so that no two wait for each other.
A send that gave up fails those that stand behind it: if they went on, its caller could only repeat it behind them. A
send that was refused, or whose caller wants no answer any more, fails nobody.
"""

from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from copy import copy
from threading import Lock
from typing import Any, Final

Group = tuple[str, str]
"""A queue, by the end of its URL, as members have other hosts; and a MessageGroupId."""

NOT_TRIED: Final = "This send was not tried: one that came before it to its message group gave up with this."


class Place:
    """A send's place in the lines of its groups.

    ``turn`` is done when it is the send's turn, and raises what one before it gave up with.
    """

    __slots__ = ("_behind", "groups", "turn")

    def __init__(self, groups: frozenset[Group]) -> None:
        self.groups = groups
        self.turn: Future[None] = Future()
        self.turn.set_running_or_notify_cancel()  # who waits for it and is cancelled does not cancel the turn
        self._behind: set[Group] = set()

    def stand_behind(self, group: Group) -> None:
        self._behind.add(group)

    def step_forward(self, group: Group) -> None:
        """It is the first in the line of ``group``."""
        self._behind.discard(group)
        if not self._behind and not self.turn.done():
            self.turn.set_result(None)

    def fail(self, failure: Exception) -> None:
        """One before it gave up with ``failure``."""
        if not self.turn.done():
            own = copy(failure)  # each thread raises one of its own
            own.__cause__ = failure
            own.add_note(NOT_TRIED)
            self.turn.set_exception(own)


class Lines:
    """The lines of all groups. Threads and event loops may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._places: OrderedDict[Place, None] = OrderedDict()  # all of them, in the order in which they joined
        self._lines: dict[Group, OrderedDict[Place, None]] = {}

    def join(self, place: Place) -> None:
        with self._lock:
            self._places[place] = None
            for group in place.groups:
                place.stand_behind(group)
                self._lines.setdefault(group, OrderedDict())[place] = None
            for group in place.groups:
                self._tell_first(group)

    def leave(self, place: Place, failure: Exception | None = None) -> None:
        """Leave all lines, be it before the turn; does nothing where the place has left or was failed.

        failure: what the send gave up with; None if it was answered or nobody waits for it. Those behind it fail, those
        behind them too, and are in no line any more: a send that joins from now on is not behind them.
        """
        with self._lock:
            if place not in self._places:
                return
            if failure is not None:
                behind = self._behind(place)
                for each in behind:
                    each.fail(failure)
                for each in behind:
                    self._remove(each)
            self._remove(place)

    def _behind(self, place: Place) -> list[Place]:
        groups = set(place.groups)
        found: list[Place] = []
        later = False
        for each in self._places:
            if later and not groups.isdisjoint(each.groups):
                found.append(each)
                groups |= each.groups
            later = later or each is place
        return found

    def _remove(self, place: Place) -> None:
        self._places.pop(place, None)
        for group in place.groups:
            line = self._lines.get(group, OrderedDict())
            line.pop(place, None)
            if line:
                self._tell_first(group)
            else:
                self._lines.pop(group, None)

    def _tell_first(self, group: Group) -> None:
        """Tell the first in the line that it is; once more does not matter."""
        next(iter(self._lines[group])).step_forward(group)


def is_fifo(members: Mapping[str, Any]) -> bool:
    url = members.get("QueueUrl")
    return isinstance(url, str) and url.endswith(".fifo")


def place_for(operation: str, members: Mapping[str, Any]) -> Place | None:
    """The place of a call that sends to a FIFO queue; None for all others, which have no order."""
    if not is_fifo(members):
        return None
    if operation == "send_message":
        sends: Any = (members,)
    elif operation == "send_message_batch":
        sends = members.get("Entries")
    else:
        return None
    if not isinstance(sends, (list, tuple)):
        return None  # botocore refuses it
    queue = "/".join(members["QueueUrl"].split("/")[-2:])
    groups = frozenset((queue, str(send.get("MessageGroupId", ""))) for send in sends if isinstance(send, Mapping))
    return Place(groups) if groups else None
