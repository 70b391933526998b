"""The message contents that a member keeps in memory, within three bounds in bytes.

It fetches others before they are needed.

    pinned   not in the rows on disk yet: must stay; at its bound sends wait
    kept     of queues that fit into memory completely, as far as the bound allows
    fetched  read from disk for delivery, first in, first out

New messages of a deep queue leave memory as soon as the rows hold them. While messages are delivered, the contents of
the next ones are fetched.
"""

from collections import deque
from typing import Final

from elasticq.engine import residency
from elasticq.engine.ordering.contract import AHEAD_MAX
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.node.outputs import Committed, Fetch

PINNED_BYTES_MAX: Final = 64 * 1_048_576
FETCHED_BYTES_MAX: Final = 32 * 1_048_576
COLD_MAX: Final = 2 * AHEAD_MAX  # a queue with more contents on disk than this counts as deep


class ContentCache:
    """The contents in memory: it requests fetches and frees what the rows hold.

    It changes only the contents in ``state``.
    """

    def __init__(self, state: State, fetches: list[Fetch], kept_bytes_max: int) -> None:
        self._state = state
        self.fetches = fetches
        self._kept_bytes_max = kept_bytes_max
        self._pinned: deque[tuple[Committed, int]] = deque()
        self.pinned_bytes = 0
        self._fetched: deque[tuple[int, int, int]] = deque()  # (queue id, sequence, bytes)
        self._fetched_bytes = 0
        self._fetching: dict[int, Fetch] = {}  # queue id -> its only fetch
        self._prefetch_at: dict[int, int] = {}
        self._next_ticket = 0

    @property
    def is_full(self) -> bool:
        """Return whether sends must wait until the rows on disk hold more of the pinned contents."""
        return self.pinned_bytes > PINNED_BYTES_MAX

    def pin(self, committed: Committed) -> None:
        """Keep the contents of the entry in memory until the rows hold them."""
        size_bytes = 0
        for mutation in committed.mutations:
            if type(mutation) is m.MessageStored:
                size_bytes += residency.content_bytes(mutation)
        self.pinned_bytes += size_bytes
        self._pinned.append((committed, size_bytes))

    def stored(self, index: int) -> None:
        """Unpin the contents up to log index ``index``, because the rows hold them.

        Contents of deep queues, and contents above the bound, leave memory.
        """
        pinned = self._pinned
        while pinned and pinned[0][0].index <= index:
            committed, size_bytes = pinned.popleft()
            self.pinned_bytes -= size_bytes
            if size_bytes:
                self._unpin(committed.mutations)

    def _unpin(self, mutations: list[m.Mutation]) -> None:
        state = self._state
        queue: Queue | None = None
        queue_id, is_deep = 0, False  # a deep queue stays deep while its contents leave memory
        for mutation in mutations:
            if type(mutation) is m.MessageStored:
                if mutation.queue_id != queue_id:
                    queue_id = mutation.queue_id
                    queue, is_deep = state.queues.get(queue_id), False
                if queue is None:
                    continue
                is_deep = is_deep or _is_deep(queue)
                if is_deep or state.contents_bytes > self._kept_bytes_max:
                    residency.drop(state, queue, mutation.sequence)

    def want(self, queue_id: int, sequences: list[int]) -> None:
        """Fetch contents that a call waits for, unless a fetch for this queue is in progress."""
        if queue_id not in self._fetching:
            self._next_ticket += 1
            fetch = self._fetching[queue_id] = Fetch(self._next_ticket, queue_id, sequences)
            self.fetches.append(fetch)

    def taken(self, queue: Queue, sequence: int) -> None:
        """Fetch the next contents of a queue from which a receive took messages up to ``sequence``."""
        if not queue.is_cold or queue.id in self._fetching:
            return
        order = queue.order
        if order.progress(sequence) < self._prefetch_at.get(queue.id, 0):
            return
        ahead = order.missing_ahead()
        self._prefetch_at[queue.id] = order.next_prefetch_at(ahead, sequence)
        if ahead:
            self.want(queue.id, ahead)

    def fetched(self, fetch: Fetch, contents: list[m.MessageStored]) -> None:
        """Put fetched contents into memory. The caller then serves the calls that wait for them, and calls ``trim``."""
        state = self._state
        if self._fetching.get(fetch.queue_id) is fetch:
            del self._fetching[fetch.queue_id]
        for sequence in residency.admit(state, fetch.queue_id, contents):
            weight = residency.content_bytes(state.queues[fetch.queue_id].contents[sequence])
            self._fetched.append((fetch.queue_id, sequence, weight))
            self._fetched_bytes += weight
        queue = state.queues.get(fetch.queue_id)
        if queue is None:
            self._prefetch_at.pop(fetch.queue_id, None)
            return
        first = next((sequence for sequence in fetch.sequences if queue.row(sequence) is not None), None)
        assert first is None or first in queue.contents, "the rows on disk have lost a content"

    def trim(self) -> None:
        """Evict the contents that were fetched first until the rest is within the bound."""
        while self._fetched_bytes > FETCHED_BYTES_MAX:
            queue_id, sequence, weight = self._fetched.popleft()
            self._fetched_bytes -= weight
            residency.evict(self._state, queue_id, sequence)


def _is_deep(queue: Queue) -> bool:
    return queue.count - len(queue.contents) > COLD_MAX
