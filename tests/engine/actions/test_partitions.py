"""FIFO queues with partitions as clients see them: what makes one, what a receive of a partition gives, bad input."""

import json
from zlib import crc32

import pytest

from elasticq.engine.redrive.mover import Mover
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model.errors import (
    InvalidAttributeName,
    InvalidAttributeValue,
    InvalidParameterValue,
    QueueNameExists,
    SqsError,
)
from elasticq.model.extensions import Peek
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn
from elasticq.model.results import ReceivedMessage
from tests.engine.desk import Desk

URL, COUNT = "jobs.fifo", 4
GROUPS = [f"customer-{number}" for number in range(20)]


def partition_of(group: str, count: int = COUNT) -> int:
    return crc32(group.encode()) % count


class PartitionedDesk(Desk):
    """A desk with one FIFO queue that has partitions, or none if ``count`` is 0, and shorthands for it."""

    def __init__(self, count: int = COUNT) -> None:
        super().__init__()
        self.create(URL, FifoQueue="true", **({"ElasticqPartitions": str(count)} if count else {}))
        self.sent = 0

    def put(self, group: str, body: str, url: str = URL) -> None:
        self.sent += 1
        self.do(c.SendMessage(url, body, message_group_id=group, message_deduplication_id=str(self.sent)))

    def fill(self, rounds: int = 3) -> None:
        """So many messages of each group; a body tells group and number."""
        for number in range(rounds):
            for group in GROUPS:
                self.put(group, f"{group} {number}")

    def take(
        self,
        partition: int | None,
        limit: int = 10,
        *,
        attempt: str | None = None,
        visibility_s: int = 5,
        url: str = URL,
        guid: bytes = b"",
    ) -> list[ReceivedMessage]:
        command = c.ReceiveMessage(
            url,
            message_system_attribute_names=["All"],
            max_number_of_messages=limit,
            visibility_timeout=visibility_s,
            receive_request_attempt_id=attempt,
            elasticq_partition=partition,
        )
        return self.do(command, invocation=guid).messages

    def drop(self, messages: list[ReceivedMessage], url: str = URL) -> None:
        for message in messages:
            self.do(c.DeleteMessage(url, message.receipt_handle))

    def attributes(self, *names: str, url: str = URL) -> dict[str, str]:
        return self.do(c.GetQueueAttributes(url, list(names))).attributes

    def refused(self, command: c.Command, kind: type[SqsError], words: str) -> None:
        """The command is refused so, and changes nothing."""
        written = len(self.log)
        with pytest.raises(kind, match=words):
            self.do(command)
        assert len(self.log) == written


@pytest.fixture
def desk() -> PartitionedDesk:
    return PartitionedDesk()


def test_partitions_give_every_message_once_each_its_own_in_the_order_of_its_groups(desk: PartitionedDesk) -> None:
    desk.fill()
    seen: dict[str, list[str]] = {}
    for partition in range(COUNT):
        while messages := desk.take(partition):
            for message in messages:
                group = (message.attributes or {})["MessageGroupId"]
                assert partition_of(group) == partition
                seen.setdefault(group, []).append(message.body)
            desk.drop(messages)
    assert seen == {group: [f"{group} {number}" for number in range(3)] for group in GROUPS}


def test_receive_without_a_partition_is_that_of_any_fifo_queue(desk: PartitionedDesk) -> None:
    plain = PartitionedDesk(0)
    taken: list[list[str]] = []
    for each in (desk, plain):
        each.fill()
        for _ in range(30):
            messages = each.take(None, 3)
            taken.append([message.body for message in messages])
            each.drop(messages[1:])
            each.wait(1)
    assert taken[:30] == taken[30:]
    assert len({body for bodies in taken for body in bodies}) > len(GROUPS)


def test_group_in_flight_blocks_its_partition_only_for_itself(desk: PartitionedDesk) -> None:
    first, second = [group for group in GROUPS if partition_of(group) == 1][:2]
    desk.put(first, "1")
    desk.put(first, "2")
    desk.put(second, "3")
    assert [message.body for message in desk.take(1, 1)] == ["1"]
    assert [message.body for message in desk.take(1)] == ["3"]
    assert desk.take(1) == []
    desk.wait(5)
    assert sorted(message.body for message in desk.take(1)) == ["1", "2", "3"]


