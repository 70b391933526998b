"""What consumers of a group held and did, and what its master decided: one event each.

All times are true time in microseconds of one clock that everybody shares. A consumer is one session: who joins
again is another consumer. A resource is its name, as consumers know it: a queue that was deleted and made anew
under its name is the same resource to whoever writes to something that the name stands for.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Held(Struct):
    """A consumer held a resource, from the moment at which it was told.

    until_us: when it had stopped for having been revoked, left, been refused or been killed, or when its own clock
    reached the end of the time for which it may act without an answer, whichever came first; None: it holds it still.
    """

    consumer: str
    resource: str
    token: int
    from_us: int
    until_us: int | None = None


class Act(Struct):
    """A call with a token, or a write to something outside that its token guards.

    complete_us: None if no answer came; outcome: ``ok`` if it was accepted, ``fail`` if it was refused, else unknown.
    """

    consumer: str
    resource: str
    token: int
    invoke_us: int
    complete_us: int | None = None
    outcome: Literal["ok", "fail", "unknown"] = "unknown"


class Decision(Struct):
    """What the masters decided, in the order of the log."""

    at_us: int


class Joined(Decision):
    """A consumer joined, or has another weight from now on.

    max_per_consumer: the group's bound, 0 for none; call: what names the call by which it joined, empty if unknown.
    """

    consumer: str
    weight: int = 1
    max_per_consumer: int = 0
    call: str = ""


class Left(Decision):
    """A consumer left, or its session ended (is_over); what it held is free."""

    consumer: str
    is_over: bool = False


class Added(Decision):
    """There is one more resource."""

    resource: str


class Removed(Decision):
    """There is one resource less."""

    resource: str


class Assigned(Decision):
    """A resource has a new holder and a new token."""

    resource: str
    consumer: str
    token: int


class Revoked(Decision):
    """The holder of this token is asked to stop, so that another consumer can hold the resource.

    wanted_by: the one to whom an operator moves it, else empty; when an operator wants another one, it is told again.
    """

    resource: str
    token: int
    wanted_by: str = ""


class Freed(Decision):
    """The holder of this token has given the resource back."""

    resource: str
    token: int


class Ordered(Decision):
    """An operator asked to have a resource handed over to a consumer; the master decides when it hears of it."""

    resource: str
    consumer: str


class Renewed(Decision):
    """A consumer's call was answered; it had renewed its session between ``at_us``, when it was made, and then."""

    consumer: str
    answered_us: int


class TookOver(Decision):
    """Another master: a session that would end within the span lasts until its end, as nobody could renew it."""

    from_us: int
    until_us: int


class Rest(Struct, frozen=True):
    """The group has been left in peace for long enough, and these are its living consumers and its resources."""

    at_us: int
    weights: dict[str, int]
    resources: list[str]
    max_per_consumer: int = 0


Event = Held | Act | Joined | Left | Added | Removed | Assigned | Revoked | Freed | Ordered | Renewed | TookOver
