"""The data directory: one process at a time, one member for ever, nothing foreign."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from elasticq.storage.directory import DataDirectory
from elasticq.storage.errors import DataError, DirectoryInUse, WrongFormat


def test_a_directory_is_made_for_its_owner_only_and_keeps_its_member(tmp_path: Path) -> None:
    path = tmp_path / "a" / "data"
    first = DataDirectory(path, "node1")
    assert re.fullmatch(r"node1-[0-9a-f]{16}", first.member_id)
    assert path.stat().st_mode & 0o777 == 0o700
    assert first.log.is_dir()
    first.close()
    again = DataDirectory(path, "renamed")
    assert again.member_id == first.member_id
    again.close()


def test_a_directory_remembers_that_its_member_was_removed_until_it_is_a_voter_again(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data", "a")
    assert not directory.was_removed
    directory.remember_removed(False)
    directory.remember_removed(True)
    directory.remember_removed(True)
    directory.close()
    again = DataDirectory(tmp_path / "data", "a")
    assert again.was_removed
    again.remember_removed(False)
    assert not again.was_removed
    again.close()


def test_two_directories_are_two_members(tmp_path: Path) -> None:
    one, other = DataDirectory(tmp_path / "one", "a"), DataDirectory(tmp_path / "other", "a")
    assert one.member_id != other.member_id
    one.close()
    other.close()


def test_a_second_user_is_refused_until_the_first_closes(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path / "data", "a")
    with pytest.raises(DirectoryInUse, match="stop the server first"):
        DataDirectory(tmp_path / "data")
    first.close()
    DataDirectory(tmp_path / "data").close()


def test_the_lock_goes_with_its_process(tmp_path: Path) -> None:
    code = (
        "import os, sys, pathlib; from elasticq.storage.directory import DataDirectory\n"
        "directory = DataDirectory(pathlib.Path(sys.argv[1]), 'a'); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "data")], timeout=30)
    assert done.returncode == 9
    DataDirectory(tmp_path / "data").close()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "format.json").write_text(json.dumps({"elasticq": 99, "something": "new"}))
    with pytest.raises(WrongFormat, match="format 99"):
        DataDirectory(tmp_path, "a")
    assert json.loads((tmp_path / "format.json").read_text())["elasticq"] == 99


def test_a_directory_from_before_the_first_release_is_refused(tmp_path: Path) -> None:
    text = json.dumps({"format": 8, "member_id": "a-1", "created": 1, "lazy_sync": False})
    (tmp_path / "format.json").write_text(text)
    with pytest.raises(WrongFormat, match="before the first release"):
        DataDirectory(tmp_path, "a")
    assert (tmp_path / "format.json").read_text() == text


def test_an_older_format_is_raised_to_that_of_this_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = DataDirectory(tmp_path / "data", "a")
    old.close()
    monkeypatch.setattr("elasticq.storage.directory.FORMAT", old.format.format + 1)
    new = DataDirectory(tmp_path / "data")
    new.close()
    written = json.loads((tmp_path / "data" / "format.json").read_text())
    assert (written["elasticq"], written["member_id"]) == (old.format.format + 1, old.member_id)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"elasticq": 1}', '{"elasticq": "x", "member_id": "a", "created": 1}']
)
def test_a_damaged_format_file_is_told_and_kept(tmp_path: Path, text: str) -> None:
    (tmp_path / "format.json").write_text(text)
    with pytest.raises(DataError, match=r"format\.json is damaged"):
        DataDirectory(tmp_path, "a")
    assert (tmp_path / "format.json").read_text() == text


def test_a_making_that_was_interrupted_is_done_again(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "format.json.new").write_text('{"form')
    directory = DataDirectory(tmp_path, "a")
    assert directory.member_id.startswith("a-")
    directory.close()


def test_foreign_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").touch()
    with pytest.raises(DataError, match="holds files"):
        DataDirectory(tmp_path, "a")
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


def test_a_tool_makes_no_directory(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such directory"):
        DataDirectory(tmp_path / "none")
    with pytest.raises(DataError, match=r"no format\.json"):
        DataDirectory(tmp_path)


def test_a_file_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(DataError):
        DataDirectory(tmp_path / "data", "a")
