"""The label of Kubernetes goes where the mastership goes."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest

from elasticq.cli.follow_master import LABEL, MASTER, Follower, Pod
from tests.system.cluster.cluster import Cluster, until


class Kubernetes(HTTPServer):
    """Keeps the label of each pod, by name."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Patch)
        self.roles: dict[str, str | None] = {}


class _Patch(BaseHTTPRequestHandler):
    server: Kubernetes

    def do_PATCH(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.roles[self.path.rpartition("/")[2]] = msgspec.json.decode(body)["metadata"]["labels"][LABEL]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture
def kubernetes() -> Iterator[Kubernetes]:
    with Kubernetes() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_label_moves_to_the_next_master_when_one_dies(cluster: Cluster, kubernetes: Kubernetes, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("token")
    api = f"http://127.0.0.1:{kubernetes.server_port}"
    followers = {
        name: Follower(f"http://127.0.0.1:{cluster[name].admin_port}", Pod(api, "queues", name, tmp_path))
        for name in cluster.names()
    }

    def labelled() -> list[str]:
        """After each pod's sidecar looked once."""
        for follower in followers.values():
            follower.look(0)
        return [name for name, role in kubernetes.roles.items() if role == MASTER]

    master = cluster.master()
    until(lambda: labelled() == [master], "the master's pod is labelled")
    cluster.kill9(master)
    transfer_target = cluster.master(other_than=master)
    until(lambda: labelled() == [transfer_target], "the next master's pod is labelled, and the dead one is not")
