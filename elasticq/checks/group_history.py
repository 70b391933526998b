"""The history of a consumer group: what its consumers held and did, and what its masters decided; one event each.

All times are true time in us of one clock that all processes share. A consumer is one session, so a client that joins
again is another consumer. A resource is its name as consumers know it. A queue that is deleted and created again under
its name is the same resource.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Held(Struct):
    """A consumer held a resource, from the moment at which it got the assignment.

    until_us: when it stopped, because it was revoked, left, was refused or was killed, or because its session ended by
        its own clock. None: it still holds the resource.
    """

    consumer: str
    resource: str
    token: int
    from_us: int
    until_us: int | None = None


class Act(Struct):
    """A call with a token, or a write to an external system that is guarded by the token.

    complete_us: None if no answer came.
    outcome: ``ok`` if it was accepted, ``fail`` if it was refused, otherwise unknown.
    """

    consumer: str
    resource: str
    token: int
    invoke_us: int
    complete_us: int | None = None
    outcome: Literal["ok", "fail", "unknown"] = "unknown"


class Decision(Struct):
    """A decision of a master. Decisions come in the order of the log."""

    at_us: int


class Joined(Decision):
    """A consumer joined, or its weight changed.

    max_per_consumer: the group's bound, 0 for none.
    call: the id of the call by which it joined, empty if unknown.
    """

    consumer: str
    weight: int = 1
    max_per_consumer: int = 0
    call: str = ""


class Left(Decision):
    """A consumer left, or its session ended (is_over). Its resources are free."""

    consumer: str
    is_over: bool = False


class Added(Decision):
    """A resource was added."""

    resource: str


class Removed(Decision):
    """A resource was removed."""

    resource: str


class Assigned(Decision):
    """A resource has a new holder and a new token."""

    resource: str
    consumer: str
    token: int


class Revoked(Decision):
    """The holder of this token is asked to stop, so that another consumer can hold the resource.

    wanted_by: the consumer to which an operator moves it, otherwise empty. If an operator names another one, this event
        comes again.
    """

    resource: str
    token: int
    wanted_by: str = ""


class Freed(Decision):
    """The holder of this token has released the resource."""

    resource: str
    token: int


class Ordered(Decision):
    """An operator asked to move a resource to a consumer. The master decides when it gets the order."""

    resource: str
    consumer: str


class Renewed(Decision):
    """A call of a consumer was answered. The session was renewed between the call (``at_us``) and the answer."""

    consumer: str
    answered_us: int


class TookOver(Decision):
    """There is a new master.

    A session that would end within the span lasts until its end, because nobody could renew it.
    """

    from_us: int
    until_us: int


class Rest(Struct, frozen=True):
    """The group was left alone for long enough. These are its active consumers and its resources."""

    at_us: int
    weights: dict[str, int]
    resources: list[str]
    max_per_consumer: int = 0


Event = Held | Act | Joined | Left | Added | Removed | Assigned | Revoked | Freed | Ordered | Renewed | TookOver
