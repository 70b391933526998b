"""The Containerfile: its instructions hold for the server that is in it."""

import json
import re
import shlex
from pathlib import Path

import pytest

from elasticq import __version__
from elasticq.cli import main
from elasticq.server import life
from elasticq.server.settings import Settings, load

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "deploy" / "container" / "Containerfile").read_text()


def instructions() -> dict[str, list[str]]:
    """Their arguments by name, continued lines joined."""
    found: dict[str, list[str]] = {}
    for line in TEXT.replace("\\\n", " ").splitlines():
        if line and not line.startswith("#"):
            name, arguments = line.split(None, 1)
            found.setdefault(name, []).append(arguments)
    return found


def variables() -> dict[str, str]:
    return dict(part.split("=", 1) for line in instructions()["ENV"] for part in shlex.split(line))


def test_container_serves_what_its_ports_and_volume_say(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []
    monkeypatch.setattr(life, "serve", lambda settings: seen.append(settings) or 0)
    monkeypatch.delenv("ELASTICQ_ADMIN__PORT")
    for name, value in variables().items():
        monkeypatch.setenv(name, value)
    assert json.loads(instructions()["ENTRYPOINT"][0]) == ["elasticq"]
    assert main([]) == 0
    (settings,) = seen
    assert instructions()["EXPOSE"] == [f"{settings.http.port} {settings.admin.port}"]
    assert (settings.http.host, settings.admin.host) == ("0.0.0.0", "0.0.0.0")
    (place,) = instructions()["WORKDIR"]
    assert instructions()["VOLUME"] == [str(Path(place) / settings.storage.data_dir)]


def test_container_can_be_a_proxy() -> None:
    settings = load(None, variables() | {"ELASTICQ_CLUSTER__ROLE": "proxy", "ELASTICQ_CLUSTER__SEEDS": "n1:9326"}, {})
    assert settings.cluster.role == "proxy"


def test_user_is_a_number_and_not_root() -> None:
    """Kubernetes cannot tell of a name whether it is root."""
    (user,) = instructions()["USER"]
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
    assert f"chown {user} /data" in TEXT


def test_health_is_asked_by_the_command_itself() -> None:
    (check,) = instructions()["HEALTHCHECK"]
    assert json.loads(check.split("CMD ")[1]) == ["elasticq", "health"]


def test_file_is_unpacked_when_the_image_is_built() -> None:
    """As root, before USER, into a place that later starts only read (tests/system/dist/test_pyz.py)."""
    order = [TEXT.index(part) for part in ("COPY", "SHIV_ROOT=/opt/elasticq", "RUN elasticq --version", "USER")]
    assert order == sorted(order)


def test_only_the_one_file_is_sent_to_the_builder() -> None:
    assert "dist/elasticq.pyz /usr/local/bin/elasticq" in instructions()["COPY"][0]
    assert (ROOT / ".dockerignore").read_text().split() == ["*", "!dist/elasticq.pyz"]


def test_comment_names_this_version() -> None:
    assert f"-t elasticq:{__version__} ." in TEXT
