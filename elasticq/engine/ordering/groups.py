"""The message groups of a queue: the messages of each group, in order, and the group of each message.

Every message is in here until it is deleted, even if its content is on disk only. So it costs only about 12 bytes:
eight in its group, four in the table of group numbers. A group costs about 350 bytes and is deleted with its last
message.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from elasticq.engine.ordering.delays import enter, sorted_again
from elasticq.engine.stored.delivery_rows import Row

CHUNK_BITS: Final = 8
_OFFSETS: Final = (1 << CHUNK_BITS) - 1
_TRIMMED_FROM: Final = 32
_ROOMY_FROM: Final = 256  # in a shorter group it is cheap to move all messages
_ROOM_SHARE: Final = 16
_SPARE_MAX: Final = 1_024  # empty groups that are kept for reuse


class Members:
    """Messages of one group in the order of their sequences.

    - first: The oldest message; 0 if there is none.
    - changes: A counter. It grows with each change after which another lease may hold messages before the newest one
      received.
    """

    __slots__ = ("_begin", "_sequences", "changes", "first", "name", "number")

    def __init__(self, name: str, number: int) -> None:
        self.changes = 0
        self.name = name
        self.number = number
        self.first = 0
        self._sequences = array("Q")
        self._begin = 0  # messages before it are gone; trimmed in bulk, so the front costs O(1)

    def reset(self, name: str) -> None:
        """Reuse this object as the group ``name``, without messages."""
        self.name = name
        self.first = self._begin = 0
        del self._sequences[:]

    def __iter__(self) -> Iterator[int]:
        """Yield the messages, oldest first. They must not change during the iteration."""
        sequences = self._sequences
        for at in range(self._begin, len(sequences)):
            yield sequences[at]

    def after(self, sequence: int) -> Iterator[int]:
        """Yield the messages after ``sequence``, oldest first. They must not change during the iteration."""
        sequences = self._sequences
        for at in range(bisect_right(sequences, sequence, self._begin), len(sequences)):
            yield sequences[at]

    def add(self, sequence: int) -> None:
        """Add a message at the end, or at its place if a roll-back restores it."""
        sequences = self._sequences
        if not self.first or sequence > sequences[-1]:
            sequences.append(sequence)
        else:
            self.changes += 1
            self._insert(sequence)
        if not self.first or sequence < self.first:
            self.first = sequence

    def _insert(self, sequence: int) -> None:
        """Insert a message at its place. Near the front, move the few messages before it, not the backlog after it."""
        sequences, begin = self._sequences, self._begin
        at = bisect_left(sequences, sequence, begin)
        if at - begin > len(sequences) - at or len(sequences) - begin < _ROOMY_FROM:
            sequences.insert(at, sequence)
            return
        if not begin:  # free places for the next ones, too
            begin = len(sequences) // _ROOM_SHARE
            sequences[0:0] = array("Q", bytes(8 * begin))
            at += begin
        sequences[begin - 1 : at - 1] = sequences[begin:at]
        sequences[at - 1] = sequence
        self._begin = begin - 1

    def remove(self, sequence: int) -> bool:
        """Remove a message. Return whether it was the only one; then call ``reset`` before any other ``add``.

        A message is usually near the front, so the few messages before it are moved, not the backlog after it.
        """
        sequences, begin = self._sequences, self._begin
        if self.first == sequence and begin + 1 == len(sequences):
            self.first = 0
            return True
        if self.first != sequence:
            at = bisect_left(sequences, sequence, begin)
            assert sequences[at] == sequence, "a message is removed once"
            if at - begin > len(sequences) - at:
                del sequences[at]
                return False
            sequences[begin + 1 : at + 1] = sequences[begin:at]
        begin += 1
        if begin > _TRIMMED_FROM and begin * 2 > len(sequences):
            del sequences[:begin]
            begin = 0
        self._begin = begin
        self.first = sequences[begin]
        return False


class Group(Members):
    """One group of a FIFO queue with all its messages.

    - received_ms: The time of the newest receive of one of its messages; 0 if unknown.
    - listed: Its first message while the group is in line, else 0.
    """

    __slots__ = ("listed", "received_ms")

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.received_ms = 0
        self.listed = 0

    def reset(self, name: str) -> None:
        self.name = name
        self.first = self._begin = self.received_ms = self.listed = 0
        del self._sequences[:]

    def enter(self, sequence: int) -> None:
        self.add(sequence)

    def leave(self, sequence: int) -> bool:
        return self.remove(sequence)


class Counted(Members):
    """A group that lists only some of its messages as members. ``count`` is the number of all its messages."""

    __slots__ = ("count",)

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.count = 0

    def enter(self, sequence: int) -> None:
        """Count a message in. ``add`` or ``put_back`` may then list it."""
        self.count += 1

    def leave(self, sequence: int) -> bool:
        """Count a message out. Return whether it was the last."""
        self.count -= 1
        return not self.count

    def remove(self, sequence: int) -> bool:
        """Remove a message as ``Members.remove`` does, but allow ``add`` afterwards."""
        if not super().remove(sequence):
            return False
        del self._sequences[:]
        self._begin = 0
        return True


class Tenant(Counted):
    """One group of a standard queue. Its members are the untouched messages.

    - returned: Its returned messages, with the times since which they are available; None if there are none.
    - due: Its never-received messages whose delay is over, with the times when it ended; None if there are none.
    - listed: Its next message in the line as (time since which it is available, sequence); None if it has none.
    - line: The number of the line to which ``listed`` belongs. In a later line of its order it has no place yet.
    - last_turns: The kinds of its last deliveries. See ``turns_after`` in standard.py.
    """

    __slots__ = ("_is_sorted", "due", "in_flight", "last_turns", "line", "listed", "returned")

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.in_flight = self.line = 0
        self.listed: tuple[int, int] | None = None
        self.returned: OrderedDict[int, int] | None = None
        self.due: OrderedDict[int, int] | None = None
        self.last_turns = 0
        self._is_sorted = True

    def reset(self, name: str) -> None:
        super().reset(name)
        self.last_turns = 0

    def put_back(self, sequence: int, due_ms: int, was_received: bool, rows: dict[int, Row]) -> None:
        """Store that the message is available since ``due_ms``, because its visibility timeout or its delay ended."""
        known = self.returned if was_received else self.due
        if known is None:
            known = OrderedDict()
            if was_received:
                self.returned = known
            else:
                self.due = known
        self._is_sorted &= enter(known, sequence, due_ms, rows)

    def take_back(self, sequence: int, was_received: bool) -> None:
        """Remove a message that ``put_back`` stored."""
        known = self.returned if was_received else self.due
        assert known is not None
        del known[sequence]
        if not known:
            if was_received:
                self.returned = None
            else:
                self.due = None

    def sort(self, rows: dict[int, Row]) -> None:
        """Sort the returned and the due messages by the times since which they are available."""
        if self._is_sorted:
            return
        if self.returned is not None:
            self.returned = sorted_again(self.returned, rows)
        if self.due is not None:
            self.due = sorted_again(self.due, rows)
        self._is_sorted = True


class Level(Counted):
    """The messages of one priority, whose name is that number. Its members can be handed out."""

    __slots__ = ("priority",)

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.priority = int(name)

    def reset(self, name: str) -> None:
        super().reset(name)
        self.priority = int(name)


Kind = TypeVar("Kind", Group, Tenant, Level, Counted)


class Groups(Generic[Kind]):
    """The groups of one queue by name, and the group of each message."""

    __slots__ = ("_by_name", "_by_number", "_chunks", "_free_numbers", "_kind", "_spare", "newest")

    def __init__(self, kind: Callable[[str, int], Kind]) -> None:
        self._kind: Callable[[str, int], Kind] = kind
        self._by_name: dict[str, Kind] = {}
        self._by_number: list[Kind | None] = [None]  # number 0 means no group
        self._spare: list[Kind] = []  # groups without messages, which keep their numbers
        self._free_numbers: list[int] = []
        self.newest = 0  # the largest sequence that was ever in a group
        # sequence >> CHUNK_BITS -> group numbers; the last element counts those that are not 0
        self._chunks: dict[int, array[int]] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_name.values())

    def named(self, name: str) -> Kind | None:
        return self._by_name.get(name)

    @property
    def last_number(self) -> int:
        """Return the largest number that a group may have."""
        return len(self._by_number) - 1

    def numbered(self, first: int, last: int) -> list[Kind]:
        """Return the groups with these numbers. A group keeps its number, but a later one may get it again."""
        return [group for group in self._by_number[first : last + 1] if group is not None]

    def of(self, sequence: int) -> Kind | None:
        """Return the group of a message; None if it has none."""
        chunk = self._chunks.get(sequence >> CHUNK_BITS)
        return self._by_number[chunk[sequence & _OFFSETS]] if chunk is not None else None

    def join(self, sequence: int, name: str) -> Kind:
        """Add a message, which has no group yet, to the group ``name``, and return the group."""
        group = self._by_name.get(name)
        if group is None:
            group = self._add_group(name)
        group.enter(sequence)
        chunk = self._chunks.get(sequence >> CHUNK_BITS)
        if chunk is None:
            chunk = self._add_chunk(sequence >> CHUNK_BITS)
        if sequence > self.newest:
            self.newest = sequence
        chunk[sequence & _OFFSETS] = group.number
        chunk[-1] += 1
        return group

    def _add_chunk(self, key: int) -> "array[int]":
        """Create and return a chunk. Delete the newest chunk so far if it is empty."""
        newest = self._chunks.get(self.newest >> CHUNK_BITS)
        if newest is not None and not newest[-1]:
            del self._chunks[self.newest >> CHUNK_BITS]
        chunk = self._chunks[key] = array("I", bytes(4 * (_OFFSETS + 2)))
        return chunk

    def _add_group(self, name: str) -> Kind:
        if self._spare:
            group = self._by_name[name] = self._spare.pop()
            group.reset(name)
            self._by_number[group.number] = group
            return group
        number = self._free_numbers.pop() if self._free_numbers else len(self._by_number)
        group = self._by_name[name] = self._kind(name, number)
        if number == len(self._by_number):
            self._by_number.append(group)
        else:
            self._by_number[number] = group
        return group

    def leave(self, sequence: int) -> Kind:
        """Remove a message from its group and return the group. The group is deleted with its last message."""
        chunk = self._chunks[sequence >> CHUNK_BITS]
        group = self._by_number[chunk[sequence & _OFFSETS]]
        assert group is not None
        chunk[sequence & _OFFSETS] = 0
        chunk[-1] -= 1
        if not chunk[-1] and sequence >> CHUNK_BITS != self.newest >> CHUNK_BITS:
            del self._chunks[sequence >> CHUNK_BITS]
        if group.leave(sequence):
            del self._by_name[group.name]
            self._by_number[group.number] = None
            if len(self._spare) < _SPARE_MAX:
                self._spare.append(group)
            else:
                self._free_numbers.append(group.number)
        return group
