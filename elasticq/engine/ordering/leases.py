"""Leases: messages that a client receives in numbered calls, and then holds, commits or loses together.

The ReceiveRequestAttemptId ``NAME/BATCH/PARTITION/CALL`` makes a receive part of the lease (queue, NAME, BATCH,
PARTITION).

- A call with the same id returns the same messages while the lease is alive.
- An empty answer seals the lease.
- All messages of a lease have the same deadline.
- After the end of the lease, no call with one of its ids returns messages.

The handles ``lease:NAME/BATCH/`` and ``lease:NAME/BATCH/PARTITION`` commit, renew and return leases. docs/leases.md
describes how to build a source on them that loses nothing when it is killed.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from elasticq.engine.ordering.lease_groups import LeaseGroups
from elasticq.engine.stored.delivery_rows import Grace
from elasticq.engine.stored.mutations import (
    LEASE_EXPIRED,
    LEASE_OPEN,
    LEASE_SEALED,
    LeaseCalled,
    LeaseForgotten,
    LeaseSet,
)

_NUMBER: Final = "(0|[1-9][0-9]{0,14})"  # exact in JavaScript, too; the longest id has 128 characters, AWS's limit
_BATCH: Final = f"([A-Za-z0-9_.-]{{1,80}})/{_NUMBER}/"
_ATTEMPT: Final = re.compile(f"{_BATCH}{_NUMBER}/{_NUMBER}")
_HANDLE: Final = re.compile(f"lease:{_BATCH}(?:{_NUMBER})?")
HANDLE_PREFIX: Final = "lease:"
ENDED_AT_ONCE_MAX: Final = 1_000  # leases whose end one command stores
_NEVER_MS: Final = 1 << 62

Key = tuple[int, str, int, int]
"""(queue id, name, batch, partition)."""
Batch = tuple[int, str, int]


class Attempt(Struct, frozen=True, gc=False):
    """The parts of a leased receive's ReceiveRequestAttemptId."""

    name: str
    batch: int
    partition: int
    call: int


class Handle(Struct, frozen=True, gc=False):
    """The parts of a lease's handle. ``partition`` None: all leases of the batch."""

    name: str
    batch: int
    partition: int | None


def read_attempt(attempt_id: str | None) -> Attempt | None:
    """Return the parts of the id; None if it is not one of a lease."""
    found = _ATTEMPT.fullmatch(attempt_id) if attempt_id else None
    return Attempt(found[1], int(found[2]), int(found[3]), int(found[4])) if found else None


def read_lease_handle(handle: str | None) -> Handle | None:
    """Return the parts of the handle; None if it is not one of a lease."""
    found = _HANDLE.fullmatch(handle) if handle and handle.startswith(HANDLE_PREFIX) else None
    return Handle(found[1], int(found[2]), None if found[3] is None else int(found[3])) if found else None


class Lease:
    """One lease.

    - calls: The stored answer of each numbered receive. The one that sealed the lease has no messages.
    - ended_ms: When the end was stored; 0 before. A lease whose deadline has passed is over even if this is 0.
    - messages: The number of messages received. It stays after the end, when the calls are deleted.
    """

    __slots__ = ("calls", "deadline_ms", "ended_ms", "groups", "messages", "opened_ms", "state")

    def __init__(self, opened_ms: int, deadline_ms: int) -> None:
        self.opened_ms = opened_ms
        self.deadline_ms = deadline_ms
        self.ended_ms = 0
        self.state = LEASE_OPEN
        self.messages = 0
        self.calls: dict[int, LeaseCalled] = {}
        self.groups: LeaseGroups | None = None  # only for kinds with ``blocks_groups``

    @property
    def is_sealed(self) -> bool:
        return self.state == LEASE_SEALED

    def lives(self, grace: Grace, now_ms: int) -> bool:
        """Return whether the lease has not ended and its deadline has not passed.

        Its messages become visible at the same moment at which this changes.
        """
        return not self.ended_ms and now_ms < grace.until_ms(self.deadline_ms)

    def as_set(self, key: Key, *, deadline_ms: int = 0, ended_ms: int = 0, state: str = "") -> LeaseSet:
        """Return this lease, without its calls, as a LeaseSet with the given fields replaced."""
        return LeaseSet(
            *key,
            self.opened_ms,
            deadline_ms or self.deadline_ms,
            state or self.state,
            ended_ms or self.ended_ms,
            self.messages,
        )


