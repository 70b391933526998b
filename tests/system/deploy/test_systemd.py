"""The unit of systemd: what it promises the server keeps."""

import configparser
import shlex
from pathlib import Path

import pytest

from elasticq.cli import main
from elasticq.cli.exits import EXIT_DATA_IN_USE, EXIT_USAGE
from elasticq.server import life
from elasticq.server.ports import EXIT_PORT_TAKEN
from elasticq.server.settings import Settings

UNIT = Path(__file__).resolve().parents[3] / "deploy" / "systemd" / "elasticq.service"


@pytest.fixture
def service() -> dict[str, list[str]]:
    """The keys of [Service], each as often as it is there."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif section == "Service" and line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


def test_unit_is_well_formed() -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read(UNIT)
    assert parser.sections() == ["Unit", "Service", "Install"]


def test_unit_waits_for_the_notification_of_the_main_process(service: dict[str, list[str]]) -> None:
    assert (service["Type"], service["NotifyAccess"]) == (["notify"], ["main"])


def test_command_serves_from_the_directories_that_systemd_makes(
    service: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Settings] = []
    monkeypatch.setattr(life, "serve", lambda settings: seen.append(settings) or 0)
    (tmp_path / "elasticq.toml").write_text("[http]\nport = 4242\n")
    assert service["StateDirectory"] == service["ConfigurationDirectory"] == ["elasticq"]
    (line,) = service["ExecStart"]
    line = line.replace("${CONFIGURATION_DIRECTORY}", str(tmp_path)).replace("${STATE_DIRECTORY}", "state")
    command, *arguments = shlex.split(line)
    assert Path(command).is_absolute()
    assert main(arguments) == 0
    assert (seen[0].http.port, seen[0].storage.data_dir) == (4242, "state")


def test_failures_that_no_restart_mends_are_final(service: dict[str, list[str]]) -> None:
    final = {int(status) for status in service["RestartPreventExitStatus"][0].split()}
    assert final == {EXIT_USAGE, EXIT_PORT_TAKEN, EXIT_DATA_IN_USE}
    assert service["Restart"] == ["on-failure"]


def test_service_has_a_user_of_its_own_and_may_do_little(service: dict[str, list[str]]) -> None:
    assert service["DynamicUser"] == service["NoNewPrivileges"] == service["ProtectHome"] == ["yes"]
    assert service["CapabilityBoundingSet"] == [""]
    assert service["ProtectSystem"] == ["strict"]
    assert "SHIV_ROOT=%C/elasticq" in service["Environment"], "it has no home to unpack into"
    # Peers and clients, the notification, and the list of interfaces.
    assert set(service["RestrictAddressFamilies"][0].split()) == {"AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"}
