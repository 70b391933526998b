"""What programs written for LocalStack and moto say: paths, hosts and forms of queue URLs."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.system.migration.conftest import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    arguments = ("--port", "0", "--admin-port", "-1", "--memory")
    server = Server(tmp_path_factory.mktemp("other"), arguments)
    server.client().create_queue(QueueName="jobs")
    server.client().create_queue(QueueName="jobs.fifo", Attributes={"FifoQueue": "true"})
    yield server
    assert server.stop() == 0
    server.process.communicate()


def get(server: Server, path: str, host: str = "") -> tuple[int, str]:
    connection = HTTPConnection(server.url.removeprefix("http://"), timeout=20)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def test_localstacks_waiters_see_sqs_running(server: Server) -> None:
    status, body = get(server, "/_localstack/health")
    assert (status, json.loads(body)["services"]) == (200, {"sqs": "running", "sns": "running"})


@pytest.mark.parametrize(("key", "account"), [("test", "000000000000"), ("123456789012", "123456789012")])
def test_sts_says_who_calls(server: Server, key: str, account: str) -> None:
    """Init scripts and Terraform ask before they do anything else."""
    sts: Any = boto3.client(
        "sts", endpoint_url=server.url, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key="x"
    )
    found = sts.get_caller_identity()
    assert (found["Account"], found["Arn"]) == (account, f"arn:aws:iam::{account}:user/{found['UserId']}")
    with pytest.raises(ClientError) as caught:
        sts.get_session_token()
    assert caught.value.response["Error"]["Code"] == "InvalidAction"


@pytest.mark.parametrize(
    "url",
    [
        "http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/jobs",
        "http://us-east-1.queue.localhost.localstack.cloud:4566/000000000000/jobs",
        "http://localhost:4566/queue/us-east-1/000000000000/jobs",
        "http://localhost:4566/queue/jobs",
        "http://localhost:4566/000000000000/jobs",
        "https://sqs.eu-west-1.amazonaws.com/000000000000/jobs",
        "https://queue.amazonaws.com/000000000000/jobs",
        "/000000000000/jobs",
        "/queue/jobs",
        "jobs",
    ],
)
def test_a_queue_url_of_any_form_names_its_queue(server: Server, url: str) -> None:
    sqs: Any = server.client()
    sent = sqs.send_message(QueueUrl=url, MessageBody="x")["MessageId"]
    (found,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert found["MessageId"] == sent
    sqs.delete_message(QueueUrl=url, ReceiptHandle=found["ReceiptHandle"])


@pytest.mark.parametrize("host", ["sqs.us-east-1.localhost.localstack.cloud:4566", "queue.moto.internal:5000"])
def test_queue_urls_have_the_host_that_was_called(server: Server, host: str) -> None:
    status, body = get(server, "/?Action=GetQueueUrl&QueueName=jobs.fifo", host)
    assert status == 200
    assert f"<QueueUrl>http://{host}/000000000000/jobs.fifo</QueueUrl>" in body


@pytest.mark.parametrize("path", ["/000000000000/jobs", "/queue/jobs"])
def test_a_query_request_goes_to_the_queue_of_its_path(server: Server, path: str) -> None:
    status, body = get(server, f"{path}?Action=GetQueueAttributes&AttributeName.1=QueueArn")
    assert (status, "arn:aws:sqs:us-east-1:000000000000:jobs" in body) == (200, True)


def test_an_access_key_of_twelve_digits_is_an_account_as_with_moto(server: Server) -> None:
    other: Any = server.client(key="123456789012")
    assert other.create_queue(QueueName="own")["QueueUrl"] == f"{server.url}/123456789012/own"
    assert "QueueUrls" not in server.client().list_queues(QueueNamePrefix="own")
