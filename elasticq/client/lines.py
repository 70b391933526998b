"""The lines of sends: sends to one message group of a FIFO queue stay in the order in which they were called.

A batch to several groups joins all their lines at the same time, so no two sends wait for each other. If a send gives
up, the sends behind it fail, too. Else its caller could repeat it only behind them, and the order would change. A send
that the server refused, or that its caller cancelled, does not make others fail.
"""

from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from copy import copy
from threading import Lock
from typing import Any, Final

Group = tuple[str, str]
"""A message group: the end of the queue's URL (members have different hosts), and the MessageGroupId."""

NOT_TRIED: Final = "This send was not tried: one that came before it to its message group gave up with this."


class Place:
    """The place of a send in the lines of its groups.

    ``turn`` is done when the send may begin. It has an exception if a send before it gave up.
    """

    def __init__(self, groups: frozenset[Group]) -> None:
        self.groups = groups
        self.turn: Future[None] = Future()
        self.turn.set_running_or_notify_cancel()  # disables cancel(), because a cancelled waiter must not end the turn
        self._behind: set[Group] = set()

    def stand_behind(self, group: Group) -> None:
        self._behind.add(group)

    def step_forward(self, group: Group) -> None:
        """Note that this is the first place in the line of ``group``. The turn begins when it is first in all."""
        self._behind.discard(group)
        if not self._behind and not self.turn.done():
            self.turn.set_result(None)

    def fail(self, failure: Exception) -> None:
        """End the turn with a copy of ``failure``, because a send before this one gave up."""
        if not self.turn.done():
            own = copy(failure)  # each thread raises its own exception
            own.__cause__ = failure
            own.add_note(NOT_TRIED)
            self.turn.set_exception(own)


class Lines:
    """For each message group, the sends that wait for their turn. Threads and event loops may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._places: OrderedDict[Place, None] = OrderedDict()  # in the order of ``join``
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
        """Leave all lines, even before the turn. Do nothing if the place has left or failed before.

        failure: the error with which the send gave up; None if it was answered or cancelled. With an error, all sends
        behind it fail and leave their lines, and so do those behind them. Sends that join later are not affected.
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
        """Notify the first place in the line. A second notification has no effect."""
        next(iter(self._lines[group])).step_forward(group)


def is_fifo(members: Mapping[str, Any]) -> bool:
    url = members.get("QueueUrl")
    return isinstance(url, str) and url.endswith(".fifo")


def place_for(operation: str, members: Mapping[str, Any]) -> Place | None:
    """Return the place of a call that sends to a FIFO queue; None for all other calls, which have no order."""
    if not is_fifo(members):
        return None
    if operation == "send_message":
        sends: Any = (members,)
    elif operation == "send_message_batch":
        sends = members.get("Entries")
    else:
        return None
    if not isinstance(sends, (list, tuple)):
        return None  # botocore refuses this call
    queue = "/".join(members["QueueUrl"].split("/")[-2:])
    groups = frozenset((queue, str(send.get("MessageGroupId", ""))) for send in sends if isinstance(send, Mapping))
    return Place(groups) if groups else None
