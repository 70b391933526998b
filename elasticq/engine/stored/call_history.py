"""The history of calls: the ids of clients' calls, and the ids that members made, which are kept for a shorter time.

A member that forwards a call without an id makes one, so that it can forward the call twice. Only this member can
repeat the call, and it stops when it answers its client. The deadline of the call limits all repeats (docs/adr/0021).
So an id that a member made is needed for less than a minute. The id of an SDK is kept for five minutes.
"""

from typing import Final

from elasticq.engine.stored.invocations import KEY_BYTES, Invocations
from elasticq.engine.stored.mutations import InvocationRecorded
from elasticq.engine.stored.recorded_call import Recorded

MEMBER_WINDOW_MS: Final = 90_000
"""At least the 55 s for which a call may be forwarded, plus what tests may advance the clock by meanwhile."""
MEMBER_GENERATION_MS: Final = 30_000
_COUNTER_BYTES: Final = 5
_MARK: Final = b"\x9d\x1b\xe6\x5a\x07"
"""The bytes after the counter. One digest of a client's id in 10^12 has them, too, and is then kept as briefly."""
_MARK_LAST: Final = _MARK[-1]
_MARK_END: Final = _COUNTER_BYTES + len(_MARK)
_INCARNATION_BYTES: Final = KEY_BYTES - _MARK_END


def member_guid(counter: int, incarnation: str) -> bytes:
    """Return the id of call number ``counter`` that a node of this incarnation (hex digits) forwards without an id.

    The counter comes first, because the first bytes of an id select its bucket.
    """
    return counter.to_bytes(_COUNTER_BYTES, "little") + _MARK + bytes.fromhex(incarnation)[:_INCARNATION_BYTES]


def _is_of_member(key: bytes) -> bool:
    if key[_MARK_END - 1] != _MARK_LAST:
        return False  # nearly all ids of clients end here
    return key[_COUNTER_BYTES:_MARK_END] == _MARK


class History:
    """Two tables of rows: for clients' ids and for members' ids. The methods are those of ``Invocations``."""

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
        """Return whether no more ids can be recorded. Then senders must wait, because ids are never deleted early."""
        return self._clients.is_full(now_ms, besides=self._members.count)

    def are_details_full(self, now_ms: int) -> bool:
        """Return whether no more answers of calls with more than one message can be recorded."""
        return self._clients.are_details_full(now_ms, besides_bytes=self._members.details_bytes)

    def is_any_over(self, now_ms: int) -> bool:
        """Return whether ``forget`` would release memory. A generation with only the sweeper's own row does
        not count.
        """
        return self._clients.is_any_over(now_ms) or self._members.is_any_over(now_ms)

    def forget(self, now_ms: int) -> None:
        """Delete the generations that are over at the time ``now_ms`` of an entry."""
        self._clients.forget(now_ms)
        self._members.forget(now_ms)

    def get(self, key: bytes, now_ms: int) -> Recorded | None:
        """Return the row of ``key`` if it is younger than its window, else None."""
        return self._table(key).get(key, now_ms)

    def first_sent(self, key: bytes, now_ms: int, too_many: str) -> int | None:
        """Return the sequence of the message that has the id; None if the id is new.

        Raise RequestThrottled if the id is new and the table is full.
        """
        return self._table(key).first_sent(key, now_ms, too_many)

    def put(self, key: bytes, row: Recorded | InvocationRecorded, now_ms: int | None = None) -> bool:
        """Add a row. Return False if nothing was written: the row exists, or is older than the window (a
        replayed log).
        """
        return self._table(key).put(key, row, now_ms)

    def remove(self, key: bytes) -> Recorded | None:
        """Remove and return the newest row of ``key``: its entry was rolled back, or its receive was undone."""
        return self._table(key).remove(key)

    def rows(self, now_ms: int) -> list[tuple[bytes, Recorded]]:
        """Return all rows younger than their window at ``now_ms``, sorted by key: for snapshots."""
        return sorted(self._clients.rows(now_ms) + self._members.rows(now_ms), key=lambda item: item[0])
