"""The file layer under the log, on a real directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from elasticq.storage.files import DirectoryFiles


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
    import os

    write = os.write
    files.create("log-1")
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    files.append("log-1", b"ten bytes!")
    assert files.read("log-1") == b"ten bytes!"
