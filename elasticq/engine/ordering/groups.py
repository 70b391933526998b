"""The message groups of a FIFO queue: which messages each has, in order, and whose group a message is.

Every message is in here until it is deleted, also when its content is on disk
only; so it costs about 12 bytes: eight in its group, four in the table of
group numbers. A group costs about 350 bytes and goes with its last message.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

CHUNK_BITS: Final = 8
_OFFSETS: Final = (1 << CHUNK_BITS) - 1
_TRIMMED_FROM: Final = 32


class Group:
    """One group with its messages.

    first: its oldest message, 0 if there is none; received_ms: of the newest receive of one of its
    messages; listed: its first message while the group waits in line, else 0.
    """

    __slots__ = ("_begin", "_sequences", "first", "listed", "name", "number", "received_ms")

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.first = 0
        self.received_ms = 0
        self.listed = 0
        self._sequences = array("Q")
        self._begin = 0  # messages before it are gone; trimmed in bulk so that the front costs O(1)

    def __iter__(self) -> Iterator[int]:
        """Oldest first; not to be changed meanwhile."""
        sequences = self._sequences
        for at in range(self._begin, len(sequences)):
            yield sequences[at]

    def add(self, sequence: int) -> None:
        """At the end, unless a roll-back brings an older one back."""
        sequences = self._sequences
        if not self.first or sequence > sequences[-1]:
            sequences.append(sequence)
        else:
            sequences.insert(bisect_left(sequences, sequence, self._begin), sequence)
        if not self.first or sequence < self.first:
            self.first = sequence

    def remove(self, sequence: int) -> None:
        """What is removed stands near the front: the few before it move, not the backlog behind it."""
        sequences, begin = self._sequences, self._begin
        if self.first == sequence and begin + 1 == len(sequences):
            self.first = 0  # the group goes
            return
        if self.first != sequence:
            at = bisect_left(sequences, sequence, begin)
            assert sequences[at] == sequence, "a message is removed once"
            if at - begin > len(sequences) - at:
                del sequences[at]
                return
            sequences[begin + 1 : at + 1] = sequences[begin:at]
        begin += 1
        if begin > _TRIMMED_FROM and begin * 2 > len(sequences):
            del sequences[:begin]
            begin = 0
        self._begin = begin
        self.first = sequences[begin] if begin < len(sequences) else 0


class Groups:
    """Groups by name, and of each message its group."""

    __slots__ = ("_by_name", "_by_number", "_chunks", "_free_numbers", "newest")

    def __init__(self) -> None:
        self._by_name: dict[str, Group] = {}
        self._by_number: list[Group | None] = [None]  # number 0 is nobody's
        self._free_numbers: list[int] = []
        self.newest = 0  # the largest sequence that was ever in a group
        # sequence >> CHUNK_BITS -> group numbers, and behind them how many of them are not 0
        self._chunks: dict[int, array[int]] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Group]:
        return iter(self._by_name.values())

    def named(self, name: str) -> Group | None:
        return self._by_name.get(name)

    def of(self, sequence: int) -> Group | None:
        """The group of a message; None if it is in none."""
        chunk = self._chunks.get(sequence >> CHUNK_BITS)
        return self._by_number[chunk[sequence & _OFFSETS]] if chunk is not None else None

    def join(self, sequence: int, name: str) -> Group:
        """The message, which is in no group, is in this one from now on."""
        group = self._by_name.get(name)
        if group is None:
            group = self._found(name)
        if sequence > self.newest:
            self.newest = sequence
        group.add(sequence)
        chunk = self._chunks.get(sequence >> CHUNK_BITS)
        if chunk is None:
            chunk = self._chunks[sequence >> CHUNK_BITS] = array("I", bytes(4 * (_OFFSETS + 2)))
        chunk[sequence & _OFFSETS] = group.number
        chunk[-1] += 1
        return group

    def _found(self, name: str) -> Group:
        number = self._free_numbers.pop() if self._free_numbers else len(self._by_number)
        group = self._by_name[name] = Group(name, number)
        if number == len(self._by_number):
            self._by_number.append(group)
        else:
            self._by_number[number] = group
        return group

    def leave(self, sequence: int) -> Group:
        """The message is gone, and with the last one its group."""
        chunk = self._chunks[sequence >> CHUNK_BITS]
        group = self._by_number[chunk[sequence & _OFFSETS]]
        assert group is not None
        chunk[sequence & _OFFSETS] = 0
        chunk[-1] -= 1
        if not chunk[-1]:
            del self._chunks[sequence >> CHUNK_BITS]
        group.remove(sequence)
        if not group.first:
            del self._by_name[group.name]
            self._by_number[group.number] = None
            self._free_numbers.append(group.number)
        return group
