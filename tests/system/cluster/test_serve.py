"""Three processes form one SQS: any member serves everything, and says who does the work."""

import threading
import time
from contextlib import closing

import pytest

from tests.system.cluster.cluster import Cluster, until
from tests.system.cluster.conftest import MakeCluster
from tests.system.cluster.load import Load

WOKEN_S = 2  # a long poll of 10 s that is woken, on a busy machine


def test_message_sent_at_one_member_is_received_and_deleted_at_others(formed: Cluster) -> None:
    one, two, three = formed.members.values()
    one.call("CreateQueue", QueueName="anywhere")
    url = two.call("GetQueueUrl", QueueName="anywhere")["QueueUrl"]
    sent = one.call("SendMessage", QueueUrl=url, MessageBody="hello")
    [message] = two.call("ReceiveMessage", QueueUrl=url)["Messages"]
    assert (message["MessageId"], message["Body"]) == (sent["MessageId"], "hello")
    three.call("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    for member in (one, two, three):
        counts = member.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert counts["ApproximateNumberOfMessages"] == counts["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_all_members_name_one_master(formed: Cluster) -> None:
    master = formed.master()
    statuses = [member.status() for member in formed.running()]
    assert {status["master"] for status in statuses} == {master}
    assert len({status["term"] for status in statuses}) == 1
    assert {member["name"] for member in statuses[0]["members"] if member["voter"]} == set(formed.names())


def test_each_sdk_client_sends_by_its_own_member(formed: Cluster) -> None:
    url = formed["n1"].call("CreateQueue", QueueName="sdk")["QueueUrl"]
    for member in formed.members.values():
        with closing(member.boto3()) as sqs:
            sqs.send_message(QueueUrl=url, MessageBody=member.name)
    with closing(formed["n3"].boto3()) as sqs:
        seen: set[str] = set()
        until(lambda: seen.update(bodies(sqs, url)) or len(seen) == 3, "three messages")
    assert seen == set(formed.names())


def bodies(sqs: object, url: str) -> list[str]:
    answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)  # type: ignore[attr-defined]
    return [message["Body"] for message in answer.get("Messages", ())]


def test_long_poll_at_a_follower_is_woken_by_a_send_at_another(formed: Cluster) -> None:
    url = formed["n1"].call("CreateQueue", QueueName="wake")["QueueUrl"]
    one, other = (formed[name] for name in formed.followers())
    with closing(other.boto3()) as warm:
        warm.list_queues()
    woken: list[tuple[float, dict]] = []

    def poll() -> None:
        answer = one.call("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=10)
        woken.append((time.monotonic(), answer))

    thread = threading.Thread(target=poll)
    thread.start()
    master = formed[formed.master()]
    until(lambda: master.metric("waiters") == 1, "the poll waits at the master")
    sent_s = time.monotonic()
    other.call("SendMessage", QueueUrl=url, MessageBody="wake")
    thread.join()
    [(woken_s, answer)] = woken
    assert [message["Body"] for message in answer["Messages"]] == ["wake"]
    assert woken_s - sent_s < WOKEN_S


@pytest.mark.parametrize("memory", [False, True], ids=["disk", "memory"])
@pytest.mark.chaos
def test_load_on_all_members_is_clean(make_cluster: MakeCluster, memory: bool) -> None:
    cluster = make_cluster(memory=memory).start()
    with Load(cluster) as load:
        load.wait_for(500)
        load.assert_clean()
    assert load.exceptions == []
    cluster.same_rows()


@pytest.mark.chaos
def test_wrong_secret_stays_outside(make_cluster: MakeCluster) -> None:
    cluster = make_cluster().start()
    term = cluster.term()
    stranger = make_cluster(1, prefix="x", network=cluster.network)
    stranger.founders = 3
    assert stranger.secret_file
    stranger.secret_file.write_text("another secret\n")
    stranger.meet(cluster)
    [outside] = stranger.members.values()
    outside.start()
    outside.until_up()
    until(lambda: "secret" in outside.said() + "".join(m.said() for m in cluster.running()), "a line about the secret")
    assert not outside.is_ready()
    assert cluster.voters() == ["n1", "n2", "n3"]
    assert cluster.term() == term
