"""boto3 and the AWS command line on a cluster: each call through another member; no environment of their own."""

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.system.aws import run_aws
from tests.system.cluster.cluster import HOST, Cluster

POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}],
}


@pytest.fixture(scope="module")
def formed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three that serve."""
    cluster = Cluster(tmp_path_factory.mktemp("formed"))
    try:
        yield cluster.start()
        cluster.same_rows()
    finally:
        cluster.end()


class Round:
    """A boto3 client whose calls go to one member after the other."""

    def __init__(self, clients: list[Any]) -> None:
        self.clients = itertools.cycle(clients)
        self.called: set[str] = set()

    def __getattr__(self, action: str) -> Any:
        self.called.add(action)
        return getattr(next(self.clients), action)


@pytest.fixture
def sqs(formed: Cluster) -> Iterator[Round]:
    with ExitStack() as stack:
        yield Round([stack.enter_context(closing(member.boto3())) for member in formed.members.values()])


def send_and_receive(sqs: Round, url: str) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="one")
    entries = [{"Id": str(number), "MessageBody": f"batch {number}"} for number in range(5)]
    assert len(sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 5
    handles = []
    while len(handles) < 6:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=10)
        handles += [message["ReceiptHandle"] for message in answer["Messages"]]
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handles[0], VisibilityTimeout=60)
    kept = [{"Id": str(at), "ReceiptHandle": handle, "VisibilityTimeout": 90} for at, handle in enumerate(handles)]
    assert len(sqs.change_message_visibility_batch(QueueUrl=url, Entries=kept)["Successful"]) == 6
    sqs.delete_message(QueueUrl=url, ReceiptHandle=handles[0])
    gone = [{"Id": str(at), "ReceiptHandle": handle} for at, handle in enumerate(handles[1:])]
    assert len(sqs.delete_message_batch(QueueUrl=url, Entries=gone)["Successful"]) == 5


def describe(sqs: Round, url: str, dead: str) -> str:
    """Attributes, tags and permissions; the ARN of the dead-letter queue."""
    arn: str = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    wanted = {"RedrivePolicy": redrive, "Policy": json.dumps(POLICY), "VisibilityTimeout": "45"}
    sqs.set_queue_attributes(QueueUrl=url, Attributes=wanted)
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert json.loads(found["RedrivePolicy"]) == json.loads(redrive)
    assert json.loads(found["Policy"]) == POLICY
    assert found["VisibilityTimeout"] == "45"
    sqs.tag_queue(QueueUrl=url, Tags={"team": "queues", "stage": "test"})
    sqs.untag_queue(QueueUrl=url, TagKeys=["stage"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "queues"}
    sqs.add_permission(QueueUrl=url, Label="theirs", AWSAccountIds=["111111111111"], Actions=["SendMessage"])
    sqs.remove_permission(QueueUrl=url, Label="theirs")
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"]
    return arn


def test_boto3_calls_every_action_each_by_another_member(sqs: Round, formed: Cluster) -> None:
    url = sqs.create_queue(QueueName="work")["QueueUrl"]
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    assert sqs.get_queue_url(QueueName="work")["QueueUrl"].partition("//")[2].partition("/")[2] == "000000000000/work"
    assert len(sqs.list_queues()["QueueUrls"]) == 2
    send_and_receive(sqs, url)
    arn = describe(sqs, url, dead)
    sqs.send_message(QueueUrl=dead, MessageBody="a dead letter")
    task = sqs.start_message_move_task(SourceArn=arn, DestinationArn=arn.replace(":dead", ":work"))["TaskHandle"]
    assert sqs.list_message_move_tasks(SourceArn=arn)["Results"]
    with suppress(ClientError):  # it may be over already, and is then no task that can be cancelled
        sqs.cancel_message_move_task(TaskHandle=task)
    sqs.purge_queue(QueueUrl=url)
    for queue in (url, dead):
        sqs.delete_queue(QueueUrl=queue)
    model = next(sqs.clients).meta.service_model
    assert len(sqs.called) == len(model.operation_names) == 23


def test_command_line_reaches_a_queue_by_every_member(formed: Cluster, tmp_path: Path) -> None:
    ports = itertools.cycle([member.port for member in formed.members.values()])

    def aws(*words: str) -> Any:
        return run_aws(tmp_path, f"http://{HOST}:{next(ports)}", "sqs", *words, tries_again=True)

    url = aws("create-queue", "--queue-name", "shell")["QueueUrl"]
    sent = aws("send-message", "--queue-url", url, "--message-body", "from the shell")
    (message,) = aws("receive-message", "--queue-url", url, "--wait-time-seconds", "10")["Messages"]
    assert message["MessageId"] == sent["MessageId"]
    assert aws("delete-message", "--queue-url", url, "--receipt-handle", message["ReceiptHandle"]) == {}
    assert aws("delete-queue", "--queue-url", url) == {}
