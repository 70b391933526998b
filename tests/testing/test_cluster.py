"""Three members in this process: killed, parted, brought back."""

import time
from collections.abc import Iterator

import pytest

from elasticq.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def whole(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.heal()
    for name in set(cluster.names) - set(cluster.living):
        cluster.start(name)
    cluster.wait_until_ready()
    cluster.reset()


def test_any_member_takes_any_call(cluster: Cluster) -> None:
    queue = cluster.queue("jobs").create()
    for name in cluster.names:
        sqs = cluster.client(endpoint_url=cluster.endpoint_url_of(name))
        sqs.send_message(QueueUrl=queue.url, MessageBody=name)
    assert queue.visible() == 3


def test_messages_and_clock_survive_the_master(cluster: Cluster) -> None:
    queue = cluster.queue("jobs").create(VisibilityTimeout=30)
    queue.send("kept")
    told = cluster.clock.advance(3_600)
    old = cluster.kill_master()
    assert cluster.master != old
    assert queue.visible() == 1
    assert cluster.clock.now() >= told
    cluster.client().receive_message(QueueUrl=queue.url)
    cluster.clock.advance(30)
    assert queue.visible() == 1
    cluster.start(old)
    assert set(cluster.living) == set(cluster.names)


def test_master_cut_from_the_others_is_one_no_more(cluster: Cluster) -> None:
    old = cluster.master
    others = tuple(name for name in cluster.names if name != old)
    cluster.partition(old, others)
    until_s = time.monotonic() + 20
    while cluster.master == old:
        assert time.monotonic() < until_s
    cluster.queue("jobs").create().send("while parted")
    cluster.heal()
    cluster.wait_until_ready()
    answer = cluster.client(endpoint_url=cluster.endpoint_url_of(old)).receive_message(
        QueueUrl=cluster.queue("jobs").url, WaitTimeSeconds=5
    )
    assert [message["Body"] for message in answer["Messages"]] == ["while parted"]


def test_fault_strikes_at_every_member(cluster: Cluster) -> None:
    queue = cluster.queue("jobs").create()
    with cluster.fault("SendMessage", "error503") as fault:
        for name in cluster.names:
            sqs = cluster.client(endpoint_url=cluster.endpoint_url_of(name))
            with pytest.raises(sqs.exceptions.ClientError):
                sqs.send_message(QueueUrl=queue.url, MessageBody="x")
        assert fault.struck >= 3
    assert queue.visible() == 0