def test_attempt_id_stands_for_one_partition(desk: PartitionedDesk) -> None:
    desk.fill(1)
    first = desk.take(1, 2, attempt="a")
    assert [message.receipt_handle for message in desk.take(1, 2, attempt="a")] == [x.receipt_handle for x in first]
    other = desk.take(2, 2, attempt="a")
    assert {partition_of((message.attributes or {})["MessageGroupId"]) for message in other} == {2}
    whole = desk.take(None, 10, attempt="a")
    assert {message.body for message in whole}.isdisjoint(message.body for message in (*first, *other))


def test_retry_of_an_sdk_call_gets_what_it_got(desk: PartitionedDesk) -> None:
    desk.fill(1)
    first = desk.take(1, 2, guid=b"g" * 16)
    assert [x.receipt_handle for x in desk.take(1, 2, guid=b"g" * 16)] == [x.receipt_handle for x in first]


def test_purge_and_its_roll_back_leave_the_partitions_what_they_are(desk: PartitionedDesk) -> None:
    desk.fill(1)
    before = [[message.body for message in desk.take(partition, visibility_s=0)] for partition in range(COUNT)]
    undo: Undo = []
    desk.do(c.PurgeQueue(URL), undo=undo)
    assert [desk.take(partition) for partition in range(COUNT)] == [[]] * COUNT
    desk.put(GROUPS[0], "new")
    assert [message.body for message in desk.take(partition_of(GROUPS[0]))] == ["new"]

    desk = PartitionedDesk()
    desk.fill(1)
    undo = []
    desk.do(c.PurgeQueue(URL), undo=undo)
    roll_back(undo)
    assert [[message.body for message in desk.take(each, visibility_s=0)] for each in range(COUNT)] == before


def test_dead_and_moved_letters_find_the_partition_of_their_queue() -> None:
    arns = {name: queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, name) for name in ("dead.fifo", URL)}
    policy = json.dumps({"deadLetterTargetArn": arns["dead.fifo"], "maxReceiveCount": 1})
    desk = PartitionedDesk()
    desk.create("dead.fifo", FifoQueue="true", ElasticqPartitions="7")
    desk.do(c.SetQueueAttributes(URL, {"RedrivePolicy": policy}))
    desk.fill(1)
    for _ in range(2):
        for partition in range(COUNT):
            desk.take(partition)
        desk.wait(5)
    assert [desk.take(partition) for partition in range(COUNT)] == [[]] * COUNT
    dead = [desk.take(partition, url="dead.fifo", visibility_s=0) for partition in range(7)]
    for partition, messages in enumerate(dead):
        assert {partition_of((x.attributes or {})["MessageGroupId"], 7) for x in messages} <= {partition}
    assert sum(map(len, dead)) == len(GROUPS)
    desk.do(c.StartMessageMoveTask(arns["dead.fifo"], arns[URL]))
    mover = Mover()
    while desk.state.moving:
        desk.write(mover.step(desk.state, desk.context.now_ms, desk.context.term).mutations)
        desk.wait(0.01)
    back = [desk.take(partition) for partition in range(COUNT)]
    for partition, messages in enumerate(back):
        assert {partition_of((x.attributes or {})["MessageGroupId"]) for x in messages} == {partition}
    assert sum(map(len, back)) == len(GROUPS)


def test_peek_tells_the_partition(desk: PartitionedDesk) -> None:
    desk.fill(1)
    desk.create("plain.fifo", FifoQueue="true")
    desk.put("g", "x", url="plain.fifo")
    shown = desk.do(Peek(URL)).messages
    assert [message.partition for message in shown] == [partition_of(group) for group in GROUPS]
    assert [message.partition for message in desk.do(Peek("plain.fifo")).messages] == [None]


def test_number_of_partitions_is_an_attribute_of_queues_that_have_some(desk: PartitionedDesk) -> None:
    desk.create("plain.fifo", FifoQueue="true")
    desk.create("jobs")
    assert desk.attributes("ElasticqPartitions") == {"ElasticqPartitions": str(COUNT)}
    assert desk.attributes("All")["ElasticqPartitions"] == str(COUNT)
    for url in ("plain.fifo", "jobs"):
        assert desk.attributes("ElasticqPartitions", url=url) == {}
        assert "ElasticqPartitions" not in desk.attributes("All", url=url)


