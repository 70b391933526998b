"""Pages: which messages of a queue are on disk, in about two bytes of memory for each message.

A page is a run of messages of one queue that were written in one batch. Its contents and the delays of its messages
never change. Two bit masks, relative to its first sequence, mark the living messages and the untouched ones. An
untouched message is living, was never received, and was never rescheduled. A page is removed when no message in it
lives.

``Directory`` keeps the pages of one queue in the order of their sequences. They are made in this order, as sequences
only grow.
"""

from bisect import bisect_right
from struct import Struct as Layout
from typing import Final
from zlib import crc32

import msgspec
from msgspec import Struct

from elasticq.engine.stored.mutations import MessageStored
from elasticq.storage.rows.schema import PAGE_BYTES

PAGE_MESSAGES_MAX: Final = 128
PAGE_SPAN_MAX: Final = 256  # sequences, including gaps
PAGE_WEIGHT_MAX: Final = 65_536  # sum over the messages of a page; a page of one message may have more
MASK_BYTES: Final = PAGE_SPAN_MAX // 8

Delivery = tuple[int, int, int, int, int]
"""The state of a touched message: visible_at_ms, delivery number, receive_count, first_received_ms, received_ms."""
Update = tuple[int] | tuple[int, int, int, int]
"""A change of a touched row that is only on disk, not in memory.

It is (visible_at_ms,), or for a returned receive (visible_at_ms, receive_count, first_received_ms, delivery number).
The second form has an effect only if the row has this delivery number.
"""
Change = Delivery | list[Update] | None
"""The change of a touched row since the last batch: its new state, updates in order, or None if it is removed."""

_HEADER: Final = Layout("<qqqqq")
_CONTENTS: Final = Layout("<qq")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[MessageStored]).decode


class Page:
    """One page. live, untouched: the bit masks. disk_pages: about how many SQLite pages its contents fill.

    is_stale: the header on the disk is out of date. changes: changes of touched rows since the last batch, by sequence.
    has_groups, has_priorities, has_delays: whether the disk may have rows with the groups, priorities and delays.
    moved: the priorities that were changed since the page was made, by sequence, or None. is_moved: the disk does not
    have all of them.
    """

    __slots__ = (
        "changes",
        "disk_pages",
        "first",
        "has_delays",
        "has_groups",
        "has_priorities",
        "is_moved",
        "is_stale",
        "last",
        "last_sent_ms",
        "live",
        "moved",
        "untouched",
    )

    def __init__(self, first: int, last: int, last_sent_ms: int, untouched: int, live: int, disk_pages: int) -> None:
        self.first = first
        self.last = last
        self.last_sent_ms = last_sent_ms
        self.untouched = untouched
        self.live = live
        self.disk_pages = disk_pages
        self.has_groups = self.has_priorities = True
        self.is_stale = self.is_moved = self.has_delays = False
        self.moved: dict[int, int] | None = None
        self.changes: dict[int, Change] | None = None

    def remove(self, mask: int) -> int:
        """Mark the messages of ``mask`` as gone; return how many of them lived."""
        gone = self.live & mask
        if not gone:
            return 0
        self._note_gone_rows(gone & ~self.untouched)
        self.live &= ~gone
        self.untouched &= ~gone
        self.is_stale = True
        return gone.bit_count()

    def _note_gone_rows(self, touched: int) -> None:
        if touched and self.changes is None:
            self.changes = {}
        while touched:
            low = touched & -touched
            assert self.changes is not None
            self.changes[self.first + low.bit_length() - 1] = None
            touched ^= low

    def touch(self, sequence: int, delivery: Delivery) -> None:
        """Set the delivery state of a living message."""
        if self.changes is None:
            self.changes = {}
        self.changes[sequence] = delivery
        bit = 1 << sequence - self.first
        if self.untouched & bit:
            self.untouched ^= bit
            self.is_stale = True

    def update(self, sequence: int, update: Update) -> None:
        """Change the delivery state of a touched message whose row may be only on disk."""
        if self.changes is None:
            self.changes = {}
        change = self.changes.get(sequence)
        if change is None:
            self.changes[sequence] = [update]
        elif isinstance(change, tuple):
            self.changes[sequence] = updated(change, update)
        elif len(change[-1]) == len(update) and change[-1][3:] == update[3:]:
            change[-1] = update  # an update of the same kind and delivery number replaces the older one
        else:
            change.append(update)

    def prioritise(self, sequence: int, priority: int) -> None:
        """Set the priority of a living message."""
        if self.moved is None:
            self.moved = {}
        self.moved[sequence] = priority
        self.is_moved = True

    def mask_between(self, first: int, last: int) -> int:
        """Return the mask of the sequences from ``first`` to ``last`` that are in the page's span."""
        low = max(first, self.first) - self.first
        high = min(last, self.last) - self.first
        return (1 << high + 1) - (1 << low) if low <= high else 0

    def rows_on_disk_max(self) -> int:
        """Return how many rows are deleted with the page, at most. The reclaim of pages is limited by this."""
        return 1 + self.live.bit_count() - self.untouched.bit_count()

    def header(self, queue_id: int) -> tuple[int, int, int, int, int, bytes, bytes, int]:
        """Return the page's row in ``pages``."""
        untouched = self.untouched.to_bytes(MASK_BYTES, "little")
        live = untouched if self.untouched == self.live else self.live.to_bytes(MASK_BYTES, "little")
        numbers = (queue_id, self.first, self.last, self.last_sent_ms, self.disk_pages)
        return (*numbers, untouched, live, header_crc(*numbers, untouched, live))


