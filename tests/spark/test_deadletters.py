"""onParseError=deadletter: where bodies that are no rows go, and with what."""

from typing import Any

import pytest

from elasticq.spark.deadletters import REASON_CHARACTERS, DeadLetters
from elasticq.spark.environment import Environment
from elasticq.spark.options import OptionError, Read
from elasticq.spark.schema import Rejected

MESSAGE = {"MessageId": "id-1", "Body": "no row", "Attributes": {"MessageGroupId": "g"}}


class Recorded:
    """A client that notes what it is asked."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.looked_up: list[str] = []

    def get_queue_url(self, QueueName: str) -> dict[str, str]:
        self.looked_up.append(QueueName)
        return {"QueueUrl": f"http://here/0/{QueueName}"}

    def send_message(self, **members: Any) -> None:
        self.sent.append(members)


def letters(queue: str) -> tuple[DeadLetters, Recorded]:
    client = Recorded()
    options = Read(on_parse_error="deadletter", dead_letter_queue=queue)
    return DeadLetters(options, Environment(connect=lambda connection: client)), client  # type: ignore[arg-type]


def test_a_rejected_body_keeps_its_text_and_tells_reason_and_source() -> None:
    dead, client = letters("bad")
    dead.send("http://here/0/jobs", [Rejected(MESSAGE, "x" * 999), Rejected(MESSAGE, "why")])
    first, second = client.sent
    assert (first["QueueUrl"], first["MessageBody"]) == ("http://here/0/bad", "no row")
    assert first["MessageAttributes"]["reason"]["StringValue"] == "x" * REASON_CHARACTERS
    assert second["MessageAttributes"]["source"]["StringValue"] == "http://here/0/jobs"
    assert "MessageGroupId" not in first
    assert client.looked_up == ["bad"], "once"


def test_a_fifo_queue_gets_the_group_and_knows_a_task_that_runs_again() -> None:
    dead, client = letters("http://there/0/bad.fifo")
    dead.send("http://here/0/jobs", [Rejected(MESSAGE, "why"), Rejected(MESSAGE | {"Attributes": {}}, "why")])
    assert [(sent["MessageGroupId"], sent["MessageDeduplicationId"]) for sent in client.sent] == [
        ("g", "id-1"), ("sqs", "id-1"),
    ]  # fmt: skip
    assert client.looked_up == []


def test_nothing_rejected_asks_nobody_and_a_queue_must_be_named() -> None:
    dead, client = letters("bad")
    dead.send("http://here/0/jobs", [])
    assert client.looked_up == client.sent == []
    with pytest.raises(OptionError, match="deadLetterQueue"):
        letters("")
