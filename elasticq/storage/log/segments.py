"""The durable log of a member, in append-only segment files of checksummed frames.

    segment = head | frame | frame | ...       frames: see records.py
    head = magic 8 | format u32 | number u64 | last index u64 | starting crc u32 | crc u32 of the head, all LE

The reader relies on these invariants:

- Segments are numbered without gaps. A head holds the crc of the last frame and the index of the last entry of the
  segment before. So a segment of another log does not fit. A last index of 0 means that no earlier entry counts.
- A segment is synced before the next one is created. Head and first frame (the newest vote) are one write, which is
  synced before anything else is appended. So only the last file can be unfinished. The bytes of an unfinished
  beginning are known, as they follow from the segments before. Removing the oldest segments never loses the vote.
- At most one frame is unsynced at a time. With ``lazy_sync``, several frames of the last segment can be unsynced, and
  the log ends at the first torn one.
- Zeros can follow the frames of the last segment only. They are cut off before the next segment is created.
- The oldest segment is removed first. So a truncation is never removed before the entries that it makes void, and a
  truncation without these entries does nothing.
"""

import re
from contextlib import suppress
from typing import Final, NamedTuple
from zlib import crc32

from elasticq.replication.records import Entry, Record, Truncation, Vote
from elasticq.storage.errors import Damaged, DataError, WrongFormat
from elasticq.storage.files import Files, NotSynced
from elasticq.storage.log.records import (
    FIRST_CRC,
    RECORD_BYTES_MAX,
    SECTOR_BYTES,
    Frames,
    crc_of,
    encode_batch,
    encode_frame,
    scan_frames,
    written_bytes,
)

MAGIC: Final = b"elasticq"
FORMAT: Final = 1
HEAD_BYTES: Final = 36
SEGMENT_BYTES: Final = 16 * 1_048_576
DROPPED_FILES_MAX: Final = 16  # removed by one call of drop_through
NOBODY: Final = Vote(0, None)

_SEGMENT_NAME = re.compile(r"log-\d{10}")


