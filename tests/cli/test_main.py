"""The command line: commands, exit status, clear words."""

from pathlib import Path

import pytest

from elasticq.cli import main
from tests.server.process import Server


def test_data_dir_is_refused_until_there_is_durable_storage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data-dir", "data"]) == 2
    assert "durable storage is not in this version" in capsys.readouterr().err


def test_memory_and_data_dir_exclude_each_other() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["server", "--memory", "--data-dir", "data"])


@pytest.mark.parametrize("arguments", [["--prot", "1"], ["--port", "x"], ["config"], ["health", "a", "b"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)


@pytest.mark.parametrize("arguments", [["--port", "70000"], ["--node-id", "a b"], ["-c", "/nowhere/e.toml"]])
def test_wrong_settings_exit_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("elasticq: ")


@pytest.mark.parametrize("arguments", [["--help"], ["server", "--help"], ["--version"]])
def test_help_and_version_exit_with_0(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(arguments)


def test_config_check_prints_what_is_in_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "e.toml"
    file.write_text("[http]\nport = 4242\n")
    monkeypatch.setenv("ELASTICQ_NODE__REGION", "eu-west-1")
    assert main(["config", "check", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "port = 4242\n" in printed
    assert 'region = "eu-west-1"\n' in printed


def test_config_check_tells_a_misspelt_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "e.toml"
    file.write_text("[http]\nprot = 4242\n")
    assert main(["config", "check", str(file)]) == 2
    assert "did you mean http.port?" in capsys.readouterr().err


def test_health_tells_alive_from_dead(capsys: pytest.CaptureFixture[str]) -> None:
    with Server("--memory", "--node-id", "n1") as server:
        assert main(["health", server.url]) == 0
        url = server.url
    assert main(["health", url]) == 1
    assert "does not answer" in capsys.readouterr().err
    assert main(["health", "ftp://x"]) == 2
