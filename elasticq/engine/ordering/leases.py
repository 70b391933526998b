"""Leases: messages that a reader takes under numbered receives, and that are all held, committed or lost together.

The ReceiveRequestAttemptId ``NAME/BATCH/PARTITION/CALL`` makes a receive one of the lease (queue, NAME, BATCH,
PARTITION): the same id answers the same messages as long as the lease lives, an empty answer seals it, all its
messages share one deadline, and once it is over no id of it is ever answered with messages again. The handles
``lease:NAME/BATCH/`` and ``lease:NAME/BATCH/PARTITION`` commit, renew and give back. What makes a source of these
that loses nothing when it is killed: docs/leases.md.
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

_NUMBER: Final = "(0|[1-9][0-9]{0,14})"  # exact in any client's language; the longest id has AWS's 128 characters
_BATCH: Final = f"([A-Za-z0-9_.-]{{1,80}})/{_NUMBER}/"
_ATTEMPT: Final = re.compile(f"{_BATCH}{_NUMBER}/{_NUMBER}")
_HANDLE: Final = re.compile(f"lease:{_BATCH}(?:{_NUMBER})?")
HANDLE_PREFIX: Final = "lease:"
ENDED_AT_ONCE_MAX: Final = 1_000  # leases whose end one command writes down
_NEVER_MS: Final = 1 << 62

Key = tuple[int, str, int, int]
"""Queue id, name, batch, partition."""
Batch = tuple[int, str, int]


class Attempt(Struct, frozen=True, gc=False):
    """What a leased receive's ReceiveRequestAttemptId says."""

    name: str
    batch: int
    partition: int
    call: int


class Handle(Struct, frozen=True, gc=False):
    """What a lease's handle says; ``partition`` None: all leases of the batch."""

    name: str
    batch: int
    partition: int | None


def read_attempt(attempt_id: str | None) -> Attempt | None:
    """None for an id that is not of a lease's form."""
    found = _ATTEMPT.fullmatch(attempt_id) if attempt_id else None
    return Attempt(found[1], int(found[2]), int(found[3]), int(found[4])) if found else None


def read_lease_handle(handle: str | None) -> Handle | None:
    """None for a handle that is not of a lease's form."""
    found = _HANDLE.fullmatch(handle) if handle and handle.startswith(HANDLE_PREFIX) else None
    return Handle(found[1], int(found[2]), None if found[3] is None else int(found[3])) if found else None


class Lease:
    """One lease. calls: what each numbered receive was answered, without messages for the one that sealed it.

    ended_ms: 0 while it lives, as far as was written down: past its deadline it is over all the same.
    messages: how many its calls got, kept after its end, when the calls are not.
    """

    __slots__ = ("calls", "deadline_ms", "ended_ms", "groups", "messages", "opened_ms", "state")

    def __init__(self, opened_ms: int, deadline_ms: int) -> None:
        self.opened_ms = opened_ms
        self.deadline_ms = deadline_ms
        self.ended_ms = 0
        self.state = LEASE_OPEN
        self.messages = 0
        self.calls: dict[int, LeaseCalled] = {}
        self.groups: LeaseGroups | None = None  # where groups wait for their messages in flight

    @property
    def is_sealed(self) -> bool:
        return self.state == LEASE_SEALED

    def lives(self, grace: Grace, now_ms: int) -> bool:
        """Not ended, and its deadline has not passed: the same moment at which its messages become visible."""
        return not self.ended_ms and now_ms < grace.until_ms(self.deadline_ms)

    def as_set(self, key: Key, *, deadline_ms: int = 0, ended_ms: int = 0, state: str = "") -> LeaseSet:
        """All but its calls, with what is given instead of what is."""
        return LeaseSet(
            *key,
            self.opened_ms,
            deadline_ms or self.deadline_ms,
            state or self.state,
            ended_ms or self.ended_ms,
            self.messages,
        )


class Leases:
    """All leases of a member; only ``apply`` writes here.

    living: those whose end is not written down; ended: the others, oldest end first.
    """

    __slots__ = ("_batches", "_of_queue", "_over_from_ms", "ended", "living")

    def __init__(self) -> None:
        self.living: dict[Key, Lease] = {}
        self.ended: dict[Key, Lease] = {}
        self._batches: dict[Batch, dict[int, Lease]] = {}
        self._of_queue: dict[int, dict[Key, Lease]] = {}  # the living ones
        self._over_from_ms: dict[int, int] = {}  # by queue: before this none of its living leases is over

    def __len__(self) -> int:
        return len(self.living) + len(self.ended)

    def get(self, key: Key) -> Lease | None:
        return self.living.get(key) or self.ended.get(key)

    def of_batch(self, queue_id: int, handle: Handle) -> list[tuple[int, Lease]]:
        """(partition, lease) of those that the handle names, in order."""
        found = self._batches.get((queue_id, handle.name, handle.batch), {})
        if handle.partition is None:
            return sorted(found.items(), key=lambda item: item[0])
        lease = found.get(handle.partition)
        return [] if lease is None else [(handle.partition, lease)]

    def items(self) -> list[tuple[Key, Lease]]:
        return [*self.living.items(), *self.ended.items()]

    def newest(self) -> Iterator[tuple[Key, Lease]]:
        """The living ones, then those that ended last first. Not to be changed meanwhile."""
        yield from self.living.items()
        yield from reversed(self.ended.items())

    def has_living(self, queue_id: int) -> bool:
        """Some lease of the queue has no end that is written down."""
        return queue_id in self._of_queue

    def over(self, queue_id: int, grace: Grace, now_ms: int) -> list[LeaseSet]:
        """What writes down the end of leases of the queue whose time is up, up to ENDED_AT_ONCE_MAX of them.

        It goes into the entry in which others get messages of the queue, or before it. Otherwise a change of master,
        whose grace prolongs deadlines of the last moments, would bring a lease back to life of which others have
        messages by now: its reader would renew and commit what is not its own any more.
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
        """It is there from now on, among the living or the ended as it says itself."""
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
