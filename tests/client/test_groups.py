"""The actions of groups as methods of the light client."""

import json

from elasticq.client import Sqs
from elasticq.testing import ElasticQ
from tests.client.scripted import Scripted, answer, client, headers


def test_each_action_of_groups_is_a_method() -> None:
    with Scripted(answer({})) as server, client(server) as sqs:
        sqs.set_group(GroupName="g")
        sqs.delete_group(GroupName="g")
        sqs.describe_groups(GroupNames=["g"])
        sqs.move_resource(GroupName="g")
        sqs.drain_consumer(GroupName="g")
        sqs.join_group(GroupName="g", invocation_id=b"mine")
        sqs.heartbeat(GroupName="g")
        sqs.leave_group(GroupName="g")
    asked = [headers(each)["x-amz-target"].removeprefix("AmazonSQS.Elasticq") for each in server.requests]
    assert asked == [
        "SetGroup",
        "DeleteGroup",
        "DescribeGroups",
        "MoveResource",
        "DrainConsumer",
        "JoinGroup",
        "Heartbeat",
        "LeaveGroup",
    ]
    assert headers(server.requests[5])["amz-sdk-invocation-id"] == "mine"
    assert json.loads(server.requests[5].partition(b"\r\n\r\n")[2]) == {"GroupName": "g"}


def test_a_join_that_is_repeated_makes_one_consumer() -> None:
    with ElasticQ() as server:
        sqs = Sqs(server.endpoint_url, server.region, (server.account, "x"))
        sqs.set_group(GroupName="g", QueueNamePrefix="q")
        joins = [sqs.join_group(GroupName="g", invocation_id=b"one") for _ in range(2)]
        assert joins[0]["ConsumerId"] == joins[1]["ConsumerId"]
        assert len(sqs.describe_groups()["Groups"][0]["Consumers"]) == 1
        sqs.leave_group(GroupName="g", ConsumerId=joins[0]["ConsumerId"])
        assert sqs.describe_groups()["Groups"][0]["Consumers"] == []
        sqs.close()
