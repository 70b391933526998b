"""The compose files: their settings, ports and names fit each other, and their processes form a cluster."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from elasticq import __version__
from elasticq.client import Sqs
from elasticq.server.settings import Settings, load
from tests.system.cluster.cluster import HOST, ask, kept_port, until
from tests.system.deploy.test_container import variables

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "compose"
FILES = {name: yaml.safe_load((FOLDER / name).read_text()) for name in ("compose.yaml", "compose.proxy.yaml")}
SERVICES: dict[str, dict[str, Any]] = {name: row for file in FILES.values() for name, row in file["services"].items()}
SECRET = "/run/secrets/cluster-secret"


def environment(service: str) -> dict[str, str]:
    """The variables of a service's container: those of the image, then its own."""
    return variables() | SERVICES[service]["environment"]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text("a secret of this test only\n")
    file.chmod(0o600)
    return file


def settings_of(service: str, secret: Path) -> Settings:
    given = environment(service)
    assert given["ELASTICQ_CLUSTER__SECRET_FILE"] == SECRET
    return load(None, given | {"ELASTICQ_CLUSTER__SECRET_FILE": str(secret)}, {})


@pytest.mark.parametrize("service", SERVICES)
def test_settings_fit_what_the_file_says_of_the_container(service: str, secret: Path) -> None:
    row, settings = SERVICES[service], settings_of(service, secret)
    assert settings.node.id == service == row["hostname"]
    published = [each.rsplit(":", 2) for each in row["ports"]]
    assert [inside for _, _, inside in published] == [str(settings.http.port), str(settings.admin.port)]
    assert {host for host, _, _ in published} == {"127.0.0.1"}
    assert settings.admin.public_url == f"http://127.0.0.1:{published[1][1]}"
    assert (settings.http.host, settings.admin.host) == ("0.0.0.0", "0.0.0.0")
    assert row["secrets"] == [SECRET.rpartition("/")[2]] == list(FILES["compose.yaml"]["secrets"])
    assert row["image"] == f"${{ELASTICQ_IMAGE:-elasticq:{__version__}}}"
    assert "command" not in row
    assert "entrypoint" not in row  # the image's, without arguments: elasticq server
    if settings.cluster.role == "member":
        assert row["volumes"] == [f"{service}:{Path('/') / settings.storage.data_dir}"]
        assert settings.cluster.advertise == f"{service}:{settings.cluster.peer_port}"
        assert settings.cluster.peer_host == "0.0.0.0"


def test_services_know_each_other_and_share_no_port(secret: Path) -> None:
    members = [name for name in SERVICES if settings_of(name, secret).cluster.role == "member"]
    assert members == list(FILES["compose.yaml"]["services"]) == list(FILES["compose.yaml"]["volumes"])
    for name in SERVICES:
        cluster = settings_of(name, secret).cluster
        assert list(cluster.seeds) == [f"{each}:{cluster.peer_port}" for each in members]
        assert name == "proxy" or cluster.nodes == len(members)
    published = [port.rpartition(":")[0] for row in SERVICES.values() for port in row["ports"]]
    assert len(set(published)) == len(published)


def _here(value: str, folder: Path, peers: dict[str, str]) -> str:
    for name, address in peers.items():
        value = value.replace(f"{name}:9326", address)
    return {"0.0.0.0": HOST, SECRET: str(folder / "secret")}.get(value, value)


class Container:
    """The process of a service, with its environment; only addresses and paths are this machine's."""

    def __init__(self, service: str, folder: Path, peers: dict[str, str]) -> None:
        self.keepers = [kept_port() for _ in range(2)]
        self.http, self.admin = (keeper.getsockname()[1] for keeper in self.keepers)
        self._log = (folder / f"{service}.log").open("wb")
        place = folder / service
        place.mkdir()
        given = {name: _here(value, folder, peers) for name, value in environment(service).items()}
        ports = {"HTTP__PORT": str(self.http), "ADMIN__PORT": str(self.admin)}
        if service in peers:
            ports["CLUSTER__PEER_PORT"] = peers[service].rpartition(":")[2]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ELASTICQ_")}
        pure = {"ELASTICQ_PURE": os.environ["ELASTICQ_PURE"]} if "ELASTICQ_PURE" in os.environ else {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "elasticq"],
            cwd=place,
            env={
                **kept,
                "PYTHONPATH": str(ROOT),
                **pure,
                **given,
                **{f"ELASTICQ_{name}": port for name, port in ports.items()},
            },
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def is_ready(self) -> bool:
        assert self.process.poll() is None, Path(self._log.name).read_text()
        try:
            return ask(self.admin, "GET", "/ready").status == 200
        except OSError:
            return False

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()
        for keeper in self.keepers:
            keeper.close()


@pytest.fixture
def containers(tmp_path: Path, secret: Path) -> Iterator[dict[str, Container]]:
    with ExitStack() as stack:
        keepers: dict[str, socket.socket] = {
            name: stack.enter_context(kept_port()) for name in FILES["compose.yaml"]["services"]
        }
        peers = {name: f"{HOST}:{keeper.getsockname()[1]}" for name, keeper in keepers.items()}
        found = {}
        for service in SERVICES:
            found[service] = Container(service, tmp_path, peers)
            stack.callback(found[service].end)
        yield found


def test_the_services_form_a_cluster_and_survive_the_loss_of_one(containers: dict[str, Container]) -> None:
    for name, container in containers.items():
        until(container.is_ready, f"{name} is ready")
    with Sqs(f"http://{HOST}:{containers['proxy'].http}", "us-east-1") as sqs:
        url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody="kept")
        page = ask(containers["n1"].admin, "GET", "/cluster").body
        assert [row["name"] for row in page["members"]] == ["n1", "n2", "n3"]
        assert page["proxies"] == ["proxy"]
        assert {row["admin"] for row in page["members"]} == {f"http://127.0.0.1:{port}" for port in (9325, 9335, 9345)}
        containers[str(page["master"])].process.send_signal(signal.SIGKILL)
        [message] = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=20)["Messages"]
        assert message["Body"] == "kept"
