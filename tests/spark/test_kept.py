"""What is made once for a machine: whole, by whoever is first."""

import os
import subprocess
from pathlib import Path

import pytest

from elasticq.spark.kept import cache_directory, made_once, write_command


def test_it_is_made_once_and_nobody_sees_half_of_it(tmp_path: Path) -> None:
    made: list[Path] = []

    def fill(home: Path) -> None:
        made.append(home)
        assert not (tmp_path / "home").exists()
        (home / "a").write_text("b")

    assert made_once(tmp_path / "home", fill) == made_once(tmp_path / "home", fill) == tmp_path / "home"
    assert (tmp_path / "home" / "a").read_text() == "b"
    assert len(made) == 1


def test_of_two_processes_the_first_one_wins_and_the_second_leaves_nothing(tmp_path: Path) -> None:
    def fill(home: Path) -> None:
        (home / "a").write_text("second")
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "a").write_text("first")

    assert (made_once(tmp_path / "home", fill) / "a").read_text() == "first"
    assert os.listdir(tmp_path) == ["home"]


def test_a_command_can_be_run_and_the_cache_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command = cache_directory("things") / "command"
    write_command(command, "#!/bin/sh\necho here\n")
    assert command == tmp_path / "elasticq" / "things" / "command"
    assert subprocess.run([str(command)], capture_output=True, text=True, check=True).stdout == "here\n"
