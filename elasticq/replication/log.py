"""The log of a member in memory: consecutive entries above a base. Entries up to the base are forgotten."""

from typing import Final

from elasticq.replication.records import BEGINNING, Base, Entry, Voter

ENTRY_BYTES: Final = 160  # memory of an entry without its payload


class Log:
    """The entries ``first_index`` … ``last_index``. Of the entries before them it knows only (base_index, base_term).

    Indexes grow by one, and terms and times never fall. ``append`` asserts this for indexes and terms.
    """

    def __init__(self, entries: list[Entry], base: Base = BEGINNING) -> None:
        self.base_index = self.last_index = base.index
        self.base_term = self.last_term = base.term
        self._base_time_ms = self.last_time_ms = base.time_ms
        self._entries: list[Entry] = []
        self.size_bytes = 0
        for entry in entries:
            self.append(entry)

    @property
    def first_index(self) -> int:
        return self.base_index + 1

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, entry: Entry) -> None:
        index, term = entry.index, entry.term
        assert index == self.last_index + 1, "entries are appended in order"
        assert term >= self.last_term, "terms never fall along the log"
        self._entries.append(entry)
        self.size_bytes += len(entry.payload) + ENTRY_BYTES
        self.last_index = index
        self.last_term = term
        self.last_time_ms = entry.time_ms

    def term_at(self, index: int) -> int | None:
        """Return the term of the entry at ``index``; None if the log does not know it."""
        if index == self.base_index:
            return self.base_term
        if self.base_index < index <= self.last_index:
            return self._entries[index - self.base_index - 1].term
        return None

    def conflict_hint(self, prev_index: int, commit_index: int) -> int:
        """Return the index that a master should try next if its entry at ``prev_index`` differs.

        The index is before all entries of the conflicting term, and never below ``commit_index``. If this log is
        shorter, it is the last index.
        """
        term = self.term_at(prev_index)
        if term is None:
            return self.last_index
        hint = prev_index - 1
        while hint > commit_index and self.term_at(hint) == term:
            hint -= 1
        return max(hint, commit_index)

    def base_at(self, index: int, voters: tuple[Voter, ...] | None) -> Base:
        """Return the base of a log that begins after ``index``, with the ``voters`` at that index."""
        if index == self.base_index:
            return Base(index, self.base_term, self._base_time_ms, voters)
        entry = self.entry(index)
        return Base(index, entry.term, entry.time_ms, voters)

    def entry(self, index: int) -> Entry:
        assert self.base_index < index <= self.last_index
        return self._entries[index - self.base_index - 1]

    def slice(self, first: int, entries_max: int, bytes_max: int) -> list[Entry]:
        """Return entries from ``first`` on, within the bounds but at least one if there is one."""
        start = first - self.base_index - 1
        assert start >= 0, "compacted entries cannot be sent"
        chosen: list[Entry] = []
        size_bytes = 0
        for entry in self._entries[start : start + entries_max]:
            size_bytes += len(entry.payload)
            if chosen and size_bytes > bytes_max:
                break
            chosen.append(entry)
        return chosen

    def truncate(self, index: int) -> list[Entry]:
        """Remove and return the entries from ``index`` on."""
        assert index > self.base_index
        dropped = self._entries[index - self.base_index - 1 :]
        del self._entries[index - self.base_index - 1 :]
        self.size_bytes -= _size_bytes(dropped)
        self.last_index = index - 1
        if self._entries:
            self.last_term, self.last_time_ms = self._entries[-1].term, self._entries[-1].time_ms
        else:
            self.last_term, self.last_time_ms = self.base_term, self._base_time_ms
        return dropped

    def floor_of(self, kept_bytes: int) -> int:
        """Return the newest index up to which the log can be forgotten so that about ``kept_bytes`` remain."""
        floor, size_bytes = self.base_index, self.size_bytes
        for entry in self._entries:
            size_bytes -= len(entry.payload) + ENTRY_BYTES
            if size_bytes < kept_bytes:
                break
            floor = entry.index
        return floor

    def compact(self, index: int) -> None:
        """Forget the entries up to ``index``."""
        if index <= self.base_index:
            return
        last = self.entry(index)
        self.size_bytes -= _size_bytes(self._entries[: index - self.base_index])
        del self._entries[: index - self.base_index]
        self.base_index, self.base_term, self._base_time_ms = index, last.term, last.time_ms


def _size_bytes(entries: list[Entry]) -> int:
    return sum(len(entry.payload) for entry in entries) + ENTRY_BYTES * len(entries)