class SyncFailed(DataError):
    """A sync failed, so it is unknown what the disk holds. The process must end, as a later sync may hide the loss."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"The log could not be synced: {error}. Nothing after this is safe; check the disk, restart.")


class LogImage(NamedTuple):
    """The content of the log. entries: without gaps; last_index: index of the log's last entry, 0 if it is unknown.

    last_index can be above 0 without entries, when their segments were removed.
    """

    vote: Vote
    entries: list[Entry]
    last_index: int


class Repaired(NamedTuple):
    """The report for the operator: lines that say what was lost, what was kept, and where the cut bytes are."""

    lines: list[str]


class Segment:
    """One segment file. top_index: the highest index of its entries, including those truncated later; 0 without any."""

    def __init__(self, number: int, top_index: int = 0) -> None:
        self.name = segment_name(number)
        self.number = number
        self.top_index = top_index


class Position:
    """The end of the log, from which the next frame and the next head are made. It is immutable.

    top_index: as in the last Segment.
    """

    def __init__(self, end_bytes: int, crc: int, vote: Vote = NOBODY, last_index: int = 0, top_index: int = 0) -> None:
        self.end_bytes = end_bytes
        self.crc = crc
        self.vote = vote
        self.last_index = last_index
        self.top_index = top_index

    def after(self, records: list[Record]) -> "Position | None":
        """Return the position after ``records``, with end_bytes and crc unchanged; None if the entries leave a gap."""
        vote, last_index, top_index = self.vote, self.last_index, self.top_index
        for record in records:
            if type(record) is Entry:  # the usual case, so it is checked first, and cheaply
                index = record.index
                if index != last_index + 1 and last_index:
                    return None
                last_index = index
                if index > top_index:
                    top_index = index
            elif type(record) is Truncation:
                last_index = min(last_index, record.index - 1)
            elif type(record) is Vote:
                vote = record
        return Position(self.end_bytes, self.crc, vote, last_index, top_index)


class SegmentLog:
    """The log of one directory. Calls block. One thread may call it at a time, and ``load`` must be the first call.

    After a failed sync or a failed cut, this and every later call raises SyncFailed. After any other OSError, such as
    that of a full disk, the log is unchanged, and the caller may repeat the call.
    """

    def __init__(
        self,
        files: Files,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        frame_bytes: int = RECORD_BYTES_MAX,
        lazy_sync: bool = False,
    ) -> None:
        """Make a log, to be loaded next. ``lazy_sync``: do not sync between appends (durability ``os``, ``none``)."""
        self._files = files
        self._segment_bytes = segment_bytes
        self._frame_bytes = frame_bytes
        self._lazy_sync = lazy_sync
        self._segments: list[Segment] = []
        self._at = Position(0, FIRST_CRC)
        self._unsynced = False
        self._failure: SyncFailed | None = None
        self.torn_bytes = 0  # of an unfinished record at the end, which ``load`` cut off

    @property
    def last_index(self) -> int:
        """Return the index of the newest entry that counts; 0 before the first one and after ``reset``."""
        return self._at.last_index

    @property
    def term(self) -> int:
        """Return the term of the newest vote."""
        return self._at.vote.term

    def load(self, *, was_lazy: bool = False) -> LogImage:
        """Read all segments, cut off what a crash left unfinished, and return the content.

        was_lazy: whether the previous process used ``lazy_sync``. Raise Damaged or WrongFormat before any change.
        """
        reader = _Reader(self._files, self._lazy_sync or was_lazy)
        reader.read()
        self._segments, self._at, self.torn_bytes = reader.segments, reader.at, reader.torn_bytes
        if reader.unfinished:
            self._files.remove(reader.unfinished)
        if not self._segments:
            self._create(1, NOBODY, 0)
        elif reader.has_more:
            self._files.truncate(self._name, self._at.end_bytes)
        # A killed process may leave frames in the system's memory. This log counts them, so they must be synced.
        self._unsynced = True
        self.sync()
        return LogImage(self._at.vote, reader.entries, self._at.last_index)

    def append(self, records: list[Record], *, durably: bool = False) -> None:
        """Append records as one frame. ``durably``: they are durable when this returns.

        A batch that is too large for one frame becomes several. All but the last are synced, unless ``lazy_sync``.
        """
        self._check()
        if not records:
            return
        if self._at.end_bytes > self._segment_bytes:
            self._begin_segment(self._at.last_index)
        taken = self._at.after(records)
        assert taken is not None, "entries are contiguous"
        crc, end_bytes = taken.crc, taken.end_bytes
        payloads = _payloads(records, self._frame_bytes)
        for payload in payloads:
            if not self._lazy_sync:
                self.sync()
            encoded = encode_frame(payload, crc)
            self._write(encoded, durably=durably and payload is payloads[-1])
            crc, end_bytes = crc_of(encoded), end_bytes + len(encoded)
        self._segments[-1].top_index = taken.top_index
        self._at = Position(end_bytes, crc, taken.vote, taken.last_index, taken.top_index)
        if durably:
            self.sync()

    def sync(self) -> None:
        """Make all that was appended durable."""
        self._check()
        if not self._unsynced:
            return
        try:
            self._files.sync(self._name)
        except OSError as error:
            raise self._fail(error) from error
        self._unsynced = False

    def finish(self) -> None:
        """Sync what was appended, and cut off the zeros after it. The caller must not append any more."""
        self.sync()
        with suppress(OSError):  # the next start cuts off the zeros
            self._files.trim(self._name)

    def drop_through(self, index: int) -> int:
        """Remove the oldest segments without an entry above ``index``, at most DROPPED_FILES_MAX; return how many."""
        self._check()
        dropped = 0
        while dropped < DROPPED_FILES_MAX and len(self._segments) > 1 and self._segments[0].top_index <= index:
            self._remove_oldest()
            dropped += 1
        return dropped

    def reset(self, vote: Vote) -> None:
        """Drop all entries and keep only ``vote``, durably. The next entry may have any index."""
        if vote != self._at.vote:
            self.append([vote])
        self._begin_segment(0)
        while len(self._segments) > 1:
            self._remove_oldest()

    @property
    def _name(self) -> str:
        return self._segments[-1].name

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: OSError) -> SyncFailed:
        self._failure = SyncFailed(error)
        return self._failure

    def _write(self, encoded: bytes, *, durably: bool) -> None:
        is_all = not self._unsynced  # append_durably does not make earlier appends durable
        try:
            if durably and is_all:
                self._files.append_durably(self._name, encoded)
            else:
                self._unsynced = True
                self._files.append(self._name, encoded)
        except NotSynced as error:
            raise self._fail(error) from error
        except OSError:
            self._cut_append()
            raise

    def _cut_append(self) -> None:
        """Cut off all frames of a failed append, including those written before the one that failed."""
        try:
            self._files.truncate(self._name, self._at.end_bytes)
        except OSError as error:
            raise self._fail(error) from error

    def _begin_segment(self, last_index: int) -> None:
        self.sync()
        try:
            self._files.trim(self._name)
        except OSError as error:
            raise self._fail(error) from error
        number = self._segments[-1].number + 1
        if segment_name(number) in self._files.names():  # left by a failed try, which could not remove it
            self._files.remove(segment_name(number))
        self._create(number, self._at.vote, last_index)

    def _create(self, number: int, vote: Vote, last_index: int) -> None:
        name = segment_name(number)
        data = _beginning(number, self._at.crc, vote, last_index)
        try:
            self._files.create(name)
            self._files.append(name, data)
        except OSError:
            with suppress(OSError):  # the next try or the next load removes it
                self._files.remove(name)
            raise
        try:
            self._files.sync(name)
        except OSError as error:
            raise self._fail(error) from error
        self._segments.append(Segment(number))
        self._at = Position(len(data), crc_of(data[HEAD_BYTES:]), vote, last_index)

    def _remove_oldest(self) -> None:
        with suppress(FileNotFoundError):  # an earlier try removed it, but could not make that durable
            self._files.remove(self._segments[0].name)
        del self._segments[0]


def repair(files: Files) -> Repaired:
    """Cut a damaged log at the damage; return a report. All bytes to be cut off are first copied to ``damaged-`` files.

    It can be stopped at any point and run again. Raise WrongFormat if a newer version wrote the log.
    """
    try:
        _Reader(files, False).read()
    except Damaged as damage:
        return _cut_at(files, damage)
    return Repaired(["The log is not damaged, nothing was changed."])


def segment_name(number: int) -> str:
    return f"log-{number:010}"


class Head(NamedTuple):
    number: int
    last_index: int
    starting_crc: int
    crc: int


class _Reader:
    """A reader of all segments in order, which changes nothing.

    unfinished: the name of a file that must be removed, or empty. has_more: zeros or a torn frame follow in the last
    segment, which must be cut at ``at.end_bytes``.
    """

    def __init__(self, files: Files, lazy_sync: bool) -> None:
        self.files = files
        self.lazy_sync = lazy_sync
        self.segments: list[Segment] = []
        self.entries: list[Entry] = []
        self.at = Position(0, FIRST_CRC)
        self.unfinished = ""
        self.has_more = False
        self.torn_bytes = 0

    def read(self) -> None:
        names = _segment_names(self.files)
        for name in names:
            self._read_segment(name, name == names[-1])

    def _read_segment(self, name: str, is_last: bool) -> None:
        number, data = int(name[4:]), self.files.read(name)
        if self.segments and number != self.segments[-1].number + 1:
            raise Damaged(name, 0, f"{segment_name(self.segments[-1].number + 1)}, the file before it, is missing")
        if is_last and self._is_unfinished(data, number):
            self.unfinished, self.torn_bytes = name, len(data)
            return
        head = self._head(name, data, number)
        frames = scan_frames(data, HEAD_BYTES, head.crc, self.lazy_sync and is_last)
        if not _begins_with_vote(frames):
            raise Damaged(name, HEAD_BYTES, "it does not begin with a vote")
        self.segments.append(Segment(number))
        self._take(name, frames, head)
        has_more = frames.end < len(data)
        if frames.damage or (has_more and not is_last):
            raise Damaged(name, frames.end, frames.damage or "it ends within a record, but another file follows")
        self.has_more = has_more
        if frames.torn:
            self.torn_bytes = written_bytes(data) - frames.end

    def _is_unfinished(self, data: bytes, number: int) -> bool:
        """Return whether a crash interrupted the creation of the segment.

        Then its beginning is short or lacks sectors, and nothing follows it.
        """
        if not self.segments and number != 1:
            return False
        last_indexes = {self.at.last_index, 0}
        return any(
            _is_unfinished_write(data, _beginning(number, self.at.crc, self.at.vote, last_index))
            for last_index in last_indexes
        )

    def _head(self, name: str, data: bytes, number: int) -> Head:
        head = _decode_head(name, data)
        if head is None:
            raise Damaged(name, 0, "its head does not fit its checksum")
        if head.number != number:
            raise Damaged(name, 0, f"it was written as {segment_name(head.number)}")
        if self.segments and head.starting_crc != self.at.crc:
            raise Damaged(name, 0, "it does not follow the file before it")
        if self.segments and head.last_index not in (self.at.last_index, 0):
            raise Damaged(name, 0, f"it follows entry {head.last_index}, the file before it {self.at.last_index}")
        return head

    def _take(self, name: str, frames: Frames, head: Head) -> None:
        if not head.last_index:
            self.entries.clear()
        at = Position(0, FIRST_CRC, self.at.vote, head.last_index)
        for batch in frames.batches:
            after = at.after(batch.records)
            if after is None:
                raise Damaged(name, batch.at, "its entries do not follow the ones before them")
            at = after
            for record in batch.records:
                self._take_record(record)
        self.segments[-1].top_index = at.top_index
        self.at = Position(frames.end, frames.crc, at.vote, at.last_index, at.top_index)

    def _take_record(self, record: Record) -> None:
        match record:
            case Entry():
                self.entries.append(record)
            case Truncation(index) if self.entries:
                del self.entries[max(0, index - self.entries[0].index) :]


def _segment_names(files: Files) -> list[str]:
    return [name for name in files.names() if _SEGMENT_NAME.fullmatch(name)]


def _begins_with_vote(frames: Frames) -> bool:
    return bool(frames.batches) and isinstance(frames.batches[0].records[0], Vote)


def _encode_head(number: int, last_index: int, starting_crc: int) -> bytes:
    fields = ((FORMAT, 4), (number, 8), (last_index, 8), (starting_crc, 4))
    data = MAGIC + b"".join(value.to_bytes(size, "little") for value, size in fields)
    return data + crc32(data).to_bytes(4, "little")


def _decode_head(name: str, data: bytes) -> Head | None:
    """Return the decoded head; None if the data are too short, are not a head, or do not fit its crc.

    Raise WrongFormat if the format is newer than FORMAT.
    """
    crc = int.from_bytes(data[32:HEAD_BYTES], "little")
    if len(data) < HEAD_BYTES or data[:8] != MAGIC or crc32(data[:32]) != crc:
        return None
    number_of_format = int.from_bytes(data[8:12], "little")
    if number_of_format > FORMAT:
        raise WrongFormat(f"{name} has format {number_of_format}, this version reads up to {FORMAT}: use a newer one.")
    number, last_index = int.from_bytes(data[12:20], "little"), int.from_bytes(data[20:28], "little")
    return Head(number, last_index, int.from_bytes(data[28:32], "little"), crc)


def _beginning(number: int, starting_crc: int, vote: Vote, last_index: int) -> bytes:
    """Return the first bytes of a segment: its head and a frame with the vote."""
    head = _encode_head(number, last_index, starting_crc)
    return head + encode_frame(encode_batch([vote]), int.from_bytes(head[-4:], "little"))


def _is_unfinished_write(data: bytes, whole: bytes) -> bool:
    """Return whether ``data`` can be what a crash left of an unsynced write of ``whole``, and is not all of it."""
    if written_bytes(data) > len(whole):
        return False
    data = data[: len(whole)]  # zeros may follow
    if data == whole:
        return False
    sectors = range(0, len(data), SECTOR_BYTES)
    parts = [(data[at : at + SECTOR_BYTES], whole[at : at + SECTOR_BYTES]) for at in sectors]
    return all(part == written[: len(part)] or not any(part) for part, written in parts)


def _payloads(records: list[Record], frame_bytes: int) -> list[bytes]:
    """Encode the records as payloads of at most ``frame_bytes`` each. A single record may be a larger payload."""
    payload = encode_batch(records)
    if len(payload) <= frame_bytes or len(records) == 1:
        return [payload]
    middle = len(records) // 2
    return _payloads(records[:middle], frame_bytes) + _payloads(records[middle:], frame_bytes)


def _cut_at(files: Files, damage: Damaged) -> Repaired:
    later = [name for name in _segment_names(files) if name > damage.file]
    vote, top_index = _readable(files, [damage.file, *later])
    # A segment without its first frame, the vote, would be invalid. So the whole file goes if that frame is damaged.
    offset = damage.offset if damage.offset > HEAD_BYTES else 0
    copies = [_copy(files, damage.file, offset), *(_copy(files, name, 0) for name in later)]
    for name in reversed(later):  # the damage is cut off last, so a repeated repair finds it
        files.remove(name)
    if offset:
        files.truncate(damage.file, offset)
    else:
        files.remove(damage.file)
    image = _load_with(files, vote)
    return Repaired(
        [
            f"{damage.file} was damaged at byte {damage.offset}: {damage.reason}.",
            _kept(image),
            f"Lost: every later entry{f'; entries up to {top_index} had been there' if top_index else ''}.",
            f"Vote: term {image.vote.term} for {image.vote.voted_for or 'nobody'}, the newest that could be read.",
            *(f"What was cut off is in {copy}." for copy in copies),
        ]
    )


def _kept(image: LogImage) -> str:
    if not image.entries:
        return f"Kept: no entry of the log (the last one known is {image.last_index})."
    return f"Kept: entries {image.entries[0].index} to {image.last_index}."


def _load_with(files: Files, vote: Vote) -> LogImage:
    """Load the log that is left, and append ``vote`` if it is newer than the log's: a member must not vote twice."""
    log = SegmentLog(files)
    if vote.term >= log.load().vote.term and vote != NOBODY:
        log.append([vote])
        log.sync()
    return SegmentLog(files).load()


def _readable(files: Files, names: list[str]) -> tuple[Vote, int]:
    """Return the newest vote and the highest entry index in these files. Each file is read by itself, up to damage."""
    vote, top_index = NOBODY, 0
    for name in names:
        data = files.read(name)
        head = _decode_head(name, data)
        if head is None:
            continue
        for batch in scan_frames(data, HEAD_BYTES, head.crc, True).batches:
            for record in batch.records:
                if isinstance(record, Vote) and record.term >= vote.term:
                    vote = record
                elif isinstance(record, Entry):
                    top_index = max(top_index, record.index)
    return vote, top_index


def _copy(files: Files, name: str, offset: int) -> str:
    """Copy the file from ``offset`` on to a new file; return its name. An older copy is never overwritten."""
    copy = wanted = f"damaged-{name}-{offset}"
    taken, again = files.names(), 1
    while copy in taken:
        again += 1
        copy = f"{wanted}-{again}"
    files.create(copy)
    files.append(copy, files.read(name)[offset:])
    files.sync(copy)
    return copy
