"""Targets of what lies on a disk: frames and entries of the log, pages, files of rows, whole and damaged."""

import os
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import msgspec

from elasticq.engine import validation as engine_validation
from elasticq.engine.stored import mutations as m
from elasticq.replication.records import Base, Voter
from elasticq.storage import snapshot
from elasticq.storage.errors import DataError
from elasticq.storage.log import records
from elasticq.storage.log.acknowledged_end import End, LogEnd
from elasticq.storage.rows import pages
from elasticq.storage.rows.carve import carve
from elasticq.storage.rows.reading import damage_found
from elasticq.storage.rows.salvage import salvage
from elasticq.storage.rows.schema import PAGE_BYTES
from tests.storage.damaged import entries_of
from tests.system.fuzz.choices import Builder, Choices
from tests.system.fuzz.target import Target, check_told

_folder = TemporaryDirectory(prefix="elasticq-fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
FOLDER = Path(_folder.name)


def _changed(choices: Choices, data: bytes) -> bytes:
    """With some of its bytes changed, a part of it gone or zeroed."""
    changed = bytearray(data)
    for _ in range(choices.below(6)):
        at = choices.below(len(changed) + 1)
        kind = choices.below(4)
        if kind == 0:
            changed[at : at + 1] = choices.randbytes(1)
        elif kind == 1:
            changed[at : at + 512] = bytes(len(changed[at : at + 512]))
        elif kind == 2:
            del changed[at:]
        else:
            changed[at:at] = choices.blob()
    return bytes(changed)


# --- the log ----------------------------------------------------------------------------


class _Records(Builder):
    def text(self, name: str) -> str:
        return self.choices.choice(["a", "b-2", "127.0.0.1:9326"])

    def number(self, name: str) -> int:
        return self.choices.below(200)

    def value(self, kind: Any, name: str = "") -> Any:
        if name == "payload":
            return m.encode([])
        return super().value(kind, name)


def judge_records(data: bytes) -> None:
    """Frames that are whole are read as they were written; damage ends the reading and is never taken for a record."""
    choices = Choices(data)
    kinds = records.Record.__args__  # type: ignore[attr-defined]
    crc, stream, written = records.FIRST_CRC, b"", []
    for _ in range(choices.below(4)):
        built = [_Records(choices, is_strict=True).struct(choices.choice(kinds)) for _ in range(choices.below(3))]
        payload = msgspec.msgpack.encode(built)
        try:
            written.append(records._decoder.decode(payload))
        except msgspec.DecodeError:
            return  # an id that cannot be
        frame = records.encode_frame(payload, crc)
        stream, crc = stream + frame, records.crc_of(frame)
    whole = records.scan_frames(stream, 0, records.FIRST_CRC, False)
    assert [batch.records for batch in whole.batches] == written
    assert (whole.end, whole.torn, whole.damage) == (len(stream), False, "")
    damaged = _changed(choices, stream) + choices.rest()
    for any_may_be_torn in (False, True):
        read = records.scan_frames(damaged, 0, records.FIRST_CRC, any_may_be_torn)
        assert not (read.torn and read.damage)
        again = records.scan_frames(damaged[: read.end], 0, records.FIRST_CRC, any_may_be_torn)
        assert (again.batches, again.torn, again.damage) == (read.batches, False, ""), "what was read is not whole"
        is_all_read = not damaged[read.end :].strip(b"\0")  # zeros are what a log's file is filled up with
        assert is_all_read or read.torn or read.damage, "something is passed over in silence"


class _Rows(Builder):
    """Numbers that may be sequences and times, texts that may be names."""

    def number(self, name: str) -> int:
        return self.choices.below(300) if self.choices.below(4) else self.choices.number()


def judge_entries(data: bytes) -> None:
    """Payloads of entries: what is read is written and read again, and judged without failing."""
    choices = Choices(data)
    if choices.flag():
        payload = choices.rest()
    else:
        kinds = m.Mutation.__args__
        built = [_Rows(choices).struct(choices.choice(kinds)) for _ in range(choices.below(3) + 1)]
        payload = msgspec.msgpack.encode(built)
    try:
        read = m.decode(payload)
    except m.UnknownMutation:
        return
    written = m.encode(read)
    assert m.encode(m.decode(written)) == written
    assert m.join([written, written]) == m.encode(read + read)
    try:
        engine_validation.validate(read, 2, 3)
    except engine_validation.Unfit as unfit:
        check_told(unfit)


def judge_log_end(data: bytes) -> None:
    """The file that tells the log's end: what was told is read, anything else says nothing."""
    choices = Choices(data)
    file = FOLDER / "log.end"
    file.unlink(missing_ok=True)
    end = End(choices.below(1 << 63), choices.below(1 << 40))
    with closing(LogEnd(file)) as told:
        told.tell(end)
        assert LogEnd(file).read() == end
    whole = file.read_bytes()
    changed = _changed(choices, whole) + choices.rest()
    file.write_bytes(changed)
    read = LogEnd(file).read()
    assert read is None or len(changed) == len(whole)
    assert read is None or read == end or crc32(changed[:16]) == int.from_bytes(changed[16:], "little")


# --- pages ------------------------------------------------------------------------------


def _messages(choices: Choices) -> list[m.MessageStored]:
    first, found = choices.below(1 << 40), []
    for _ in range(choices.below(12) + 1):
        group = choices.choice([None, "a", "b", "\u00e9"])
        first += choices.below(3) + 1
        body = choices.text()
        deliver_ms = choices.choice([0, 0, 1_000, 1 << 41])
        found.append(m.MessageStored(1, first, body, 7, "sender", group_id=group, visible_at_ms=deliver_ms))
    return found


def judge_pages(data: bytes) -> None:
    """Pages of messages: written and read they are the same; damaged rows of them are told as damage."""
    choices = Choices(data)
    messages = _messages(choices)
    for run in pages.cut(messages):
        page, contents = pages.make_page(run, {})
        assert pages.decode_contents(contents) == run
        assert pages.sequences_of(page.live, page.first) == [message.sequence for message in run]
        groups = pages.encode_groups(run, needs_groups=False)
        if groups:
            names, sequences, places = pages.living_groups(page, groups)
            told = {sequence: names[place] for sequence, place in zip(sequences, places, strict=True)}
            assert told == {message.sequence: message.group_id for message in run if message.group_id is not None}
        priorities = {message.sequence: choices.below(5) for message in run}
        packed = pages.encode_priorities(page.first, priorities, are_all=True)
        assert pages.living_priorities(page, packed) == priorities
        delays = pages.encode_delays(run)
        if delays:
            mask, sequences, times_ms = pages.living_delays(page, delays)
            assert pages.sequences_of(mask, page.first) == sequences
            told_ms = {message.sequence: message.visible_at_ms for message in run if message.visible_at_ms}
            assert dict(zip(sequences, times_ms, strict=True)) == told_ms
        for read, row in (
            (pages.living_groups, groups),
            (pages.living_priorities, packed),
            (pages.living_delays, delays),
        ):
            changed = _changed(choices, row)
            try:
                with damage_found("a page"):
                    read(page, changed)
            except DataError:
                pass
            except (IndexError, OverflowError) as error:
                raise AssertionError(f"damage that is not told as damage: {error!r}") from error
        _check_masks(page, choices)


def _check_masks(page: pages.Page, choices: Choices) -> None:
    mask = choices.below(1 << 64) & page.live
    living = page.live.bit_count()
    assert page.remove(mask) == mask.bit_count()
    assert page.live.bit_count() == living - mask.bit_count()
    begins, ends = pages.ranges(page.live, page.first)
    assert sum(end - begin + 1 for begin, end in zip(begins, ends, strict=True)) == page.live.bit_count()


# --- files of rows ----------------------------------------------------------------------


@cache
def _whole() -> bytes:
    """A snapshot with every kind of row, as another member would send it."""
    file = FOLDER / "whole.db"
    parts = entries_of(1)[:14]
    snapshot.fill(file, Base(30, 2, 1_009, (Voter("a-1", "127.0.0.1:9326"), Voter("b-2"))), parts)
    return file.read_bytes()


def _damaged(choices: Choices) -> Path:
    """Bytes of the file are changed, mostly near the beginning of one of its pages, where its structure is."""
    changed = bytearray(_whole())
    for _ in range(choices.below(8)):
        number = choices.below(len(changed) // PAGE_BYTES)
        within = choices.below(128) if choices.flag() else choices.below(PAGE_BYTES)
        part = choices.blob() if choices.below(4) == 0 else choices.randbytes(1)
        at = number * PAGE_BYTES + within
        changed[at : at + len(part)] = part
    if choices.seldom():
        del changed[choices.below(len(changed)) :]
    file = FOLDER / "damaged.db"
    file.write_bytes(changed)
    return file


def judge_snapshot(data: bytes) -> None:
    """A snapshot of a member: it holds what it was made of, or is refused."""
    file = _damaged(Choices(data))
    try:
        base = snapshot.check(file)
    except DataError as error:
        check_told(error)
        return
    assert base.index == 30, "another index was read than was written"


def judge_salvage(data: bytes) -> None:
    """A damaged file of rows: what is got out of it can be read, or there is nothing to be got."""
    file, into = _damaged(Choices(data)), FOLDER / "salvaged.db"
    into.unlink(missing_ok=True)
    try:
        told = salvage(file, into, [])
    except DataError as error:
        check_told(error)
        return
    assert told.applied_index == 30
    with closing(sqlite3.connect(into)) as connection:
        assert snapshot.check_all(connection, into).index == 30


@cache
def _contents() -> dict[tuple[int, int], bytes]:
    file = FOLDER / "contents.db"
    file.write_bytes(_whole())
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("SELECT queue_id, first, contents FROM contents").fetchall()
    return {(queue_id, first): contents for queue_id, first, contents in rows}


def judge_carve(data: bytes) -> None:
    """What is carved out of damaged pages, or out of a page of any bytes, is what was written there."""
    choices = Choices(data)
    file = _damaged(choices)
    if choices.flag():
        page = bytearray(PAGE_BYTES)
        page[:1] = b"\x0d"
        body = choices.rest()
        page[1 : 1 + len(body)] = body[: PAGE_BYTES - 1]
        with file.open("ab") as opened:
            opened.write(page)
    expected = _contents()
    for key, contents in carve(file, set(expected)):
        assert expected[key] == contents, "other contents than were written"


TARGETS = {
    "records": Target(judge_records, [bytes(range(at, at + 100)) for at in range(0, 130, 4)], (), 2_000),
    "entries": Target(
        judge_entries, [b"\0" + bytes((at,)) * 2 + bytes(range(at, at + 80)) for at in range(0, 130, 2)], (), 1_000
    ),
    "log_end": Target(judge_log_end, [bytes(range(at, at + 40)) for at in range(0, 60, 10)], (), 200),
    "pages": Target(judge_pages, [bytes(range(at, at + 100)) for at in range(0, 130, 4)], (), 1_500),
    "snapshot": Target(judge_snapshot, [b"\0", *(bytes(range(at, at + 30)) for at in range(0, 200, 4))], (), 300),
    "salvage": Target(judge_salvage, [b"\0", *(bytes(range(at, at + 30)) for at in range(0, 200, 4))], (), 300),
    "carve": Target(judge_carve, [b"\0", *(bytes(range(at, at + 30)) for at in range(0, 200, 4))], (), 4_200),
}
