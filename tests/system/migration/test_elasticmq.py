"""ElasticMQ's configurations as they are, by real processes and boto3."""

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.system.migration.conftest import EXAMPLES, Server, StartServer

ARN = "arn:aws:sqs:eu-central-1:000000000000:"


@pytest.fixture
def sqs(shop: Server) -> Any:
    return shop.client()


def url_of(sqs: Any, name: str) -> str:
    return str(sqs.get_queue_url(QueueName=name)["QueueUrl"])


def attributes(sqs: Any, url: str) -> dict[str, str]:
    found: dict[str, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return found


def bodies(sqs: Any, url: str, **options: Any) -> list[str]:
    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, **options).get("Messages", [])
    return [message["Body"] for message in found]


# --- shop.conf --------------------------------------------------------------------------


def test_every_queue_is_there_when_the_server_listens(sqs: Any, shop: Server) -> None:
    names = ("audit", "old-orders", "orders", "orders-dead", "payments.fifo", "refunds.fifo", "slow")
    assert sqs.list_queues()["QueueUrls"] == [f"{shop.url}/000000000000/{name}" for name in names]


def test_attributes_and_tags_read_back(sqs: Any) -> None:
    url = url_of(sqs, "orders")
    found = attributes(sqs, url)
    assert found["VisibilityTimeout"] == "45"
    assert found["ReceiveMessageWaitTimeSeconds"] == "2"
    assert found["QueueArn"] == f"{ARN}orders"
    assert json.loads(found["RedrivePolicy"]) == {"deadLetterTargetArn": f"{ARN}orders-dead", "maxReceiveCount": 2}
    assert (found["CreatedTimestamp"], found["LastModifiedTimestamp"]) == ("1600000000", "1600000005")
    assert not [name for name in found if "opy" in name or name.startswith("elasticq")]
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "billing", "cost.centre": "4711"}
    assert attributes(sqs, url_of(sqs, "slow"))["DelaySeconds"] == "60"


def test_fifo_queues_have_their_suffix_and_deduplicate(sqs: Any) -> None:
    found = attributes(sqs, url_of(sqs, "payments.fifo"))
    assert (found["FifoQueue"], found["ContentBasedDeduplication"]) == ("true", "true")
    url = url_of(sqs, "payments.fifo")
    sent = [sqs.send_message(QueueUrl=url, MessageBody="pay", MessageGroupId="g")["MessageId"] for _ in range(2)]
    assert sent[0] == sent[1]
    assert attributes(sqs, url_of(sqs, "refunds.fifo"))["ContentBasedDeduplication"] == "false"


def test_a_moved_message_arrives_and_is_copied_on_its_way(sqs: Any) -> None:
    """boto3 compares MD5s itself."""
    sent = sqs.send_message(QueueUrl=url_of(sqs, "old-orders"), MessageBody="order")
    (found,) = sqs.receive_message(QueueUrl=url_of(sqs, "orders"), WaitTimeSeconds=0)["Messages"]
    assert (found["MessageId"], found["Body"]) == (sent["MessageId"], "order")
    (copy,) = sqs.receive_message(QueueUrl=url_of(sqs, "audit"))["Messages"]
    assert (copy["MessageId"], copy["MD5OfBody"]) == (sent["MessageId"], sent["MD5OfMessageBody"])
    assert bodies(sqs, url_of(sqs, "old-orders")) == []
    sqs.delete_message(QueueUrl=url_of(sqs, "orders"), ReceiptHandle=found["ReceiptHandle"])
    sqs.delete_message(QueueUrl=url_of(sqs, "audit"), ReceiptHandle=copy["ReceiptHandle"])


def test_a_batch_is_moved_and_copied_as_a_whole(sqs: Any) -> None:
    entries = [{"Id": f"i{at}", "MessageBody": f"batch {at}"} for at in range(10)]
    sent = sqs.send_message_batch(QueueUrl=url_of(sqs, "old-orders"), Entries=entries)["Successful"]
    for name in ("orders", "audit"):
        found = sqs.receive_message(QueueUrl=url_of(sqs, name), MaxNumberOfMessages=10)["Messages"]
        assert [message["MessageId"] for message in found] == [each["MessageId"] for each in sent]
        sqs.purge_queue(QueueUrl=url_of(sqs, name))


