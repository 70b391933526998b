"""elasticq groups against a server."""

import json
from collections.abc import Iterator

import pytest

from elasticq.client import Sqs
from elasticq.testing import ElasticQ
from tests.cli.running import Run, runner


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticQ]:
    with ElasticQ() as server:
        yield server


@pytest.fixture
def sqs(server: ElasticQ) -> Iterator[Sqs]:
    with Sqs(server.endpoint_url, server.region, (server.account, "test")) as sqs:
        yield sqs
        for group in sqs.describe_groups()["Groups"]:
            sqs.delete_group(GroupName=group["GroupName"])


@pytest.fixture
def run(server: ElasticQ, sqs: Sqs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Exit status, stdout and stderr of elasticq groups."""
    return runner("groups", server, capsys, monkeypatch)


def test_a_group_is_made_shown_changed_and_deleted(sqs: Sqs, run: Run) -> None:
    for name in ("one", "two"):
        sqs.create_queue(QueueName=name)
    assert run("set", "workers", "--queue", "one", "--queue", "two", "--session-ms", "5000") == (0, "workers\n", "")
    consumer = sqs.join_group(GroupName="workers", ConsumerName="anna")["ConsumerId"]
    sqs.join_group(GroupName="workers", Weight=0)
    head, row = run("ls")[1].splitlines()
    assert head.split() == ["NAME", "ASSIGNS", "GENERATION", "RESOURCES", "FREE", "CONSUMERS", "WITHOUT", "WORK"]
    assert row.split()[:4] == ["workers", "queues", "one,", "two"]
    assert row.split()[5:] == ["2", "0", "2", "1"]
    (told,) = map(json.loads, run("ls", "--json")[1].splitlines())
    assert (told["name"], told["resources"], told["without_work"]) == ("workers", 2, 1)
    shown = run("show", "workers")[1]
    assert "assigns queues one, two\n" in shown
    assert "SessionTimeoutMs=5000" in shown
    assert [line.split()[:4] for line in shown.splitlines() if "held" in line] == [
        ["one", "held", consumer, "anna"],
        ["two", "held", consumer, "anna"],
    ]
    (told,) = map(json.loads, run("show", "workers", "--json")[1].splitlines())
    assert told["QueueNames"] == ["one", "two"]
    assert run("set", "workers", "--max-per-consumer", "1", "--json") == (0, '{"group": "workers"}\n', "")
    assert run("set", "workers", "--prefix", "o")[0] == 0
    (group,) = sqs.describe_groups()["Groups"]
    assert (group["MaxPerConsumer"], group["SessionTimeoutMs"], group["QueueNamePrefix"]) == (1, 5_000, "o")
    assert run("delete", "workers", "--yes") == (0, "workers\n", "")
    assert sqs.describe_groups()["Groups"] == []


def test_resources_are_moved_and_consumers_drained_by_id_or_name(sqs: Sqs, run: Run) -> None:
    sqs.create_queue(QueueName="moved")
    run("set", "movers", "--queue", "moved")
    first = sqs.join_group(GroupName="movers", ConsumerName="first")["ConsumerId"]
    second = sqs.join_group(GroupName="movers", ConsumerName="second")["ConsumerId"]
    assert run("move", "movers", "moved", "second") == (0, "moved\n", "")
    view = sqs.heartbeat(GroupName="movers", ConsumerId=first)
    (revoked,) = view["Revoking"]
    sqs.heartbeat(GroupName="movers", ConsumerId=first, Released=[revoked["Token"]])
    assert [each["Resource"] for each in sqs.heartbeat(GroupName="movers", ConsumerId=second)["Assigned"]] == ["moved"]
    assert run("drain", "movers", second, "--json") == (0, f'{{"drained": "{second}"}}\n', "")
    assert [each["Resource"] for each in sqs.heartbeat(GroupName="movers", ConsumerId=second)["Revoking"]] == ["moved"]


def test_what_cannot_be_done_is_told(sqs: Sqs, run: Run) -> None:
    run("set", "workers", "--prefix", "w")
    assert run("show", "worker") == (1, "", "elasticq: there is no group worker, did you mean workers?\n")
    status, _, error = run("set", "workers")
    assert (status, error.startswith("elasticq: nothing to set")) == (2, True)
    for _ in range(2):
        sqs.join_group(GroupName="workers", ConsumerName="twin")
    status, _, error = run("drain", "workers", "twin")
    assert (status, error.startswith("elasticq: several consumers (2) are named twin: give the id of one, ")) == (
        1,
        True,
    )
    told = "elasticq: the group workers has no consumer twins, did you mean twin?\n"
    assert run("move", "workers", "w", "twins") == (1, "", told)
    status, _, error = run("set", "a b", "--prefix", "w")
    assert (status, "InvalidParameterValue" in error) == (1, True)
    status, _, error = run("delete", "workers")
    assert (status, "use --yes" in error) == (1, True)
    assert len(sqs.describe_groups()["Groups"]) == 1
    with pytest.raises(SystemExit):
        run("set", "workers", "--prefix", "w", "--queue", "q")


def test_groups_of_all_pages_are_listed(sqs: Sqs, run: Run) -> None:
    for number in range(130):
        sqs.set_group(GroupName=f"g{number:03}", QueueNames=["none"])
    assert len(run("ls", "--json")[1].splitlines()) == 130
