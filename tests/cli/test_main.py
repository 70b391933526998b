"""The command line: commands, exit status, clear words."""

import json
import os
import signal
from http.client import HTTPConnection
from pathlib import Path

import pytest

from elasticq import BUILD, __version__
from elasticq.cli import main
from elasticq.server.settings import Settings, load
from tests.server.process import PATIENCE_S, Server


def test_memory_and_data_dir_exclude_each_other() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["server", "--memory", "--data-dir", "data"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--prot", "1"],
        ["config"],
        ["health", "a", "b"],
        ["--discovery", "dns"],
        ["--ack-mode", "quorum"],
        ["cluster"],
        ["cluster", "add"],
        ["cluster", "remove"],
        ["cluster", "replace"],
        ["cluster", "verify", "n1"],
        ["cluster", "force-new"],
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "70000"],
        ["--port", "x"],
        ["--nodes", "three"],
        ["--node-id", "a b"],
        ["-c", "/nowhere/e.toml"],
        ["--admin-port", "-2"],
        ["--nodes", "16"],
        ["--nodes", "3", "--discovery", "none"],
        ["--seeds", "a"],
        ["--nodes", "3", "--peer-host", "0.0.0.0"],
        ["--cluster-secret-file", "/nowhere/secret"],
        ["--cluster-name", "a b"],
    ],
)
def test_wrong_settings_exit_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("elasticq: ")


@pytest.mark.parametrize(
    ("option", "value", "taken"),
    [
        ("--port", "70000", "a whole number from 0 to 65535"),
        ("--port", "x", "a whole number from 0 to 65535"),
        ("--admin-port", "-2", "a whole number from -1 to 65535"),
        ("--nodes", "16", "a whole number from 1 to 15"),
        ("--peer-port", "1.5", "a whole number from 0 to 65535"),
    ],
)
def test_a_bad_value_is_told_with_its_option_and_range(
    option: str, value: str, taken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([option, value]) == 2
    assert capsys.readouterr().err == f"elasticq: {option} {value} is not {taken}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["server", "--help"], ["--version"]])
def test_help_and_version_exit_with_0(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(arguments)


def test_version_tells_which_build_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"elasticq {__version__}, {BUILD}\n"


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


def test_flags_of_the_cluster_reach_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret of some length")
    secret.chmod(0o600)
    seen: list[Settings] = []
    monkeypatch.setattr("elasticq.server.life.serve", lambda settings: seen.append(settings) or 0)
    flags = "--nodes 3 --cluster-name c --seeds a:1,b:2 --discovery zeroconf --peer-host 0.0.0.0 --peer-port 0"
    more = ["--cluster-secret-file", str(secret), "--ack-mode", "all", "--admin-port", "-1"]
    assert main([*flags.split(), *more]) == 0
    expected = {
        "nodes": 3,
        "name": "c",
        "seeds": ["a:1", "b:2"],
        "discovery": "zeroconf",
        "peer_host": "0.0.0.0",
        "peer_port": 0,
        "secret_file": str(secret),
        "ack_mode": "all",
    }
    assert {name: getattr(seen[0].cluster, name) for name in expected} == expected
    assert seen[0].admin.port == -1


def test_health_tells_alive_from_dead(capsys: pytest.CaptureFixture[str]) -> None:
    with Server("--memory", "--node-id", "n1") as server:
        assert main(["health", server.url]) == 0
        url = server.url
    assert main(["health", url]) == 1
    assert "does not answer" in capsys.readouterr().err
    for wrong in ("ftp://x", "http://", "http://a:b", "localhost:9324"):
        assert main(["health", wrong]) == 2


def ask(server: Server, action: str, **parameters: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"}
    connection.request("POST", "/", json.dumps(parameters), headers)
    answer = connection.getresponse()
    assert answer.status == 200
    return answer.read()


def send(server: Server, body: str) -> None:
    ask(server, "CreateQueue", QueueName="orders")
    ask(server, "SendMessage", QueueUrl=f"{server.url}/000000000000/orders", MessageBody=body)


def test_a_backup_is_restored_to_a_new_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, file, restored = (str(tmp_path / name) for name in ("original", "backup", "restored"))
    with Server("--data-dir", original) as server:
        send(server, "kept")
        assert main(["backup", original, file]) == 4
        assert "stop the server first" in capsys.readouterr().err
        server.stop(signal.SIGKILL)
    assert main(["backup", original, file]) == 0
    assert "messages: 1" in capsys.readouterr().out
    assert main(["backup", original, file]) == 1
    assert main(["restore", file, restored]) == 0
    assert main(["restore", file, restored]) == 1
    with Server("--data-dir", restored) as server:
        assert b"kept" in ask(server, "ReceiveMessage", QueueUrl=f"{server.url}/000000000000/orders")
        assert server.stop() == 0


def test_repair_makes_a_damaged_directory_usable_and_says_what_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    with Server("--data-dir", str(data)) as server:
        send(server, "kept")
        assert server.stop() == 0
    segment = max((data / "log").iterdir())
    damaged = bytearray(segment.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    segment.write_bytes(damaged)
    assert main(["--data-dir", str(data), "--port", "0"]) == 1
    assert "elasticq repair" in capsys.readouterr().err
    assert main(["repair", str(data)]) == 0
    assert "Lost: every later entry" in capsys.readouterr().out
    with Server("--data-dir", str(data)) as server:
        assert b"kept" in ask(server, "ReceiveMessage", QueueUrl=f"{server.url}/000000000000/orders")


def test_repair_sets_unreadable_rows_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    with Server("--data-dir", str(data)) as server:
        send(server, "in the log")
        assert server.stop() == 0
    (data / "rows.db").write_bytes(b"x" * 10_000)
    assert main(["--data-dir", str(data), "--port", "0"]) == 1
    assert "rows.db" in capsys.readouterr().err
    assert main(["repair", str(data)]) == 0
    assert "set aside" in capsys.readouterr().out
    with Server("--data-dir", str(data)) as server:
        ask(server, "ListQueues")


@pytest.mark.parametrize("arguments", [["backup", "none", "file"], ["restore", "none", "dir"], ["repair", "none"]])
def test_a_missing_source_is_told(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["shop.conf", "anything.conf", "kept.conf"])
def test_what_config_check_prints_is_a_file_with_the_same_settings(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = Path(__file__).parents[1] / "system" / "migration" / "examples" / name
    properties = ['-Dqueues."odd.fifo".fifo=true', "-Daws.region=here"]
    assert main(["config", "check", *properties, str(example)]) == 0
    file = tmp_path / "printed.toml"
    file.write_text(capsys.readouterr().out)
    given = [('queues."odd.fifo".fifo', "true"), ("aws.region", "here")]
    assert load(file, {}, {}) == load(example, os.environ, {}, given)
    assert main(["config", "check", f"-Dconfig.file={file}"]) == 0
    assert capsys.readouterr().out == file.read_text()


def test_config_check_names_what_elasticmq_would_have_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "elasticmq.conf"
    file.write_text("rest-sqs.bindPort = 1")
    assert main(["config", "check", str(file)]) == 0
    assert "rest-sqs.bindPort is unknown and has no effect, did you mean rest-sqs.bind-port?" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "arguments", [["-Dconfig.file=a.conf", "--config", "b.conf"], ["-Dconfig.url=http://x"], ["-Drest-sqs.bind-port=x"]]
)
def test_properties_that_cannot_be_meant_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("elasticq: ")
