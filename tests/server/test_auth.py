"""Settings of the authenticator: keys and their file, the token, origins and hosts, TLS files."""

from pathlib import Path

import pytest

from elasticq.cli import main
from elasticq.server.settings import SettingsError, admin_token, keys, load, warnings
from elasticq.wire.sigv4 import Key

PAIR = '[[keys]]\naccess_key_id = "AKID"\nsecret_access_key = "canary"\n'


def closed(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def refused(auth: dict[str, object], section: str = "auth") -> str:
    with pytest.raises(SettingsError) as caught:
        load(None, {}, {section: auth})
    assert "canary" not in str(caught.value)
    return str(caught.value)


def test_keys_come_from_settings_and_file(tmp_path: Path) -> None:
    file = closed(tmp_path / "keys", PAIR + 'account = "111111111111"\n')
    more = [{"access_key_id": "AKID2", "secret_access_key": "canary2"}]
    settings = load(None, {}, {"auth": {"mode": "strict", "keys": more, "keys_file": file}})
    assert keys(settings) == [Key("AKID2", "canary2", "000000000000"), Key("AKID", "canary", "111111111111")]
    assert "canary" not in repr(settings) + repr(keys(settings))


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        (PAIR, 0o644, "chmod 600"),
        (PAIR, 0o640, "chmod 600"),
        (PAIR + PAIR, 0o600, "AKID is there twice"),
        ("keys = canary", 0o600, "not TOML"),
        ('secret = "canary"', 0o600, "keys.toml"),
        (PAIR + 'account = "1"', 0o600, "account"),
        (PAIR.replace("AKID", "A/KID"), 0o600, "access_key_id"),
        ("", 0o600, "keys.toml"),
    ],
)
def test_a_bad_keys_file_is_told_without_its_secrets(tmp_path: Path, text: str, mode: int, told: str) -> None:
    assert told in refused({"keys_file": closed(tmp_path / "keys.toml", text, mode)})


def test_strict_without_keys_is_refused() -> None:
    assert "--keys-file" in refused({"mode": "strict"})


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    assert "cannot be read" in refused({"keys_file": str(tmp_path / "none")})
    assert "cannot be read" in refused({"token_file": str(tmp_path / "none")}, "admin")


@pytest.mark.parametrize(
    "origin", ["*", "app.example.com", "https://app.example.com/path", "null", "https://*.example.com"]
)
def test_an_origin_is_scheme_and_host(origin: str) -> None:
    assert "auth.allowed_origins" in refused({"allowed_origins": [origin]})


def test_an_allowed_host_has_no_port_and_no_star() -> None:
    assert "auth.allowed_hosts" in refused({"allowed_hosts": ["a:1"]})
    assert "auth.allowed_hosts" in refused({"allowed_hosts": ["*"]})
    environment = {"ELASTICQ_AUTH__ALLOWED_HOSTS": "a.example, b.example"}
    assert load(None, environment, {}).auth.allowed_hosts == ["a.example", "b.example"]


def test_tls_needs_both_files() -> None:
    assert "go together" in refused({"tls_cert": "x"}, "http")
    assert "admin.tls_cert" in refused({"tls_cert": "none.pem", "tls_key": "none.pem"}, "admin")


def test_the_token_is_closed_and_long(tmp_path: Path) -> None:
    assert "at least 16" in refused({"token_file": closed(tmp_path / "short", "canary")}, "admin")
    assert "chmod 600" in refused({"token_file": closed(tmp_path / "open", "canary" * 4, 0o644)}, "admin")
    settings = load(None, {}, {"admin": {"token_file": closed(tmp_path / "token", "canary" * 4 + "\n")}})
    assert admin_token(settings) == "canary" * 4
    assert admin_token(load(None, {}, {})) == ""


def test_strict_without_a_token_closes_the_admin_port_and_says_so(tmp_path: Path) -> None:
    settings = load(None, {}, {"auth": {"mode": "strict", "keys_file": closed(tmp_path / "keys", PAIR)}})
    assert admin_token(settings) is None
    assert any("admin.token_file" in warning for warning in warnings(settings))


def test_an_open_admin_port_is_warned_of() -> None:
    settings = load(None, {}, {"admin": {"host": "0.0.0.0"}})
    assert any("THE ADMIN PORT IS OPEN" in warning for warning in warnings(settings))


def test_config_check_shows_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "e.toml"
    file.write_text(PAIR.replace("[[keys]]", "[[auth.keys]]"))
    assert main(["config", "check", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "AKID" in shown
    assert "canary" not in shown
