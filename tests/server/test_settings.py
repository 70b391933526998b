"""Settings: sources, bounds, and their documentation."""

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from elasticq.server.settings import SECTIONS, Settings, SettingsError, load
from tests.server.refusal import refusal

EXAMPLE = Path(__file__).parents[2] / "conf" / "elasticq.toml"


def test_later_sources_win(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text('[http]\nport = 1\nhost = "::1"\nidle_s = 7\n')
    environment = {"ELASTICQ_HTTP__PORT": "2", "ELASTICQ_HTTP__IDLE_S": "8", "ELASTICQ_OTHER": "x", "PATH": "x"}
    settings = load(file, environment, {"http": {"port": 3}})
    assert (settings.http.port, settings.http.idle_s, settings.http.host) == (3, 8, "::1")


def test_environment_reads_truth_values() -> None:
    assert load(None, {"ELASTICQ_NODE__SIXTY_SECOND_RULES": "true"}, {}).node.sixty_second_rules


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[http]\nprot = 1", "did you mean http.port?"),
        ("[htpp]\nport = 1", "did you mean http?"),
        ("[http]\nport = 70000", "http.port"),
        ("[http]\nport = 'x'", "http.port"),
        ("[http]\nidle_s = 0", "http.idle_s"),
        ("[http]\npublic_url = 'http://a/b'", "http.public_url"),
        ("[node]\naccount = '123'", "node.account"),
        ("[node]\nid = '../x'", "node.id"),
        ("[storage]\ndurability = 'fysnc'", "storage.durability"),
        ("[storage]\nreserve_mb = 31", "storage.reserve_mb"),
        ("[cluster]\nnodes = 0", "cluster.nodes"),
        ("[cluster]\nnodes = 16", "cluster.nodes"),
        ("[cluster]\nname = ''", "cluster.name"),
        ("[cluster]\npeer_host = ''", "cluster.peer_host"),
        ("[cluster]\npeer_port = 65536", "cluster.peer_port"),
        ("[cluster]\nseeds = ['a:1', 2]", "cluster.seeds"),
        ("[cluster]\ndiscovery = 'dns'", "cluster.discovery"),
        ("[cluster]\nack_mode = 'quorum'", "cluster.ack_mode"),
        ("[cluster]\ntransfer_mb_per_s = 0", "cluster.transfer_mb_per_s"),
        ("[admin]\nport = -2", "admin.port"),
        ("[admin]\nport = 9324", "http.port and admin.port are both 9324: choose another one"),
        ("[http]\nhost = '0.0.0.0'\nport = 9326\n[cluster]\nnodes = 3", "http.port and cluster.peer_port are both"),
        ("http = 1", "unknown section http"),
        ("[http", "e.toml"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, told: str) -> None:
    assert told in refusal(tmp_path / "e.toml", text)


def test_ports_of_different_addresses_may_be_equal(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text("[http]\nhost = '127.0.0.2'\n[admin]\nhost = '127.0.0.1'\nport = 9324")
    assert load(file, {}, {}).admin.port == 9324


def test_missing_libraries_are_reported_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elasticq.server.settings.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"otel\.enabled needs OpenTelemetry"):
        load(None, {"ELASTICQ_OTEL__ENABLED": "true"}, {})


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml"):
        load(tmp_path / "none.toml", {}, {})


def test_unknown_environment_setting_is_told() -> None:
    with pytest.raises(SettingsError, match=r"the environment: unknown setting http\.prt, did you mean http\.port"):
        load(None, {"ELASTICQ_HTTP__PRT": "1"}, {})


def test_a_bad_value_is_told_by_the_name_that_it_was_given_under(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text("[http]\nport = 70000\n")
    with pytest.raises(SettingsError, match=re.escape(f"{file}: http.port 70000 is not a whole number")):
        load(file, {}, {})
    with pytest.raises(SettingsError, match=r"^ELASTICQ_HTTP__PORT x is not a whole number from 0 to 65535$"):
        load(file, {"ELASTICQ_HTTP__PORT": "x"}, {})
    with pytest.raises(SettingsError, match=r"^--port -1 is not a whole number from 0 to 65535$"):
        load(file, {}, {"http": {"port": -1}}, options={"http.port": "--port"})


def test_no_error_has_a_path_of_json(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text("[[auth.keys]]\naccess_key_id = 'a'\n")
    with pytest.raises(SettingsError, match="secret_access_key") as caught:
        load(file, {}, {})
    assert "$" not in str(caught.value)


def test_the_example_documents_every_setting_with_its_default(tmp_path: Path) -> None:
    text = re.sub(r"(?m)^# (?=[a-z_]+ = )", "", EXAMPLE.read_text())
    documented = tomllib.loads(text)
    assert documented == msgspec.to_builtins(Settings())
    assert set(documented) == set(SECTIONS)
    assert load(EXAMPLE, {}, {}) == Settings()


def test_networks_that_get_no_notifications_are_networks() -> None:
    settings = load(None, {"ELASTICQ_PUSH__REFUSED_NETWORKS": "10.0.0.0/8, fe80::/10"}, {})
    assert settings.push.refused_networks == ["10.0.0.0/8", "fe80::/10"]
    with pytest.raises(SettingsError, match=r"^push.refused_networks: 10.0.0.1/8 is not a network$"):
        load(None, {"ELASTICQ_PUSH__REFUSED_NETWORKS": "10.0.0.1/8"}, {})
