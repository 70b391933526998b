"""kill -9 of the master while notifications are posted to web servers: each at least once, to who is subscribed."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from tests.push.receiver import Receiver, receiving
from tests.system.cluster.cluster import Cluster, ask, until
from tests.system.cluster.conftest import MakeCluster
from tests.system.cluster.publishing import TOPIC_ARN, Publishing, kill_master_under

HIDDEN_S = 60
"""At least what a message is hidden for that a master was about to post when it was killed."""
PATIENCE_S = 60


@pytest.fixture
def receivers() -> Iterator[tuple[Receiver, Receiver]]:
    with ExitStack() as stack:
        yield stack.enter_context(receiving()), stack.enter_context(receiving())


def confirmed(sns: Any, receiver: Receiver) -> str:
    """The ARN of a subscription that the receiver has confirmed."""
    arn = sns.subscribe(
        TopicArn=TOPIC_ARN,
        Protocol="http",
        Endpoint=receiver.url,
        Attributes={"RawMessageDelivery": "true"},
        ReturnSubscriptionArn=True,
    )["SubscriptionArn"]
    (asked,) = receiver.wait_for(1)
    with urllib.request.urlopen(asked.envelope["SubscribeURL"]) as answer:
        assert answer.status == 200
    return str(arn)


def posted(receiver: Receiver) -> set[str]:
    return {request.body for request in list(receiver.requests)}


def has_all(receiver: Receiver, bodies: set[str]) -> bool:
    return bodies <= posted(receiver)


def until_posted(cluster: Cluster, publishing: Publishing, *receivers: Receiver) -> None:
    """What the killed master had taken comes when it is visible again, which the clock of tests brings about."""
    member = cluster.running()[0]
    reply = ask(member.port, "POST", "/_elasticq/clock", json.dumps({"advance": HIDDEN_S}).encode())
    assert reply.status == 200, reply
    for receiver in receivers:
        until(partial(has_all, receiver, publishing.answered), "everything is posted", PATIENCE_S)


def test_acknowledged_messages_are_posted_over_a_killed_master_and_none_after_unsubscribing(
    make_cluster: MakeCluster, receivers: tuple[Receiver, Receiver]
) -> None:
    cluster = make_cluster(environment={"ELASTICQ_TESTING__ENABLED": "true"}).start()
    staying, leaving = receivers
    Publishing.prepare(cluster)
    sns = cluster.running()[0].boto3("sns")
    _, left = (confirmed(sns, receiver) for receiver in receivers)
    with Publishing(cluster) as publishing:
        _, verdict = kill_master_under(publishing)
        assert (verdict.partial, verdict.lost, verdict.doubled) == ([], [], [])
    until_posted(cluster, publishing, staying, leaving)
    cluster.running()[0].boto3("sns").unsubscribe(SubscriptionArn=left)
    with Publishing(cluster) as afterwards:
        afterwards.wait_for(50)
        afterwards.stop()
    until_posted(cluster, afterwards, staying)
    kinds = [request.headers["x-amz-sns-message-type"] for request in leaving.requests]
    assert "UnsubscribeConfirmation" in kinds
    assert not afterwards.answered & posted(leaving)
    print(f"{verdict.line()}; {len(staying.requests)} and {len(leaving.requests)} posts")
