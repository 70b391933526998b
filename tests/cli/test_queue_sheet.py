"""elasticq queues show, against a server, and of an endpoint that keeps odd texts."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from elasticq.cli import main, queue_sheet
from elasticq.client import Sqs
from tests.server.process import Server

TAGS = {"team": "checkout", "cost": "a b"}


@pytest.fixture(scope="module")
def sqs() -> Iterator[Sqs]:
    with Server() as server, Sqs(server.url, "us-east-1") as client:
        client.url = server.url  # type: ignore[attr-defined]
        yield client


def made(sqs: Sqs) -> tuple[str, str]:
    """A queue with a dead-letter queue, tags, and messages in two states; its URL and the ARN of the other one."""
    dead = sqs.create_queue(QueueName=f"dead-{uuid4().hex}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "4"})
    url = sqs.create_queue(
        QueueName=f"jobs-{uuid4().hex}", Attributes={"RedrivePolicy": policy, "VisibilityTimeout": "7"}, tags=TAGS
    )["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=60)
    return url, arn


def show(sqs: Any, url: str, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["queues", "show", "--url", sqs.url, url, *arguments]) == 0
    return capsys.readouterr().out


def test_show_is_readable(sqs: Sqs, capsys: pytest.CaptureFixture[str]) -> None:
    url, arn = made(sqs)
    lines = show(sqs, url.rpartition("/")[2], capsys).splitlines()
    assert lines[:4] == [
        f"{url.rpartition('/')[2]}  {url}",
        "messages: 1 visible, 0 in flight, 1 delayed",
        "",
        "attributes",
    ]
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  ")}
    assert rows["VisibilityTimeout"] == ["7", "s"]
    assert rows["MaximumMessageSize"][1] == "bytes"
    assert rows["CreatedTimestamp"][1].startswith("(20")
    assert "ApproximateNumberOfMessages" not in rows
    at = lines.index("RedrivePolicy")
    assert lines[at + 1] == "  {"
    assert f'    "deadLetterTargetArn": "{arn}",' in lines[at:]
    assert lines[-3:] == ["tags", "  cost  a b", "  team  checkout"]


def test_show_as_json_is_one_object(sqs: Sqs, capsys: pytest.CaptureFixture[str]) -> None:
    url, arn = made(sqs)
    shown = json.loads(show(sqs, url, capsys, "--json"))
    assert (shown["name"], shown["url"], shown["tags"]) == (url.rpartition("/")[2], url, TAGS)
    assert (shown["visible"], shown["in_flight"], shown["delayed"]) == (1, 0, 1)
    assert shown["attributes"]["VisibilityTimeout"] == "7"
    assert list(shown["policies"]) == ["RedrivePolicy"]
    assert shown["policies"]["RedrivePolicy"]["deadLetterTargetArn"] == arn


def test_queue_that_does_not_exist_is_told(sqs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queues", "show", "--url", sqs.url, "nowhere"]) == 1
    told = capsys.readouterr()
    assert (told.out, "NonExistentQueue" in told.err) == ("", True)


class Odd:
    """An endpoint that answers with a policy that is no JSON, and with control characters."""

    def get_queue_attributes(self, **members: Any) -> dict[str, Any]:
        return {"Attributes": {"Policy": "not \x1b JSON", "CreatedTimestamp": "long ago"}}

    def list_queue_tags(self, **members: Any) -> dict[str, Any]:
        return {"Tags": {"note": "bell \x07"}}


def test_text_that_is_no_policy_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    queue_sheet.show(Odd(), "http://host/1/jobs", as_json=False)  # type: ignore[arg-type]
    assert capsys.readouterr().out.splitlines()[-5:] == ["Policy", "  not \\x1b JSON", "", "tags", "  note  bell \\x07"]
    queue_sheet.show(Odd(), "http://host/1/jobs", as_json=True)  # type: ignore[arg-type]
    assert json.loads(capsys.readouterr().out)["policies"] == {"Policy": "not \x1b JSON"}
