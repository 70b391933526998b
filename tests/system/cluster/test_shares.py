"""Shares and limits of groups on a real cluster whose master is killed in the middle."""

from collections import Counter

from tests.system.cluster.cluster import Cluster

SHARED = {
    "ElasticqFairness": "weighted",
    "ElasticqGroupWeights": '{"a": 3, "b": 2}',
    "ElasticqMaxInFlightPerGroup": "20",
}


def test_killed_master_changes_no_share_and_holds_no_slot(cluster: Cluster) -> None:
    url = cluster["n1"].call("CreateQueue", QueueName="shared", Attributes=SHARED)["QueueUrl"]
    for number in range(6):
        for group in "abc":
            entries = [
                {"Id": str(at), "MessageBody": f"{group}{number}{at}", "MessageGroupId": group} for at in range(10)
            ]
            cluster["n2"].call("SendMessageBatch", QueueUrl=url, Entries=entries)
    got: Counter[str] = Counter()
    handles: dict[str, list[str]] = {"a": [], "b": [], "c": []}
    for at in range(12):
        if at == 5:
            master = cluster.master()
            cluster.kill9(master)
            assert cluster.master(other_than=master)
        survivor = cluster.running()[0]
        for message in survivor.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=600)["Messages"]:
            got[message["Body"][0]] += 1
            handles[message["Body"][0]].append(message["ReceiptHandle"])
    assert got == {"a": 6, "b": 4, "c": 2}
    while messages := survivor.call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        got.update(message["Body"][0] for message in messages)
    assert got == {"a": 20, "b": 20, "c": 20}, "each group has all its slots, and no more"
    for group, held in handles.items():
        survivor.call("DeleteMessage", QueueUrl=url, ReceiptHandle=held[0])
        (message,) = survivor.call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
        assert message["Body"][0] == group
