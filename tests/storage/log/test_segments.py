"""The log keeps what was synced through any crash, cuts what a crash tore, and tells damage from it."""

import errno
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.replication.records import Entry, Record, Truncation, Vote
from elasticq.storage.errors import Damaged, WrongFormat
from elasticq.storage.files import DirectoryFiles, Files
from elasticq.storage.log.records import FRAME_BYTES_MAX, RECORD_BYTES_MAX, crc_of, encode_batch, encode_frame
from elasticq.storage.log.segments import HEAD_BYTES, LogImage, SegmentLog, SyncFailed, repair, segment_name
from tests.storage.faulty import Crash, FaultyFiles

FIRST = segment_name(1)
PADDINGS = (0, 37, 700, 5_000)


def entry(index: int, term: int = 1, size_bytes: int = 20) -> Entry:
    return Entry(index, term, 5, b"x" * size_bytes)


def image_of(records: list[Record]) -> LogImage:
    """What records mean, said once more and simply."""
    vote, entries = Vote(0, None), list[Entry]()
    for record in records:
        match record:
            case Entry():
                entries.append(record)
            case Truncation(index):
                entries = [kept for kept in entries if kept.index < index]
            case Vote():
                vote = record
    return LogImage(vote, entries, entries[-1].index if entries else 0)