def test_a_message_received_too_often_is_a_dead_letter(sqs: Any) -> None:
    url = url_of(sqs, "orders")
    sqs.send_message(QueueUrl=url, MessageBody="poison")
    for _ in range(2):
        assert bodies(sqs, url, VisibilityTimeout=0, WaitTimeSeconds=0) == ["poison"]
    assert bodies(sqs, url, WaitTimeSeconds=0) == []
    assert bodies(sqs, url_of(sqs, "orders-dead")) == ["poison"]


def test_the_words_of_java_are_dropped_by_name(shop: Server) -> None:
    assert "-jar elasticmq-server.jar is not needed" in shop.words
    assert "is unknown" not in shop.words


def test_a_host_of_any_name_is_that_of_the_request(shop: Server) -> None:
    port = shop.url.rpartition(":")[2]
    assert url_of(shop.client(f"http://localhost:{port}"), "orders") == f"http://localhost:{port}/000000000000/orders"


# --- the others ---------------------------------------------------------------------------


def test_queues_are_made_at_their_first_use_without_limits(start: StartServer) -> None:
    server = start("--config", str(EXAMPLES / "anything.conf"))
    sqs = server.client()
    url = f"{server.url}/queue/surprise"
    entries = [{"Id": str(at), "MessageBody": "\x01"} for at in range(20)]
    assert len(sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 20
    assert len(sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=50)["Messages"]) == 20
    assert attributes(sqs, url)["VisibilityTimeout"] == "7"
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"made": "at first use"}
    assert attributes(sqs, url_of(sqs, "first.fifo"))["FifoQueue"] == "true"
    with pytest.raises(ClientError, match="does not exist"):
        sqs.purge_queue(QueueUrl="unused")
    assert server.stop() == 0


def test_messages_and_changes_outlive_the_process(start: StartServer, tmp_path: Path) -> None:
    (tmp_path / "queues.conf").write_text(
        "queues { from-storage { defaultVisibilityTimeout = 9 seconds, created = 1500000000000 } }"
    )
    words = (
        f"-Dconfig.file={EXAMPLES / 'kept.conf'}",
        "-Drest-sqs.bind-port=0",
        "-Drest-sqs.bind-hostname=127.0.0.1",
        "-Dnode-address.host=*",
        "-Drest-stats.enabled=false",
    )
    server = start(*words)
    sqs = server.client()
    assert "stored in the directory kept-messages" in server.words
    url = url_of(sqs, "jobs")
    assert url == f"{server.url}/000000000042/jobs"
    found = attributes(sqs, url_of(sqs, "from-storage"))
    assert (found["VisibilityTimeout"], found["CreatedTimestamp"]) == ("9", "1500000000")
    sqs.send_message(QueueUrl=url, MessageBody="survivor")
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "11"})
    assert server.stop() == 0
    server = start(*words)
    sqs = server.client()
    assert bodies(sqs, "jobs") == ["survivor"]
    assert attributes(sqs, "jobs")["VisibilityTimeout"] == "11"
    assert "queue_kept jobs" in server.words
    assert server.stop() == 0
    assert (tmp_path / "kept-messages").is_dir()


def test_mistakes_are_told_by_name_and_the_rest_is_served(start: StartServer) -> None:
    server = start("--config", str(EXAMPLES / "mistaken.conf"))
    for words in (
        "rest-sqs.bindPort is unknown and has no effect, did you mean rest-sqs.bind-port?",
        "queues.jobs.defaultVisibiltyTimeout is unknown",
        "did you mean queues.jobs.deadLettersQueue?",
        "queues.jobs.delay is cut to 0 whole seconds",
        "akka is unknown",
    ):
        assert words in server.words
    assert attributes(server.client(), "jobs")["VisibilityTimeout"] == "30"
    assert server.stop() == 0


def test_urls_have_the_address_and_path_of_the_file(start: StartServer) -> None:
    server = start(
        "-Drest-sqs.bind-port=0", "-Drest-stats.bind-port=0", "-Dnode-address.host=queues.example",
        "-Dnode-address.port=80", "-Dnode-address.protocol=https", "-Dnode-address.context-path=mq",
    )  # fmt: skip
    sqs = server.client()
    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
    assert url == "https://queues.example:80/mq/000000000000/jobs"


def test_a_context_path_is_part_of_urls_and_of_requests(start: StartServer) -> None:
    server = start("-Drest-sqs.bind-port=0", "-Drest-stats.bind-port=0", "-Dnode-address.context-path=/mq/", "--memory")
    sqs = server.client(f"{server.url}/mq")
    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
    assert url == f"{server.url}/mq/000000000000/jobs"
    sqs.send_message(QueueUrl=url, MessageBody="x")
    assert bodies(sqs, url) == ["x"]