def header_crc(
    queue_id: int, first: int, last: int, last_sent_ms: int, disk_pages: int, untouched: bytes, live: bytes
) -> int:
    return crc32(live, crc32(untouched, crc32(_HEADER.pack(queue_id, first, last, last_sent_ms, disk_pages))))


def updated(delivery: Delivery, update: Update) -> Delivery:
    """Return the delivery state after ``update``."""
    _, delivery_number, receive_count, first_received_ms, received_ms = delivery
    if len(update) == 1:
        return update[0], delivery_number, receive_count, first_received_ms, received_ms
    visible_at_ms, receive_count, first_received_ms, expected = update
    return (
        (visible_at_ms, delivery_number, receive_count, first_received_ms, received_ms)
        if delivery_number == expected
        else delivery
    )


def ranges(mask: int, first: int) -> tuple[list[int], list[int]]:
    """Return the runs of set bits as two lists: the first and the last sequence of each run."""
    if mask & mask + 1 == 0 and mask:  # one run from the first sequence on, as in most pages
        return [first], [first + mask.bit_length() - 1]
    firsts: list[int] = []
    lasts: list[int] = []
    while mask:
        at = (mask & -mask).bit_length() - 1
        run = ((mask >> at) + 1 & ~(mask >> at)).bit_length() - 1  # the number of ones from ``at`` on
        firsts.append(first + at)
        lasts.append(first + at + run - 1)
        mask &= ~((1 << at + run) - 1)
    return firsts, lasts


def sequences_of(mask: int, first: int) -> list[int]:
    """Return the sequences of the set bits."""
    return [sequence for begin, end in zip(*ranges(mask, first), strict=True) for sequence in range(begin, end + 1)]


def runs_of(sequences: list[int]) -> str:
    """Return the runs as text for people, such as "5, 7-9"."""
    runs: list[tuple[int, int]] = []
    for sequence in sorted(sequences):
        if runs and runs[-1][1] + 1 == sequence:
            runs[-1] = (runs[-1][0], sequence)
        else:
            runs.append((sequence, sequence))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def weight(message: MessageStored) -> int:
    """Return about how many bytes the message's content takes."""
    if message.attributes is None:
        return len(message.body)
    return len(message.body) + len(_encode(message.attributes))


