"""The harness's clients and judge on one member, where it is known what they have to say."""

import pytest

from tests.system.cluster.cluster import until
from tests.system.cluster.conftest import MakeCluster
from tests.system.cluster.load import Load, fill
from tests.system.durability.chaos import now_us


@pytest.mark.chaos
def test_load_is_clean_where_a_disk_keeps_everything(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1).start()
    with Load(cluster) as load:
        load.wait_for(100)
        killed_us = now_us()
        cluster.restart("n1")
        load.wait_for(50, since_us=killed_us)
        gap_ms = load.gap_ms(killed_us)
        verdict = load.assert_clean()
    assert gap_ms > 50
    assert load.gap_ms(killed_us) >= gap_ms
    assert verdict.broken > 0
    assert load.p99_ms() > 0


@pytest.mark.chaos
def test_load_finds_what_a_forgetful_member_loses(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1, memory=True).start()
    with Load(cluster) as load:
        load.wait_for(100)
        cluster.restart("n1")
        for url in load.queues:
            name = url.rpartition("/")[2]
            until(lambda name=name: cluster["n1"].ask("CreateQueue", QueueName=name).status == 200, "the queue is back")
        load.wait_for(50)
        verdict = load.judge()
    assert verdict.count("lost") > 0, verdict.line()


@pytest.mark.chaos
def test_fill_sends_each_message_once(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1).start()
    url = cluster["n1"].call("CreateQueue", QueueName="filled")["QueueUrl"]
    fill(cluster, url, 1_234)
    counts = cluster["n1"].call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessages"] == "1234"


@pytest.mark.chaos
def test_restarted_member_keeps_its_ports(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1).start()
    url = cluster["n1"].call("CreateQueue", QueueName="ports")["QueueUrl"]
    cluster.restart("n1")
    until(lambda: cluster["n1"].ask("SendMessage", QueueUrl=url, MessageBody="again").status == 200, "it serves")
