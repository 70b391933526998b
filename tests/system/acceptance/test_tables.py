"""Each table of the command line fits a terminal of 80 columns, also with the longest names."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from elasticq.cli.show import BOLD
from elasticq.client import Sns, Sqs
from tests.cli.terminal import Terminal, plain
from tests.server.process import Server

CLI = Path(__file__).parents[3] / "elasticq" / "cli"
COLUMNS = 80
QUEUE = "q" * 75 + ".fifo"
PRIORITIES = "p" * 80
GROUP = "g" * 80
TOPIC = "t" * 256
NODE = "n" * 40
TABLES = {
    "bench._report": ("bench", "--count", "20", "--connections", "1"),
    "queues._ls": ("queues", "ls"),
    "queues._peek": ("queues", "peek", QUEUE),
    "queues._scheduled": ("queues", "scheduled", PRIORITIES),
    "topics._ls": ("topics", "ls"),
    "groups._ls": ("groups", "ls"),
    "groups._show": ("groups", "show", GROUP),
    "cluster._describe": ("cluster", "status"),
}
"""The function that prints it, and a command that does."""
WITHOUT_NAMES = {"bench._report"}
"""Tables without names of queues, topics or members: nothing in them must be shortened."""


@pytest.fixture(scope="module")
def places() -> Iterator[tuple[str, str]]:
    """The URLs of the SQS port and the admin port."""
    with Server("--node-id", NODE) as server:
        with Sqs(server.url, "us-east-1") as sqs, Sns(server.url, "us-east-1") as sns:
            sqs.create_queue(QueueName=QUEUE, Attributes={"FifoQueue": "true", "ElasticqPartitions": "3"})
            sqs.create_queue(QueueName=PRIORITIES, Attributes={"ElasticqOrder": "priority"})
            group = {"MessageGroupId": "g" * 128, "MessageDeduplicationId": "1"}
            for queue, more in ((QUEUE, group), (PRIORITIES, {"DelaySeconds": 900})):
                url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
                sqs.send_message(QueueUrl=url, MessageBody="b" * 200, **more)
            sqs.set_group(GroupName=GROUP, PartitionsOf=QUEUE)
            sqs.join_group(GroupName=GROUP, ConsumerName="c" * 60)
            sns.create_topic(Name=TOPIC)
        yield server.url, server.admin()


def printers() -> set[str]:
    """The functions of the command line that call ``table``."""
    found = set()
    for file in CLI.glob("*.py"):
        for function in (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)):
            calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
            if any(isinstance(called, ast.Name) and called.id == "table" for called in calls):
                found.add(f"{file.stem}.{function.name}")
    return found


def test_no_table_is_left_out() -> None:
    assert printers() == set(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_fits(name: str, places: tuple[str, str]) -> None:
    arguments = TABLES[name]
    where = ("--admin", places[1]) if arguments[0] == "cluster" else ("--url", places[0], "--region", "us-east-1")
    with Terminal(*arguments, *where, columns=COLUMNS) as terminal:
        status, output = terminal.rest()
    _, *tables = output.split(BOLD)
    lines = [line for each in tables for line in plain(each).split("\n\n")[0].splitlines()]
    assert status == 0, output
    assert any("…" in line for line in lines) is (name not in WITHOUT_NAMES)
    assert max(map(len, lines)) <= COLUMNS, output