def cut(messages: list[MessageStored]) -> list[list[MessageStored]]:
    """Divide ``messages``, of one queue and in the order of their sequences, into one run for each page."""
    weights = [len(each.body) if each.attributes is None else weight(each) for each in messages]
    runs: list[list[MessageStored]] = []
    begin = 0
    while begin < len(messages):
        run = messages[begin : begin + PAGE_MESSAGES_MAX]
        weighs = sum(weights[begin : begin + PAGE_MESSAGES_MAX])
        if weighs > PAGE_WEIGHT_MAX or run[-1].sequence - run[0].sequence >= PAGE_SPAN_MAX:
            del run[_length(run, weights, begin) :]
        runs.append(run)
        begin += len(run)
    return runs


def _length(run: list[MessageStored], weights: list[int], begin: int) -> int:
    """Return how many messages of ``run`` fit into one page, at least 1. Their weights begin at ``weights[begin]``."""
    room, sequence_max = PAGE_WEIGHT_MAX - weights[begin], run[0].sequence + PAGE_SPAN_MAX
    for at in range(1, len(run)):
        room -= weights[begin + at]
        if room < 0 or run[at].sequence >= sequence_max:
            return at
    return len(run)


def make_page(run: list[MessageStored], touched: dict[int, Delivery]) -> tuple[Page, bytes]:
    """Return the page of a run, and its contents as bytes."""
    contents = _encode(run)
    first, last = run[0].sequence, run[-1].sequence
    if last - first == len(run) - 1:
        live = (1 << len(run)) - 1
    else:
        live = 0
        for message in run:
            live |= 1 << message.sequence - first
    untouched = live
    if touched:
        for message in run:
            if message.sequence in touched:
                untouched ^= 1 << message.sequence - first
    last_sent_ms = max([message.sent_ms for message in run])
    return Page(first, last, last_sent_ms, untouched, live, 1 + len(contents) // PAGE_BYTES), contents


def contents_crc(queue_id: int, first: int, contents: bytes) -> int:
    return crc32(contents, crc32(_CONTENTS.pack(queue_id, first)))


class PageGroups(Struct, array_like=True, gc=False):
    """The groups of a page's messages. places: sequences relative to the first; groups: indexes of ``names``."""

    names: list[str]
    places: list[int]
    groups: list[int]


_decode_groups = msgspec.msgpack.Decoder(PageGroups).decode


def encode_groups(run: list[MessageStored], *, needs_groups: bool) -> bytes:
    """Return the groups of a page's messages as bytes; empty if none has one. ``needs_groups``: each has one."""
    grouped = run if needs_groups else [message for message in run if message.group_id is not None]
    if not grouped:
        return b""
    numbers: dict[str, int] = {}
    groups = [numbers.setdefault(message.group_id or "", len(numbers)) for message in grouped]
    first = run[0].sequence
    return _encode(PageGroups(list(numbers), [message.sequence - first for message in grouped], groups))


def living_groups(page: Page, packed: bytes) -> tuple[list[str], list[int], list[int]]:
    """Return (names, sequences, indexes of names) of the living messages of a page.

    Raise msgspec.DecodeError or ValueError if ``packed`` is damaged.
    """
    known = _decode_groups(packed)
    living = [pair for pair in zip(known.places, known.groups, strict=True) if page.live >> pair[0] & 1]
    return known.names, [page.first + place for place, _ in living], [group for _, group in living]


class PagePriorities(Struct, array_like=True, gc=False):
    """Priorities of a page's messages. places: sequences relative to the first; empty if all have the one priority."""

    places: list[int]
    priorities: list[int]


_decode_priorities = msgspec.msgpack.Decoder(PagePriorities).decode


def encode_priorities(first: int, priorities: dict[int, int], *, are_all: bool) -> bytes:
    """Return priorities, given by sequence, as bytes. are_all: they are those of all messages of the page."""
    values = list(priorities.values())
    if are_all and values.count(values[0]) == len(values):
        return _encode(PagePriorities([], values[:1]))
    return _encode(PagePriorities([sequence - first for sequence in priorities], values))


def living_priorities(page: Page, packed: bytes) -> dict[int, int]:
    """Return the priorities in ``packed``, by sequence, for the living messages of a page.

    Raise msgspec.DecodeError or ValueError if ``packed`` is damaged.
    """
    known = _decode_priorities(packed)
    if not known.places:
        (priority,) = known.priorities
        return dict.fromkeys(sequences_of(page.live, page.first), priority)
    pairs = zip(known.places, known.priorities, strict=True)
    return {page.first + place: priority for place, priority in pairs if page.live >> place & 1}


class PageDelays(Struct, array_like=True, gc=False):
    """The times at which delayed messages of a page become visible. places: sequences relative to the first.

    Empty places: all messages of the page are delayed, and their sequences have no gaps.
    """

    places: list[int]
    times_ms: list[int]


_decode_delays = msgspec.msgpack.Decoder(PageDelays).decode


def encode_delays(run: list[MessageStored]) -> bytes:
    """Return the times of a page's delayed messages as bytes; empty if none is delayed."""
    first = run[0].sequence
    delayed = [message for message in run if message.visible_at_ms]
    if not delayed:
        return b""
    is_each = len(delayed) == run[-1].sequence - first + 1
    places = [] if is_each else [message.sequence - first for message in delayed]
    return _encode(PageDelays(places, [message.visible_at_ms for message in delayed]))


def living_delays(page: Page, packed: bytes) -> tuple[int, list[int], list[int]]:
    """Return (mask, sequences, times in ms) of the page's untouched messages that were sent with a delay.

    Raise msgspec.DecodeError or ValueError if ``packed`` is damaged.
    """
    known = _decode_delays(packed)
    first, untouched = page.first, page.untouched
    count = len(known.times_ms)
    if not known.places and untouched == (1 << count) - 1:
        return untouched, list(range(first, first + count)), known.times_ms
    pairs = zip(known.places or range(count), known.times_ms, strict=True)
    living = [pair for pair in pairs if untouched >> pair[0] & 1]
    mask = sum([1 << place for place, _ in living])
    return mask, [first + place for place, _ in living], [time_ms for _, time_ms in living]


def decode_contents(contents: bytes) -> list[MessageStored]:
    """Return the messages of a page's contents. Raise msgspec.DecodeError if they are damaged."""
    return _decode(contents)


class Directory:
    """The pages of one queue in order. Each has at least one living message."""

    __slots__ = ("_firsts", "_pages")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._pages: list[Page] = []

    def __len__(self) -> int:
        return len(self._pages)

    @property
    def last(self) -> int:
        """Return the last sequence of the newest page; -1 if there is none."""
        return self._pages[-1].last if self._pages else -1

    @property
    def pages(self) -> list[Page]:
        """Return the pages in order. The caller must not change the list."""
        return self._pages

    def add(self, page: Page) -> None:
        assert page.first > self.last, "pages of a queue grow"
        self._firsts.append(page.first)
        self._pages.append(page)

    def find(self, sequence: int) -> Page | None:
        """Return the page whose span contains ``sequence``; None if there is none."""
        at = bisect_right(self._firsts, sequence) - 1
        if at < 0:
            return None
        page = self._pages[at]
        return page if sequence <= page.last else None

    def page_at(self, first: int) -> Page | None:
        page = self.find(first)
        return page if page is not None and page.first == first else None

    def between(self, first: int, last: int) -> list[Page]:
        """Return the pages that may hold messages from ``first`` to ``last``."""
        begin = max(bisect_right(self._firsts, first) - 1, 0)
        return self._pages[begin : bisect_right(self._firsts, last)]

    def discard(self, page: Page) -> None:
        at = bisect_right(self._firsts, page.first) - 1
        assert self._pages[at] is page
        del self._firsts[at], self._pages[at]

    def take_below(self, watermark: int) -> list[Page]:
        """Remove and return the pages whose last sequence is below ``watermark``."""
        end = bisect_right(self._firsts, watermark - 1)
        if end and self._pages[end - 1].last >= watermark:
            end -= 1
        taken = self._pages[:end]
        del self._firsts[:end], self._pages[:end]
        return taken
