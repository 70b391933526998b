"""A proxy as a process of its own, beside the members of a cluster: it is none of ``cluster.members``."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.system.cluster.cluster import HOST, Cluster, Member


class Beside(Member):
    """secret_file: another one than the cluster's; extra: more flags."""

    def __init__(self, cluster: Cluster, name: str, secret_file: Path | None, extra: tuple[str, ...]) -> None:
        super().__init__(cluster, name)
        self.secret_file = secret_file or cluster.secret_file
        self.extra = extra
        self.routes.write_text("{}")  # it dials the members themselves

    def command(self) -> list[str]:
        arguments = ["--role", "proxy", "--node-id", self.name, "--host", HOST, "--port", str(self.port)]
        arguments += ["--admin-port", str(self.admin_port), "--seeds", ",".join(self.cluster.seeds())]
        arguments += ["--cluster-secret-file", str(self.secret_file)]
        return [sys.executable, "-m", "elasticq", "server", *arguments, *self.extra]

    def end(self) -> None:
        self.kill9()
        for keeper in self.keepers:
            keeper.close()


@contextmanager
def beside(cluster: Cluster, *extra: str, secret_file: Path | None = None) -> Iterator[Beside]:
    """A proxy "web1" that runs and answers; it need not be ready."""
    proxy = Beside(cluster, "web1", secret_file, extra)
    try:
        proxy.start()
        proxy.until_up()
        yield proxy
    finally:
        proxy.end()
