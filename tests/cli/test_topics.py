"""elasticq topics against a server."""

import io
import json
from collections.abc import Iterator

import pytest

from elasticq.testing import ElasticQ
from tests.cli.running import Run, runner


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticQ]:
    with ElasticQ() as server:
        yield server


@pytest.fixture
def run(server: ElasticQ, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Exit status, stdout and stderr of elasticq topics."""
    return runner("topics", server, capsys, monkeypatch)


def test_a_topic_is_made_subscribed_to_shown_and_deleted(server: ElasticQ, run: Run) -> None:
    queue = server.queue("jobs").create()
    topic = server.topic("news")
    assert run("create", "news", "--attribute", "DisplayName=News") == (0, f"{topic.arn}\n", "")
    status, arn, _ = run("subscribe", "news", "jobs", "--raw", "--filter", '{"kind": ["a"]}', "--filter-body")
    assert status == 0
    assert run("ls")[1].split() == ["NAME", "SUBSCRIPTIONS", "PENDING", "news", "1", "0"]
    shown = run("show", "news")[1]
    assert "DisplayName=News" in shown
    assert arn.strip() in shown
    assert queue.arn in shown
    (told,) = map(json.loads, run("show", "news", "--json")[1].splitlines())
    assert told["subscriptions"][0]["Endpoint"] == queue.arn
    assert run("publish", "news", '{"kind": "b"}')[0] == 0
    assert run("publish", "news", '{"kind": "a"}', "--attribute", "x=y", "--subject", "s")[0] == 0
    assert [each["Body"] for each in queue.peek()] == ['{"kind": "a"}']
    assert run("unsubscribe", arn.strip()) == (0, arn, "")
    assert topic.subscriptions() == []
    assert run("delete", topic.arn, "--yes") == (0, f"{topic.arn}\n", "")
    assert server.topics() == []


def test_lines_are_messages(server: ElasticQ, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = server.queue("lines.fifo").create()
    server.topic("lines.fifo").create(ContentBasedDeduplication=True).subscribe(queue, raw=True)
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{number}\n" for number in range(12))))
    assert run("publish", "lines.fifo", "--group", "g", "--json")[1] == '{"published": "12"}\n'
    assert [each["Body"] for each in queue.peek()] == [str(number) for number in range(12)]


def test_long_lines_go_in_as_many_batches_as_they_need(
    server: ElasticQ, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = server.queue("long").create()
    server.topic("long").create().subscribe(queue, raw=True)
    lines = [str(number) * 100_000 for number in range(5)]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    assert run("publish", "long") == (0, "5\n", "")
    assert [each["Body"] for each in queue.peek()] == lines


def test_a_line_that_is_refused_is_told(server: ElasticQ, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    server.topic("refusing").create()
    refused = {"Successful": [{"Id": "0"}], "Failed": [{"Id": "1", "Code": "Throttled", "Message": "slow down"}]}
    monkeypatch.setattr("elasticq.client.Sns.publish_batch", lambda self, **members: refused)
    monkeypatch.setattr("sys.stdin", io.StringIO("a\nb\n"))
    told = "elasticq: message 2 was refused: Throttled: slow down (1 other of its batch of 2 accepted)\n"
    assert run("publish", "refusing") == (1, "", told)


def test_what_cannot_be_done_is_told(run: Run) -> None:
    assert run("show", "none") == (1, "", "elasticq: there is no topic none\n")
    status, _, error = run("publish", "arn:aws:sns:us-east-1:000000000000:none", "x")
    assert (status, error) == (1, "elasticq: NotFound: Topic does not exist\n")
    assert run("create", "a", "--attribute", "x") == (2, "", "elasticq: 'x' is not NAME=VALUE\n")


def test_a_deletion_is_asked_about(server: ElasticQ, run: Run) -> None:
    server.topic("kept").create()
    status, _, error = run("delete", "kept")
    assert status == 1
    assert "use --yes" in error
    assert server.topics().count("kept") == 1