@pytest.mark.parametrize("count", ["0", "1", "257", "-2", "2.0", "many", "", "٣", "9" * 40])
def test_number_of_partitions_out_of_range_makes_no_queue(desk: PartitionedDesk, count: str) -> None:
    command = c.CreateQueue("new.fifo", {"FifoQueue": "true", "ElasticqPartitions": count})
    desk.refused(command, InvalidAttributeValue, "Invalid value for the parameter ElasticqPartitions")


@pytest.mark.parametrize("count", ["2", "256"])
def test_bounds_of_the_number_of_partitions_are_allowed(desk: PartitionedDesk, count: str) -> None:
    desk.create("new.fifo", FifoQueue="true", ElasticqPartitions=count)
    assert desk.attributes("ElasticqPartitions", url="new.fifo") == {"ElasticqPartitions": count}


@pytest.mark.parametrize("attributes", [{}, {"ElasticqOrder": "priority"}, {"ElasticqFairness": "weighted"}])
def test_queue_that_is_not_fifo_has_no_partitions(desk: PartitionedDesk, attributes: dict[str, str]) -> None:
    given = {**attributes, "ElasticqPartitions": "4"}
    desk.refused(c.CreateQueue("new", given), InvalidAttributeName, "ElasticqPartitions only when FifoQueue")
    desk.create("standard", **attributes)
    desk.refused(c.SetQueueAttributes("standard", {"ElasticqPartitions": "4"}), InvalidAttributeName, "ElasticqPart")


@pytest.mark.parametrize("count", ["5", "0", ""])
def test_number_of_partitions_is_never_changed(desk: PartitionedDesk, count: str) -> None:
    command = c.SetQueueAttributes(URL, {"DelaySeconds": "3", "ElasticqPartitions": count})
    desk.refused(command, InvalidAttributeValue, "Invalid value for the parameter ElasticqPartitions")
    desk.do(c.SetQueueAttributes(URL, {"DelaySeconds": "3", "ElasticqPartitions": str(COUNT)}))
    assert desk.attributes("DelaySeconds", "ElasticqPartitions") == {"DelaySeconds": "3", "ElasticqPartitions": "4"}


def test_queue_without_partitions_gets_none_later(desk: PartitionedDesk) -> None:
    desk.create("plain.fifo", FifoQueue="true")
    command = c.SetQueueAttributes("plain.fifo", {"ElasticqPartitions": "4"})
    desk.refused(command, InvalidAttributeValue, "Modifying the number of partitions is not supported")


def test_create_again_must_name_the_same_number(desk: PartitionedDesk) -> None:
    desk.create("plain.fifo", FifoQueue="true")
    desk.do(c.CreateQueue(URL, {"FifoQueue": "true", "ElasticqPartitions": str(COUNT)}))
    desk.do(c.CreateQueue(URL, {"FifoQueue": "true"}))
    for name, count in ((URL, "5"), ("plain.fifo", "4")):
        command = c.CreateQueue(name, {"FifoQueue": "true", "ElasticqPartitions": count})
        desk.refused(command, QueueNameExists, "a different value for attribute ElasticqPartitions")


@pytest.mark.parametrize("partition", [-1, COUNT, 2**31 - 1])
def test_partition_that_is_not_there_is_refused(desk: PartitionedDesk, partition: int) -> None:
    desk.fill(1)
    words = f"Value {partition} for parameter ElasticqPartition is invalid. Reason: Must be between 0 and 3"
    desk.refused(c.ReceiveMessage(URL, elasticq_partition=partition), InvalidParameterValue, words)


@pytest.mark.parametrize(("name", "attributes"), [("plain.fifo", {"FifoQueue": "true"}), ("plain", {})])
def test_queue_without_partitions_refuses_to_give_one(name: str, attributes: dict[str, str]) -> None:
    desk = PartitionedDesk()
    desk.create(name, **attributes)
    words = "Value 0 for parameter ElasticqPartition is invalid. Reason: .* not valid for this queue type"
    desk.refused(c.ReceiveMessage(name, elasticq_partition=0), InvalidParameterValue, words)
    leased = c.ReceiveMessage(name, receive_request_attempt_id="r/1/0/0", elasticq_partition=0)
    desk.refused(leased, InvalidParameterValue, words)
