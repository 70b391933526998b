"""What a member must keep over a crash: entries, truncations, term and vote.

Records reach the storage in the order in which they were made and are durable
in that order; everything that rests on one names its sync token.
"""

from msgspec import Struct


class Entry(Struct, array_like=True, frozen=True, gc=False, tag=1):
    """One place in the log.

    index: 1, 2, 3 ...; term: of the master that made it; time_ms: cluster time,
    never falling; payload: mutations as the engine encodes them, opaque here.
    """

    index: int
    term: int
    time_ms: int
    payload: bytes


class Truncation(Struct, array_like=True, frozen=True, gc=False, tag=2):
    """All entries from ``index`` on are void: a conflict with the master's log."""

    index: int


class Vote(Struct, array_like=True, frozen=True, gc=False, tag=3):
    """The member's term, and whom it voted for in it (None: nobody yet)."""

    term: int
    voted_for: str | None


Record = Entry | Truncation | Vote


class Durable(Struct):
    """What a storage gives back at start: the newest vote and the entries in order."""

    vote: Vote
    entries: list[Entry]


NOTHING = Durable(Vote(0, None), [])
