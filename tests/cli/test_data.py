"""Commands on a data directory: what they print, and the status that tells a directory in use from a damaged one."""

from pathlib import Path

import pytest

from elasticq.cli import main
from elasticq.storage.directory import DataDirectory


def test_a_backup_becomes_a_directory_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    DataDirectory(tmp_path / "data", "a").close()
    assert main(["backup", str(tmp_path / "data"), str(tmp_path / "file")]) == 0
    assert main(["restore", str(tmp_path / "file"), str(tmp_path / "again")]) == 0
    assert capsys.readouterr().err == ""
    assert main(["verify", str(tmp_path / "file")]) == 0
    with pytest.raises(SystemExit):
        main(["backup"])
    assert main(["repair", str(tmp_path / "again")]) == 0


def test_a_directory_in_use_has_a_status_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = DataDirectory(tmp_path / "data", "a")
    assert main(["backup", str(tmp_path / "data"), str(tmp_path / "file")]) == 4
    held.close()
    assert main(["restore", str(tmp_path / "file"), str(tmp_path / "again")]) == 1
    assert [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()] == ["elasticq", "elasticq"]
