"""The file layer under the log, on a real directory."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from elasticq.storage.files import PADDING_BYTES, DirectoryFiles, NotSynced


@pytest.fixture
def files(tmp_path: Path) -> Iterator[DirectoryFiles]:
    made = DirectoryFiles(tmp_path)
    yield made
    made.close()


def test_what_is_appended_stands_at_the_end_also_after_a_cut_and_by_another_process(files: DirectoryFiles) -> None:
    files.create("log-1")
    files.append("log-1", b"one two")
    files.truncate("log-1", 4)
    files.append("log-1", b"three")
    files.sync("log-1")
    other = DirectoryFiles(files.directory)
    other.append("log-1", b" four")
    other.close()
    assert files.read("log-1") == b"one three four"


def test_a_file_is_created_once_and_closed_to_others(files: DirectoryFiles, tmp_path: Path) -> None:
    files.create("log-1")
    with pytest.raises(FileExistsError):
        files.create("log-1")
    assert (tmp_path / "log-1").stat().st_mode & 0o777 == 0o600


def test_names_are_those_of_files_in_order_and_a_removed_one_is_gone(files: DirectoryFiles, tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    for name in ("log-2", "log-1", "log-3"):
        files.create(name)
    files.remove("log-2")
    assert files.names() == ["log-1", "log-3"]
    with pytest.raises(FileNotFoundError):
        files.append("log-2", b"x")


def test_an_append_writes_all_though_the_system_takes_pieces(
    files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite = os.pwrite
    files.create("log-1")
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, offset: pwrite(descriptor, data[:3], offset))
    files.append("log-1", b"ten bytes!")
    assert files.read("log-1") == b"ten bytes!"


Pwritev = Callable[[int, Sequence[bytes], int, int], int]


def systems_write(monkeypatch: pytest.MonkeyPatch, pwritev: Pwritev) -> list[str]:
    """Have ``pwritev`` answer for the system; returns the names of the calls that the files make."""
    calls: list[str] = []
    fdatasync = os.fdatasync

    def recorded(descriptor: int, buffers: Sequence[bytes], offset: int, flags: int) -> int:
        calls.append("pwritev")
        assert flags == os.RWF_DSYNC
        return pwritev(descriptor, buffers, offset, flags)

    def synced(descriptor: int) -> None:
        calls.append("fdatasync")
        fdatasync(descriptor)

    monkeypatch.setattr(os, "pwritev", recorded)
    monkeypatch.setattr(os, "fdatasync", synced)
    return calls


def test_a_durable_append_is_one_call_of_the_system(files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = systems_write(monkeypatch, os.pwritev)
    files.create("log-1")
    files.append("log-1", b"one ")
    files.append_durably("log-1", b"two ")
    files.append_durably("log-1", b"three")
    assert calls == ["pwritev", "pwritev"]
    assert files.read("log-1").rstrip(b"\0") == b"one two three"


def test_durable_appends_go_into_zeros_that_the_file_has_already(files: DirectoryFiles, tmp_path: Path) -> None:
    """Nothing of the file's metadata changes then, which is what makes them fast (ADR 0034)."""
    files.create("log-1")
    sizes = set()
    for number in range(1, 101):
        files.append_durably("log-1", b"%03d " % number * 256)
        sizes.add((tmp_path / "log-1").stat().st_size)
    assert sizes == {1_024 + PADDING_BYTES}
    for number in range(101, 1_001):
        files.append_durably("log-1", b"%03d " % number * 256)
    files.trim("log-1")
    written = b"".join(b"%03d " % number * 256 for number in range(1, 1_001))
    assert (tmp_path / "log-1").stat().st_size == len(written)
    files.append("log-1", b"more")
    assert files.read("log-1") == written + b"more"


def test_appends_without_a_sync_leave_no_zeros(files: DirectoryFiles) -> None:
    files.create("log-1")
    files.append("log-1", b"one")
    files.sync("log-1")
    assert files.read("log-1") == b"one"


def test_a_file_that_was_padded_before_is_continued_where_it_is_cut(files: DirectoryFiles) -> None:
    files.create("log-1")
    files.append_durably("log-1", b"one")
    other = DirectoryFiles(files.directory)
    other.truncate("log-1", 3)
    other.append_durably("log-1", b" two")
    other.close()
    assert files.read("log-1").rstrip(b"\0") == b"one two"


def test_what_the_system_leaves_of_a_durable_append_is_written_and_synced(
    files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwritev = os.pwritev
    calls = systems_write(monkeypatch, lambda at, buffers, offset, flags: pwritev(at, [buffers[0][:3]], offset, flags))
    files.create("log-1")
    files.append_durably("log-1", b"ten bytes!")
    assert calls == ["pwritev", "fdatasync"]
    assert files.read("log-1") == b"ten bytes!"


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL])
def test_where_the_system_has_no_durable_write_it_is_asked_once(
    files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(descriptor: int, buffers: Sequence[bytes], offset: int, flags: int) -> int:
        raise OSError(code, os.strerror(code))

    calls = systems_write(monkeypatch, refuse)
    files.create("log-1")
    files.append_durably("log-1", b"one ")
    files.append_durably("log-1", b"two")
    assert calls == ["pwritev", "fdatasync", "fdatasync"]
    assert files.read("log-1") == b"one two"


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_write_that_took_place_and_could_not_be_synced_is_told_apart(
    files: DirectoryFiles, monkeypatch: pytest.MonkeyPatch, code: int, is_padded: bool
) -> None:
    """A full disk that took nothing is asked again; after a failed sync nobody knows what the disk has."""
    pwritev = os.pwritev
    takes = [False, True]

    def fail(descriptor: int, buffers: Sequence[bytes], offset: int, flags: int) -> int:
        if takes.pop(0):
            pwritev(descriptor, buffers, offset)
        raise OSError(code, os.strerror(code))

    files.create("log-1")
    if is_padded:
        files.append_durably("log-1", b"zero ")
    systems_write(monkeypatch, fail)
    with pytest.raises(OSError, match=os.strerror(code)) as nothing:
        files.append_durably("log-1", b"one")
    with pytest.raises(NotSynced):
        files.append_durably("log-1", b"two")
    assert type(nothing.value) is not NotSynced
    assert files.read("log-1").rstrip(b"\0") == (b"zero two" if is_padded else b"two")
