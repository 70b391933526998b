"""A cluster changes its secret and its certificates while it serves, by SIGHUP and without a restart of all."""

import signal
from pathlib import Path

from tests.peers.test_tls import Authority
from tests.system.cluster.cluster import Cluster, until
from tests.system.cluster.conftest import MakeCluster

SAID = "again: cluster.secret_file and cluster.tls_cert."


def renew(cluster: Cluster, *names: str) -> None:
    for name in names:
        member = cluster[name]
        before = member.log.read_text().count(SAID)
        member.signal(signal.SIGHUP)
        until(lambda member=member, before=before: member.log.read_text().count(SAID) > before, f"{name} renews")


def comes_back(cluster: Cluster, name: str) -> None:
    """A member that starts with what stands in the files now gets links to all that run."""
    cluster.restart(name)
    cluster.wait_ready()
    until(lambda: all(row["linked"] for row in cluster[name].status()["members"]), f"{name} is linked with all")


def write(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o600)


def test_cluster_changes_its_secret_and_certificates_while_it_serves(make_cluster: MakeCluster, tmp_path: Path) -> None:
    """In between, members that have the old secret, both and the new one link with each other."""
    authority = Authority(tmp_path, "ca")
    files = authority.settings("member")
    environment = {f"ELASTICQ_CLUSTER__{name.upper()}": path for name, path in files.items()}
    cluster = make_cluster(environment=environment).start()
    assert cluster.secret_file is not None
    secret, also = cluster.secret_file, Path(f"{cluster.secret_file}.also")
    old, new = secret.read_text(), "the next secret of this test\n"
    cluster["n1"].call("CreateQueue", QueueName="jobs")
    terms = cluster.term()

    write(also, new)
    authority.settings("member")
    renew(cluster, "n1", "n2", "n3")
    assert cluster.term() == terms, "no link broke"
    write(secret, new)
    write(also, old)
    renew(cluster, "n1")
    comes_back(cluster, "n2")  # n1 and n2 prove the new secret by now, n3 the old one
    renew(cluster, "n3")
    also.unlink()
    renew(cluster, "n1")
    comes_back(cluster, "n2")  # n1 and n2 know the new one only, n3 both
    renew(cluster, "n3")
    assert cluster["n2"].call("GetQueueUrl", QueueName="jobs")
    assert all("wrong_secret" not in member.log.read_text() for member in cluster.members.values())
    write(secret, old)
    cluster.restart("n2")
    until(lambda: "wrong_secret" in cluster["n2"].log.read_text(), "nobody knows the old one any more")
