"""The member's log in memory: a run of entries above a base that is gone for good."""

from elasticq.replication.records import BEGINNING, Base, Entry, Voter

ENTRY_BYTES = 160  # memory of an entry beside its payload


class Log:
    """Holds the entries ``first_index`` … ``last_index``; of those below it knows only (base_index, base_term).

    Indexes grow by one, terms and times never fall; ``append`` asserts indexes and terms.
    """

    __slots__ = (
        "_base_time_ms",
        "_entries",
        "base_index",
        "base_term",
        "last_index",
        "last_term",
        "last_time_ms",
        "size_bytes",
    )

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
        assert entry.index == self.last_index + 1, "entries are appended in order"
        assert entry.term >= self.last_term, "terms never fall along the log"
        self._entries.append(entry)
        self.size_bytes += len(entry.payload) + ENTRY_BYTES
        self.last_index = entry.index
        self.last_term = entry.term
        self.last_time_ms = entry.time_ms

    def term_at(self, index: int) -> int | None:
        """The term of the entry at ``index``; None where the log does not know it."""
        if index == self.base_index:
            return self.base_term
        if self.base_index < index <= self.last_index:
            return self._entries[index - self.base_index - 1].term
        return None

    def conflict_hint(self, prev_index: int, commit_index: int) -> int:
        """The index at which a master whose entry at ``prev_index`` is another should try next.

        It is before all entries of the conflicting term, never below ``commit_index``; the last index of a shorter log.
        """
        term = self.term_at(prev_index)
        if term is None:
            return self.last_index
        hint = prev_index - 1
        while hint > commit_index and self.term_at(hint) == term:
            hint -= 1
        return max(hint, commit_index)

    def base_at(self, index: int, voters: tuple[Voter, ...] | None) -> Base:
        """The base of a log that begins after ``index``, with the ``voters`` of that place."""
        if index == self.base_index:
            return Base(index, self.base_term, self._base_time_ms, voters)
        entry = self.entry(index)
        return Base(index, entry.term, entry.time_ms, voters)

    def entry(self, index: int) -> Entry:
        assert self.base_index < index <= self.last_index
        return self._entries[index - self.base_index - 1]

    def slice(self, first: int, entries_max: int, bytes_max: int) -> list[Entry]:
        """Entries from ``first`` on, at least one if there is one, within the bounds."""
        start = first - self.base_index - 1
        assert start >= 0, "what was compacted cannot be sent"
        chosen: list[Entry] = []
        size_bytes = 0
        for entry in self._entries[start : start + entries_max]:
            size_bytes += len(entry.payload)
            if chosen and size_bytes > bytes_max:
                break
            chosen.append(entry)
        return chosen

    def truncate(self, index: int) -> list[Entry]:
        """Drop the entries from ``index`` on, and return them."""
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
        """The newest index up to which the log can be forgotten so that about ``kept_bytes`` stay."""
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
