"""Keeps the sends to one message group of a FIFO queue in the order in which they were called.

A send to several groups, which is a batch, joins the lines of all of them at once, so that no two wait for each other.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from threading import Lock
from typing import Any

Group = tuple[str, str]
"""A queue's URL and a MessageGroupId."""


class Place:
    """A send's place in the lines of its groups. ``turn`` is done when it is the send's turn."""

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


class Lines:
    """The lines of all groups. Threads and event loops may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lines: dict[Group, list[Place]] = {}

    def join(self, place: Place) -> None:
        with self._lock:
            for group in place.groups:
                place.stand_behind(group)
                self._lines.setdefault(group, []).append(place)
            for group in place.groups:
                if self._lines[group][0] is place:
                    place.step_forward(group)

    def leave(self, place: Place) -> None:
        """Leave all lines, be it before the turn; does nothing where the place is in no line."""
        with self._lock:
            for group in place.groups:
                line = self._lines.get(group, [])
                if place not in line:
                    continue
                line.remove(place)
                if line:
                    line[0].step_forward(group)
                else:
                    del self._lines[group]


def place_for(operation: str, members: Mapping[str, Any]) -> Place | None:
    """The place of a call that sends to a FIFO queue; None for all others, which have no order."""
    url = members.get("QueueUrl")
    if not isinstance(url, str) or not url.endswith(".fifo"):
        return None
    if operation == "send_message":
        sends: Any = (members,)
    elif operation == "send_message_batch":
        sends = members.get("Entries")
    else:
        return None
    if not isinstance(sends, (list, tuple)):
        return None  # botocore refuses it
    groups = frozenset((url, str(send.get("MessageGroupId", ""))) for send in sends if isinstance(send, Mapping))
    return Place(groups) if groups else None