class Leases:
    """All leases of a member. Only ``apply`` writes here.

    - living: The leases without a stored end.
    - ended: The other leases, oldest end first.
    """

    __slots__ = ("_batches", "_of_queue", "_over_from_ms", "ended", "living")

    def __init__(self) -> None:
        self.living: dict[Key, Lease] = {}
        self.ended: dict[Key, Lease] = {}
        self._batches: dict[Batch, dict[int, Lease]] = {}
        self._of_queue: dict[int, dict[Key, Lease]] = {}  # only living leases
        self._over_from_ms: dict[int, int] = {}  # by queue: no living lease of it is over before this time

    def __len__(self) -> int:
        return len(self.living) + len(self.ended)

    def get(self, key: Key) -> Lease | None:
        return self.living.get(key) or self.ended.get(key)

    def of_batch(self, queue_id: int, handle: Handle) -> list[tuple[int, Lease]]:
        """Return the leases that the handle names as (partition, lease), by partition."""
        found = self._batches.get((queue_id, handle.name, handle.batch), {})
        if handle.partition is None:
            return sorted(found.items(), key=lambda item: item[0])
        lease = found.get(handle.partition)
        return [] if lease is None else [(handle.partition, lease)]

    def items(self) -> list[tuple[Key, Lease]]:
        return [*self.living.items(), *self.ended.items()]

    def newest(self) -> Iterator[tuple[Key, Lease]]:
        """Yield the living leases, then the ended ones, newest end first. Nothing may change during the iteration."""
        yield from self.living.items()
        yield from reversed(self.ended.items())

    def has_living(self, queue_id: int) -> bool:
        """Return whether a lease of the queue has no stored end."""
        return queue_id in self._of_queue

    def expirations(self, queue_id: int, grace: Grace, now_ms: int) -> list[LeaseSet]:
        """Return the mutations that store the end of expired leases of the queue, ENDED_AT_ONCE_MAX at most.

        They must be in the entry that hands out messages of the queue, or before it. Otherwise a change of master could
        revive a lease, because the grace prolongs recent deadlines. Its reader would renew and commit messages that
        others received.
        """
        if now_ms < self._over_from_ms.get(queue_id, now_ms + 1):
            return []
        found: list[LeaseSet] = []
        over_from_ms = _NEVER_MS
        for key, lease in self._of_queue.get(queue_id, {}).items():
            if lease.lives(grace, now_ms):
                over_from_ms = min(over_from_ms, lease.deadline_ms)
            elif len(found) < ENDED_AT_ONCE_MAX:
                found.append(lease.as_set(key, ended_ms=now_ms, state=LEASE_EXPIRED))
        if not found:
            self._over_from_ms[queue_id] = over_from_ms
        return found

    def put(self, key: Key, lease: Lease) -> None:
        """Store the lease among the living or the ended ones, depending on its ``ended_ms``."""
        self._take_out(key)
        self._batches.setdefault(key[:3], {})[key[3]] = lease
        if lease.ended_ms:
            self.ended[key] = lease
            return
        self.living[key] = lease
        queue_id = key[0]
        self._of_queue.setdefault(queue_id, {})[key] = lease
        self._over_from_ms[queue_id] = min(lease.deadline_ms, self._over_from_ms.get(queue_id, lease.deadline_ms))

    def _take_out(self, key: Key) -> None:
        self.ended.pop(key, None)
        if self.living.pop(key, None) is not None:
            of_queue = self._of_queue[key[0]]
            del of_queue[key]
            if not of_queue:
                del self._of_queue[key[0]], self._over_from_ms[key[0]]

    def remove(self, key: Key) -> None:
        self._take_out(key)
        partitions = self._batches[key[:3]]
        del partitions[key[3]]
        if not partitions:
            del self._batches[key[:3]]


def key_of(mutation: LeaseCalled | LeaseSet | LeaseForgotten) -> Key:
    return mutation.queue_id, mutation.name, mutation.batch, mutation.partition
