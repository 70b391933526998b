"""A cluster whose members have one file of ElasticMQ's: queues are made once, first uses by any member."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.cluster.cluster import HOST, Cluster, until
from tests.system.migration.conftest import client

FILE = """
queues {
  orders { copyTo = audit, deadLettersQueue { name = dead, maxReceiveCount = 2 }, created = 1600000000123 }
  old-orders { moveTo = orders }
  dead { }
  audit { }
}
auto-create-queues { enabled = true, template { defaultVisibilityTimeout = 7 seconds } }
rest-sqs.sqs-limits = relaxed
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    file = tmp_path / "elasticmq.conf"
    file.write_text(FILE)
    made = Cluster(tmp_path / "cluster", extra=("--config", str(file)))
    try:
        yield made.start()
    finally:
        made.end()


def of(cluster: Cluster, name: str) -> Any:
    return client(f"http://{HOST}:{cluster[name].port}")


def names(sqs: Any) -> list[str]:
    return [url.rpartition("/")[2] for url in sqs.list_queues().get("QueueUrls", [])]


def test_every_member_serves_the_queues_of_the_file_also_after_a_failover(cluster: Cluster) -> None:
    master = cluster.master()
    follower = of(cluster, cluster.followers()[0])
    until(lambda: names(follower) == ["audit", "dead", "old-orders", "orders"], "the queues of the file are there")
    found = follower.get_queue_attributes(QueueUrl="orders", AttributeNames=["All"])["Attributes"]
    assert found["CreatedTimestamp"] == "1600000000"
    sent = follower.send_message(QueueUrl="old-orders", MessageBody="first")["MessageId"]
    for name in ("orders", "audit"):
        (message,) = follower.receive_message(QueueUrl=name, VisibilityTimeout=0)["Messages"]
        assert message["MessageId"] == sent
    follower.send_message_batch(
        QueueUrl="surprise", Entries=[{"Id": str(at), "MessageBody": "x"} for at in range(30)]
    )  # made by its first use, in a batch that AWS would refuse
    cluster.kill9(master)
    transfer_target = of(cluster, cluster.master(other_than=master))
    assert names(transfer_target) == ["audit", "dead", "old-orders", "orders", "surprise"]
    assert len(transfer_target.receive_message(QueueUrl="surprise", MaxNumberOfMessages=50)["Messages"]) == 30
    moved = transfer_target.send_message(QueueUrl="old-orders", MessageBody="second")["MessageId"]
    found = transfer_target.receive_message(QueueUrl="audit", MaxNumberOfMessages=10)["Messages"]
    assert moved in [message["MessageId"] for message in found]
    cluster[master].start()
    cluster.wait_ready()
    cluster.same_rows()
