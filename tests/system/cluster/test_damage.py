"""A member whose rows were damaged on the disk takes those of the others, and nobody misses a message."""

import re
import sqlite3
from contextlib import closing

import pytest

from tests.system.cluster.cluster import Cluster, Reply, until

MESSAGES = 300
DAMAGES = {
    "contents": "UPDATE contents SET contents = zeroblob(100) WHERE rowid = (SELECT min(rowid) FROM contents)",
    "header": "UPDATE pages SET live = zeroblob(32) WHERE first = (SELECT min(first) FROM pages)",
}


def filled(cluster: Cluster) -> str:
    """The queue's URL."""
    url = str(cluster[cluster.master()].call("CreateQueue", QueueName="kept")["QueueUrl"])
    for first in range(0, MESSAGES, 10):
        entries = [{"Id": str(at), "MessageBody": f"{at} " + "x" * 500} for at in range(first, first + 10)]
        cluster[cluster.master()].call("SendMessageBatch", QueueUrl=url, Entries=entries)
    return url


def damage(cluster: Cluster, name: str, statement: str) -> None:
    """Of a stopped member, behind the back of its checksums."""
    assert cluster.stop(name) == 0  # its rows are written
    with closing(sqlite3.connect(cluster[name].data / "rows.db", isolation_level=None)) as connection:
        assert connection.execute(statement).rowcount == 1
    cluster[name].start()
    cluster[name].until_up()


def received(cluster: Cluster, name: str, url: str) -> int:
    """How many come, by this member, which may lose its mastership on the way."""
    count = 0
    while True:
        reply = until(lambda: answered(cluster, name, url), f"{name} answers")
        messages = reply.body.get("Messages", [])
        if not messages:
            return count
        count += len(messages)


def answered(cluster: Cluster, name: str, url: str) -> Reply | None:
    reply = cluster[name].ask("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)
    return reply if reply.status == 200 else None


@pytest.mark.parametrize("where", DAMAGES)
def test_damaged_rows_are_found_by_verify_or_the_start_and_replaced(cluster: Cluster, where: str) -> None:
    url = filled(cluster)
    name = cluster.followers()[0]
    damage(cluster, name, DAMAGES[where])
    if where == "contents":
        cluster.wait_ready()
        told = cluster.try_operate("verify")
        assert told.returncode == 1
        assert re.search(f"{name} damaged", told.stdout)
        until(lambda: "snapshot_installed" in cluster[name].log.read_text(), f"{name} takes a snapshot")
    assert re.search(r"rows_damaged|data_directory The rows are damaged", cluster[name].log.read_text())
    cluster.wait_ready()
    cluster.same_rows()
    assert received(cluster, name, url) == MESSAGES


def test_a_master_that_reads_damage_is_none_any_more_and_loses_nothing(cluster: Cluster) -> None:
    url = filled(cluster)
    name = cluster.followers()[0]
    damage(cluster, name, DAMAGES["contents"])
    cluster.wait_ready()
    cluster.operate("transfer", name)
    until(lambda: cluster.master() == name or "rows_damaged" in cluster[name].log.read_text(), f"{name} is master")
    assert received(cluster, name, url) == MESSAGES
    assert "rows_damaged" in cluster[name].log.read_text()
    until(lambda: "snapshot_installed" in cluster[name].log.read_text(), f"{name} takes a snapshot")
    cluster.wait_ready()
    cluster.same_rows()