@dataclass
class Step:
    kind: str
    records: list[Record] = field(default_factory=list)
    index: int = 0


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Appends, syncs and drops as a node makes them: what is dropped is never truncated."""
    random = Random(draw(st.integers(0, 1 << 32)))
    steps, last, dropped, term = list[Step](), 0, 0, 1
    for _ in range(draw(st.integers(3, 25))):
        kind = random.choice(("append", "append", "append", "sync", "sync", "drop"))
        if kind == "append":
            batch: list[Record] = []
            for _ in range(random.randint(1, 4)):
                if random.random() < 0.15:
                    term += 1
                    batch.append(Vote(term, random.choice((None, "a", "b" * 600))))
                elif random.random() < 0.2 and last > dropped:
                    last = random.randint(dropped, last - 1)
                    batch.append(Truncation(last + 1))
                else:
                    last += 1
                    batch.append(entry(last, term, random.choice((0, 10, 300, 1_500))))
            steps.append(Step("append", batch))
        elif kind == "drop":
            dropped = random.randint(dropped, last)
            steps.append(Step("drop", index=dropped))
        else:
            steps.append(Step("sync"))
    return steps


class Run:
    """A log and what it promised."""

    def __init__(self, files: Files, segment_bytes: int, lazy_sync: bool) -> None:
        self.files = files
        self.options = {"segment_bytes": segment_bytes, "lazy_sync": lazy_sync}
        self.batches: list[list[Record]] = []
        self.synced = self.dropped = 0
        self.log = self._log()

    def _log(self) -> SegmentLog:
        return SegmentLog(
            self.files,
            segment_bytes=int(self.options["segment_bytes"]),
            lazy_sync=bool(self.options["lazy_sync"]),
        )

    def play(self, steps: list[Step]) -> None:
        self.log.load()
        for step in steps:
            if step.kind == "append":
                self.batches.append(step.records)
                self.log.append(step.records)
            elif step.kind == "sync":
                self.log.sync()
                self.synced = len(self.batches)
            else:
                self.dropped = step.index
                self.log.drop_through(step.index)

    def reload(self) -> LogImage:
        self.log = self._log()
        return self.log.load()

    def check(self, found: LogImage) -> int:
        """How many batches were kept: all that were synced, and of the others the first ones, each wholly."""
        for count in range(len(self.batches), self.synced - 1, -1):
            if self._is_image(found, count):
                return count
        raise AssertionError(f"{found} is not what {self.synced} to {len(self.batches)} batches left")

    def _is_image(self, found: LogImage, count: int) -> bool:
        wanted = image_of([record for batch in self.batches[:count] for record in batch])
        missing = wanted.entries[: len(wanted.entries) - len(found.entries)]
        kept = wanted.entries[len(missing) :]
        return (found.vote, found.entries, found.last_index) == (wanted.vote, kept, wanted.last_index) and all(
            gone.index <= self.dropped for gone in missing
        )


def crash_at(number: int, seed: int, steps: list[Step], segment_bytes: int, lazy_sync: bool) -> bool:
    """Stop at that call, crash, load; False if there are fewer calls."""
    files = FaultyFiles(Random(seed), padding_bytes=PADDINGS[seed % len(PADDINGS)])
    files.stop_at = number
    run = Run(files, segment_bytes, lazy_sync)
    try:
        run.play(steps)
    except Crash:
        is_power_cut = seed % 4 > 0
        files.crash() if is_power_cut else files.kill()
        found = run.reload()
        assert run.reload() == found, "what was loaded stays, whatever happens next"
        kept = run.check(found)
        files.crash()
        assert run.reload() == found, "what was loaded is durable"
        more = [entry(found.last_index + 1, 9), Vote(1_000, "me")]
        run.log.append(more)
        run.log.sync()
        files.crash()
        run.batches = [*run.batches[:kept], more]
        run.synced = len(run.batches)
        run.check(run.reload())
        return True
    return False


@settings(max_examples=150, deadline=None)
@given(histories(), st.integers(0, 1 << 20), st.sampled_from((100, 700, 4_000, 1 << 20)), st.booleans())
def test_crash_at_every_call_keeps_what_was_synced(
    steps: list[Step], seed: int, segment_bytes: int, lazy_sync: bool
) -> None:
    number = 1
    while crash_at(number, seed + number, steps, segment_bytes, lazy_sync):
        number += 1
    assert number > 3


@settings(max_examples=100, deadline=None)
@given(histories(), st.integers(0, 1 << 20), st.sampled_from((100, 2_000)))
def test_full_disk_at_any_call_leaves_the_log_as_it_was(steps: list[Step], seed: int, segment_bytes: int) -> None:
    files = FaultyFiles(Random(seed), padding_bytes=PADDINGS[seed % len(PADDINGS)])
    run = Run(files, segment_bytes, False)
    run.log.load()
    random = Random(seed)
    for step in steps:
        if step.kind != "append":
            continue
        # A full segment is synced and a new one begun before the write: any of these calls fails.
        files.fail_at = {len(files.calls) + random.randint(1, 4): errno.ENOSPC}
        before = run.log.last_index
        try:
            run.log.append(step.records)
        except SyncFailed:
            return  # the process ends; crashes have a test of their own
        except OSError:
            if run.log.last_index != before:
                raise
            files.fail_at = {}
            run.log.append(step.records)
        files.fail_at = {}
        run.batches.append(step.records)
    run.synced = len(run.batches)
    run.log.sync()
    run.check(run.reload())


def small_log(padding_bytes: int = 0) -> tuple[FaultyFiles, LogImage]:
    """A log of some segments, before anybody loads it, and what it holds."""
    files = FaultyFiles(padding_bytes=padding_bytes)
    log = SegmentLog(files, segment_bytes=200)
    log.load()
    for index in range(1, 7):
        log.append([entry(index, size_bytes=60)])
        log.sync()
    log.append([Vote(3, "m")])
    log.sync()
    return files, SegmentLog(copy_of(files)).load()


def copy_of(files: FaultyFiles) -> FaultyFiles:
    copied = FaultyFiles()
    for name in files.names():
        copied.create(name)
        copied.append(name, files.read(name))
        copied.sync(name)
    copied.kill()
    return copied


@pytest.mark.parametrize("padding_bytes", PADDINGS)
def test_flipped_byte_anywhere_is_damage(padding_bytes: int) -> None:
    files, _ = small_log(padding_bytes)
    assert len(files.names()) > 2
    for name in files.names():
        data = files.files[name].data
        for at in range(len(data.rstrip(b"\0"))):
            data[at] ^= 0x21
            before = {each: files.read(each) for each in files.names()}
            with pytest.raises((Damaged, WrongFormat)) as raised:
                SegmentLog(files).load()
            assert name in str(raised.value)
            assert before == {each: files.read(each) for each in files.names()}
            data[at] ^= 0x21
    assert SegmentLog(files).load().last_index == 6


def test_flipped_byte_anywhere_is_repaired_to_a_prefix() -> None:
    _, whole = small_log()
    files, _ = small_log()
    for name in files.names():
        for at in range(0, len(files.read(name)), 3):
            broken, _ = small_log()
            broken.files[name].data[at] ^= 0x21
            size_bytes = sum(len(broken.read(each)) for each in broken.names())
            lines = repair(broken).lines
            assert name in lines[0]
            found = SegmentLog(broken).load()
            assert found.entries == whole.entries[: len(found.entries)]
            assert sum(len(broken.read(each)) for each in broken.names()) >= size_bytes
            assert repair(broken).lines == ["The log is not damaged, nothing was changed."]


def test_repair_stopped_at_any_call_can_be_run_again() -> None:
    for number in range(1, 40):
        files, whole = small_log()
        files.kill()
        files.files[segment_name(2)].data[HEAD_BYTES + 40] ^= 1
        files.stop_at = number
        try:
            repair(files)
        except Crash:
            files.crash()
            repair(files)
        files.kill()
        found = SegmentLog(files).load()
        assert found.entries == whole.entries[: len(found.entries)]
        assert found.vote.term <= whole.vote.term


def test_repair_keeps_the_newest_vote_behind_the_damage() -> None:
    files, whole = small_log()
    files.files[FIRST].data[HEAD_BYTES + 40] ^= 1
    lines = repair(files).lines
    found = SegmentLog(files).load()
    assert found.vote == whole.vote == Vote(3, "m")
    assert "Kept: no entry of the log (the last one known is 0)." in lines
    assert any("entries up to 6" in line for line in lines)
    assert [name for name in files.names() if name.startswith(f"damaged-{FIRST}-")]


def test_repair_never_overwrites_an_older_copy() -> None:
    files = FaultyFiles()
    for _ in range(3):
        log = SegmentLog(files)
        log.load()
        log.append([entry(1)])
        log.sync()
        files.files[FIRST].data[-1] ^= 1
        repair(files)
    assert len([name for name in files.names() if name.startswith("damaged-")]) == 3


def test_missing_segment_is_damage() -> None:
    files, _ = small_log()
    del files.files[segment_name(2)]
    with pytest.raises(Damaged, match=f"{segment_name(2)}, the file before it, is missing"):
        SegmentLog(files).load()


def test_segment_of_another_log_is_damage() -> None:
    files, _ = small_log()
    other = FaultyFiles()
    log = SegmentLog(other, segment_bytes=1)
    log.load()
    for index in range(1, 7):
        log.append([entry(index)])
    last = files.names()[-1]
    files.files[last] = other.files[last]
    with pytest.raises(Damaged, match="it does not follow the file before it"):
        SegmentLog(files).load()


@pytest.mark.pure
def test_newer_format_is_refused() -> None:
    from elasticq.storage.log import segments as module

    files = FaultyFiles()
    SegmentLog(files).load()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FORMAT", 0)
        with pytest.raises(WrongFormat):
            SegmentLog(files).load()
        with pytest.raises(WrongFormat):
            repair(files)


def test_gap_between_entries_is_damage() -> None:
    files = FaultyFiles()
    log = SegmentLog(files)
    log.load()
    log.append([entry(1)])
    last = files.read(FIRST)
    frame_bytes = len(encode_frame(encode_batch([entry(1)]), 0))
    files.append(FIRST, encode_frame(encode_batch([entry(3)]), crc_of(last[-frame_bytes:])))
    with pytest.raises(Damaged, match="do not follow"):
        SegmentLog(files).load()


def test_gap_between_entries_is_never_written() -> None:
    log = SegmentLog(FaultyFiles())
    log.load()
    log.append([entry(1)])
    with pytest.raises(AssertionError):
        log.append([entry(3)])


def test_empty_directory_becomes_a_log_and_foreign_files_stay() -> None:
    files = FaultyFiles()
    for name in ("log-1", "log-00000000011", "format", "damaged-log-0000000001-0"):
        files.create(name)
    assert SegmentLog(files).load() == LogImage(Vote(0, None), [], 0)
    assert FIRST in files.names()
    assert len(files.names()) == 5


def test_dropping_keeps_the_newest_vote_and_the_current_segment() -> None:
    files = FaultyFiles()
    log = SegmentLog(files, segment_bytes=1)
    log.load()
    log.append([Vote(4, "c"), entry(1)])
    for index in range(2, 40):
        log.append([entry(index)])
    assert log.drop_through(35) == 16
    assert log.drop_through(35) == 16
    assert log.drop_through(35) == 4  # the first segment has nothing but the vote
    assert log.drop_through(1_000) == 3
    assert SegmentLog(files).load() == LogImage(Vote(4, "c"), [entry(39)], 39)


def test_segment_with_void_entries_beyond_the_index_stays() -> None:
    files = FaultyFiles()
    log = SegmentLog(files, segment_bytes=300)
    log.load()
    log.append([entry(index) for index in range(1, 11)])
    log.append([Truncation(3), entry(3, 2)])
    names = files.names()
    assert len(names) == 2
    assert log.drop_through(3) == 0
    log.append([entry(index, 2) for index in range(4, 11)])
    assert log.drop_through(10) == 1
    assert SegmentLog(files).load().entries == [entry(index, 2) for index in range(3, 11)]


def test_last_index_outlives_the_entries_and_a_truncation() -> None:
    files = FaultyFiles()
    log = SegmentLog(files, segment_bytes=1)
    log.load()
    log.append([entry(1), entry(2), entry(3)])
    log.append([Truncation(3)])
    log.append([Vote(2, None)])
    log.drop_through(3)
    again = SegmentLog(files)
    assert again.load() == LogImage(Vote(2, None), [], 2)
    assert again.last_index == 2


@pytest.mark.parametrize("vote", [Vote(0, None), Vote(7, "b")])
def test_reset_stopped_at_any_call_leaves_the_old_log_or_the_vote_alone(vote: Vote) -> None:
    number, is_over = 0, False
    while not is_over:
        number += 1
        files, whole = small_log()
        log = SegmentLog(files)
        log.load()
        files.kill()
        files.stop_at = number
        try:
            log.reset(vote)
            is_over = True
            files.kill()
        except Crash:
            files.crash()
        again = SegmentLog(files)
        found = again.load()
        assert found.vote in (whole.vote, vote)
        assert found.entries in (whole.entries, [])
        if is_over:
            assert found == LogImage(vote, [], 0)
        if not found.entries:
            again.append([entry(50)])
            assert SegmentLog(files).load() == LogImage(found.vote, [entry(50)], 50)
    assert number > 4


def test_zeros_behind_the_log_are_cut_by_the_next_load_and_are_no_torn_record() -> None:
    files = FaultyFiles(padding_bytes=5_000)
    log = SegmentLog(files)
    log.load()
    log.append([entry(1)])
    log.sync()
    padded = files.read(FIRST)
    files.crash()
    again = SegmentLog(files)
    assert again.load() == LogImage(Vote(0, None), [entry(1)], 1)
    assert again.torn_bytes == 0
    assert padded.endswith(bytes(4_000))
    assert files.read(FIRST) == padded.rstrip(b"\0")
    again.append([entry(2)])
    again.sync()
    assert SegmentLog(files).load().last_index == 2


def test_only_the_newest_segment_has_zeros_behind_it() -> None:
    files = FaultyFiles(padding_bytes=5_000)
    log = SegmentLog(files, segment_bytes=100)
    log.load()
    for index in range(1, 6):
        log.append([entry(index, size_bytes=90)])
        log.sync()
    names = files.names()
    assert len(names) > 2
    assert [name for name in names if files.read(name).endswith(bytes(4_000))] == names[-1:]
    files.files[names[0]].data += bytes(100)
    with pytest.raises(Damaged, match="it ends within a record, but another file follows"):
        SegmentLog(files).load()


def test_zeros_that_could_not_be_cut_end_the_log() -> None:
    """Nobody knows whether the disk still has them, and a segment that another one follows must not."""
    files = FaultyFiles(padding_bytes=50)
    log = SegmentLog(files, segment_bytes=1)
    log.load()
    log.append([entry(1)])
    log.sync()
    files.fail_at = {len(files.calls) + 1: errno.EIO}
    with pytest.raises(SyncFailed):
        log.append([entry(2)])
    assert files.calls[-1] == "truncate"


def test_batch_beyond_a_frame_leaves_one_frame_unsynced() -> None:
    files = FaultyFiles()
    log = SegmentLog(files, frame_bytes=500)
    log.load()
    files.kill()
    log.append([entry(index, size_bytes=200) for index in range(1, 9)])
    assert files.calls == ["append", "sync", "append", "sync", "append", "sync", "append"]
    assert log.last_index == 8
    files.crash()
    assert SegmentLog(files).load().last_index in (6, 8)


def test_full_disk_within_a_large_batch_takes_all_of_it_back() -> None:
    files = FaultyFiles()
    log = SegmentLog(files, frame_bytes=500)
    log.load()
    files.kill()
    files.fail_at = {5: errno.ENOSPC}
    batch: list[Record] = [entry(index, size_bytes=200) for index in range(1, 9)]
    with pytest.raises(OSError, match="No space"):
        log.append(batch)
    assert SegmentLog(files).load().entries == []
    log.append(batch)
    log.sync()
    assert SegmentLog(files).load().entries == batch


def test_largest_record_fits_a_frame() -> None:
    record = Entry(1, 1, 1, b"")
    largest = Entry(1, 1, 1, bytes(RECORD_BYTES_MAX - len(encode_batch([record])) - 8))
    assert len(encode_batch([largest])) <= FRAME_BYTES_MAX
    files = FaultyFiles()
    log = SegmentLog(files)
    log.load()
    log.append([largest, Entry(2, 1, 1, b"next")])
    assert SegmentLog(files).load().last_index == 2


@pytest.mark.parametrize("lazy_sync", [False, True])
def test_durable_append_makes_all_before_it_durable_too(lazy_sync: bool) -> None:
    files = FaultyFiles()
    log = SegmentLog(files, lazy_sync=lazy_sync)
    log.load()
    log.append([entry(1)])
    log.append([entry(2)], durably=True)
    log.append([entry(3)], durably=True)
    files.crash()
    assert SegmentLog(files).load().last_index == 3


def test_durable_append_that_is_not_synced_ends_the_log() -> None:
    files = FaultyFiles()
    log = SegmentLog(files)
    log.load()
    files.fail_at = {len(files.calls) + 2: errno.ENOSPC}
    with pytest.raises(SyncFailed, match="No space left"):
        log.append([entry(1)], durably=True)
    with pytest.raises(SyncFailed):
        log.append([entry(1)], durably=True)


def test_durable_append_without_space_changes_nothing() -> None:
    files = FaultyFiles()
    log = SegmentLog(files)
    log.load()
    files.fail_at = {len(files.calls) + 1: errno.ENOSPC}
    with pytest.raises(OSError, match="No space left"):
        log.append([entry(1)], durably=True)
    log.append([entry(1)], durably=True)
    assert SegmentLog(files).load().last_index == 1


def test_failed_sync_ends_the_log() -> None:
    files = FaultyFiles()
    log = SegmentLog(files)
    log.load()
    log.append([entry(1)])
    files.fail_at = {len(files.calls) + 1: errno.EIO}
    with pytest.raises(SyncFailed, match="Input/output error"):
        log.sync()
    files.fail_at = {}
    for call in (
        log.sync,
        lambda: log.append([entry(2)]),
        lambda: log.drop_through(1),
        lambda: log.reset(Vote(1, None)),
    ):
        with pytest.raises(SyncFailed):
            call()


def test_cut_that_fails_after_a_failed_write_ends_the_log() -> None:
    files = FaultyFiles()
    log = SegmentLog(files)
    log.load()
    log.append([entry(1)])
    log.sync()
    calls = len(files.calls)
    files.fail_at = {calls + 1: errno.ENOSPC, calls + 2: errno.EIO}
    with pytest.raises(SyncFailed):
        log.append([entry(2)])
    files.crash()
    assert SegmentLog(files).load().entries == [entry(1)]


def test_segment_that_could_not_be_made_or_removed_is_made_by_the_next_try() -> None:
    files = FaultyFiles()
    log = SegmentLog(files, segment_bytes=1)
    log.load()
    calls = len(files.calls)
    files.fail_at = {calls + 2: errno.ENOSPC, calls + 3: errno.EIO}
    with pytest.raises(OSError, match="No space"):
        log.append([entry(1)])
    assert len(files.names()) == 2
    assert SegmentLog(FaultyFiles()).load().entries == []
    log.append([entry(1)])
    assert SegmentLog(files).load().entries == [entry(1)]


def test_log_in_a_real_directory(tmp_path: Path) -> None:
    files = DirectoryFiles(tmp_path)
    run = Run(files, 400, False)
    steps = [Step("append", [entry(index, size_bytes=100)]) for index in range(1, 30)]
    run.play([*steps, Step("sync"), Step("drop", index=10), Step("append", [Truncation(25), Vote(2, "x")])])
    files.close()
    with (tmp_path / files.names()[-1]).open("ab") as last:
        last.write(b"torn")
    run.files = files = DirectoryFiles(tmp_path)
    assert run.check(run.reload()) == 30
    run.log.append([entry(25, 2)])
    assert run.log.last_index == 25
    (tmp_path / files.names()[1]).write_bytes(b"")
    with pytest.raises(Damaged):
        run.reload()
    repair(files)
    assert run.reload().vote == Vote(2, "x")
    run.log.reset(Vote(3, None))
    assert run.reload() == LogImage(Vote(3, None), [], 0)
    files.close()
