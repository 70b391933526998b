"""The history of calls: the ids of clients' calls, and apart from them the ids that members made, which go sooner.

A member that passes on a call without an id makes one, so that the call can be passed on twice. Nobody but that member
can repeat the call, and it does so until it answers its client; the last copy that it sent is executed within that
time, too, as its deadline goes with it (docs/adr/0021). So such an id is needed for less than a minute, where that of
an SDK is kept for five.
"""

from typing import Final

from elasticq.engine.stored.invocations import KEY_BYTES, Invocations
from elasticq.engine.stored.mutations import InvocationRecorded
from elasticq.engine.stored.recorded_call import Recorded

MEMBER_WINDOW_MS: Final = 90_000
"""At least the 55 s for which a call may be passed on, and what tests may advance the clock by meanwhile."""
MEMBER_GENERATION_MS: Final = 30_000
_COUNTER_BYTES: Final = 5
_MARK: Final = b"\x9d\x1b\xe6\x5a\x07"
"""Stands behind the counter. One digest of a client's id in 10^12 has it there, too, and is then kept as briefly."""
_MARK_LAST: Final = _MARK[-1]
_MARK_END: Final = _COUNTER_BYTES + len(_MARK)
_INCARNATION_BYTES: Final = KEY_BYTES - _MARK_END


def member_guid(counter: int, incarnation: str) -> bytes:
    """The id of the call number ``counter`` that a node of this incarnation (hex digits) passes on without an id.

    The counter is first, as rows find their bucket by the first bytes.
    """
    return counter.to_bytes(_COUNTER_BYTES, "little") + _MARK + bytes.fromhex(incarnation)[:_INCARNATION_BYTES]


def _is_of_member(key: bytes) -> bool:
    if key[_MARK_END - 1] != _MARK_LAST:
        return False  # nearly all ids of clients end here
    return key[_COUNTER_BYTES:_MARK_END] == _MARK


class History:
    """Two tables of rows, of clients' ids and of members'; the methods are those of ``Invocations``."""

    __slots__ = ("_clients", "_members")

    def __init__(self) -> None:
        self._clients = Invocations()
        self._members = Invocations(MEMBER_WINDOW_MS, MEMBER_GENERATION_MS)

    @property
    def tables(self) -> tuple[Invocations, Invocations]:
        """The ids of clients, and those of members."""
        return self._clients, self._members

    def _table(self, key: bytes) -> Invocations:
        return self._members if _is_of_member(key) else self._clients

    @property
    def count(self) -> int:
        return self._clients.count + self._members.count

    @property
    def details_bytes(self) -> int:
        return self._clients.details_bytes + self._members.details_bytes

    def is_full(self, now_ms: int) -> bool:
        """Senders wait rather than ids being forgotten."""
        return self._clients.is_full(now_ms, besides=self._members.count)

    def are_details_full(self, now_ms: int) -> bool:
        """There is no room for what calls of more than one message answered."""
        return self._clients.are_details_full(now_ms, besides_bytes=self._members.details_bytes)

    def is_any_over(self, now_ms: int) -> bool:
        """Whether ``forget`` would give memory back; not of a row of the sweeper alone."""
        return self._clients.is_any_over(now_ms) or self._members.is_any_over(now_ms)

    def forget(self, now_ms: int) -> None:
        """Drop what is over at this time of an entry."""
        self._clients.forget(now_ms)
        self._members.forget(now_ms)

    def get(self, key: bytes, now_ms: int) -> Recorded | None:
        """The row of ``key`` if it is younger than its window."""
        return self._table(key).get(key, now_ms)

    def first_sent(self, key: bytes, now_ms: int, too_many: str) -> int | None:
        """The sequence of the message that holds the id. Raises RequestThrottled where no more can be remembered."""
        return self._table(key).first_sent(key, now_ms, too_many)

    def put(self, key: bytes, row: Recorded | InvocationRecorded, now_ms: int | None = None) -> bool:
        """False if nothing was written: the row was there, or is older than the window (a log applied again)."""
        return self._table(key).put(key, row, now_ms)

    def remove(self, key: bytes) -> Recorded | None:
        """Take the newest row of ``key`` back: its entry was rolled back, or its receive reached nobody."""
        return self._table(key).remove(key)

    def rows(self, now_ms: int) -> list[tuple[bytes, Recorded]]:
        """All rows live at ``now_ms``, sorted by key: for snapshots."""
        return sorted(self._clients.rows(now_ms) + self._members.rows(now_ms), key=lambda item: item[0])
