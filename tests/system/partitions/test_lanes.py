"""FIFO queues with partitions on a real server: consumers of partitions side by side, and shared out by a group."""

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from elasticq.client import Sqs
from tests.system.acceptance.conftest import LISTENING, ROOT, running
from tests.system.acceptance.raw import Endpoint
from tests.system.cluster.cluster import until
from tests.system.partitions import consumer

COUNT, GROUPS, ROUNDS = 12, 24, 25
ATTRIBUTES = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "ElasticqPartitions": str(COUNT)}
CONSUMERS = "lanes"
SESSION_MS = 2_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("server"), LISTENING, "--memory") as url:
        yield url


def client(server: str) -> Sqs:
    return Sqs(server, "us-east-1", ("000000000000", "secret"))


def partition_of(group: str) -> int:
    return crc32(group.encode()) % COUNT


def send(sqs: Sqs, url: str, numbers: range) -> None:
    """Each of the groups gets a message of each number."""
    for number in numbers:
        entries = [
            {
                "Id": str(at),
                "MessageBody": str(number),
                "MessageGroupId": f"g{at}",
                "MessageDeduplicationId": f"{at}-{number}",
            }
            for at in range(GROUPS)
        ]
        answer = sqs.send_message_batch(QueueUrl=url, Entries=entries, ElasticqPageSize=GROUPS)
        assert len(answer["Successful"]) == GROUPS


def test_consumers_of_partitions_share_a_queue_and_keep_each_group_in_order(server: str) -> None:
    """Each waits for its partitions one after the other, while messages come."""
    with client(server) as sqs:
        url = sqs.create_queue(QueueName="side-by-side.fifo", Attributes=ATTRIBUTES)["QueueUrl"]
        taken: list[tuple[int, str, int]] = []
        is_over = threading.Event()

        def consume(own: list[int]) -> None:
            with client(server) as each:
                while not is_over.is_set():
                    for partition in own:
                        asked = {"QueueUrl": url, "ElasticqPartition": partition, "MaxNumberOfMessages": 10}
                        names = {"MessageSystemAttributeNames": ["MessageGroupId"]}
                        for message in each.receive_message(**asked, **names).get("Messages", []):
                            taken.append((partition, message["Attributes"]["MessageGroupId"], int(message["Body"])))
                            each.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

        threads = [threading.Thread(target=consume, args=([*range(at, COUNT, 3)],)) for at in range(3)]
        for thread in threads:
            thread.start()
        send(sqs, url, range(5))
        until(lambda: len(taken) >= 5 * GROUPS, "everything is received")
        is_over.set()
        for thread in threads:
            thread.join()
    assert len(taken) == 5 * GROUPS
    assert {(partition_of(group), partition) for partition, group, _ in taken} == {(at, at) for at in own_partitions()}
    for at in range(GROUPS):
        assert [number for _, group, number in taken if group == f"g{at}"] == [*range(5)]


def own_partitions() -> set[int]:
    return {partition_of(f"g{at}") for at in range(GROUPS)}


@contextmanager
def consumers(server: str, notes: Path, count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    command = [sys.executable, "-m", consumer.__name__, server, CONSUMERS, str(notes)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with (notes.parent / "stderr").open("wb") as stderr:
        started = [subprocess.Popen(command, cwd=ROOT, env=environment, stderr=stderr) for _ in range(count)]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert (notes.parent / "stderr").read_text() == ""


def shares(endpoint: Endpoint) -> list[int]:
    """How many partitions each consumer of the group holds."""
    (group,) = endpoint.json("ElasticqDescribeGroups", {"GroupNames": [CONSUMERS]}).document["Groups"]
    held = Counter(each.get("ConsumerId") for each in group["Resources"] if each["State"] == "held")
    return sorted(held[each["ConsumerId"]] for each in group["Consumers"])


def noted(notes: Path) -> list[tuple[int, int, str, int]]:
    """(process, partition, group, number) of each message that was worked on, in the order of that."""
    lines = notes.read_text().splitlines() if notes.exists() else []
    fields: list[Any] = [line.split() for line in lines]
    return [(int(process), int(partition), group, int(number)) for process, partition, group, number in fields]


def test_order_holds_in_each_group_while_a_consumer_of_twelve_partitions_is_killed(server: str, tmp_path: Path) -> None:
    endpoint, notes = Endpoint(server), tmp_path / "notes"
    with client(server) as sqs:
        url = sqs.create_queue(QueueName="shared-out.fifo", Attributes=ATTRIBUTES)["QueueUrl"]
        asked = {"GroupName": CONSUMERS, "PartitionsOf": "shared-out.fifo", "SessionTimeoutMs": SESSION_MS}
        assert endpoint.json("ElasticqSetGroup", asked).status == 200
        with consumers(server, notes, 3) as (killed, *others):
            until(lambda: shares(endpoint) == [4, 4, 4], "three consumers share twelve partitions")
            send(sqs, url, range(ROUNDS // 2))
            mine = until(lambda: [each for each in noted(notes) if each[0] == killed.pid], "it has begun")
            killed.kill()
            send(sqs, url, range(ROUNDS // 2, ROUNDS))
            until(lambda: shares(endpoint) == [6, 6], "the others have what it held")
            wanted = {(f"g{at}", number) for at in range(GROUPS) for number in range(ROUNDS)}
            until(lambda: {each[2:] for each in noted(notes)} == wanted, "everything is worked on")
    done = noted(notes)
    assert {each[0] for each in done} == {killed.pid, *(each.pid for each in others)}
    assert all(partition == partition_of(group) for _, partition, group, _ in done)
    assert {each[1] for each in mine}.issubset({each[1] for each in done if each[0] != killed.pid})
    for at in range(GROUPS):
        numbers = [number for _, _, group, number in done if group == f"g{at}"]
        assert numbers == sorted(numbers), "what was noted and not deleted comes again, before the next"
