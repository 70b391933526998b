"""Histories on FIFO queues with partitions: each gives what the whole queue gives, without the others."""

from types import MappingProxyType
from zlib import crc32

from hypothesis import given, settings

from elasticq.engine.state import State
from elasticq.engine.views.digest import state_digest
from elasticq.engine.writers.contract import roll_back
from elasticq.model import commands as c
from tests.engine.driver import STEPS, FifoDriver, Step, check_indexes, digest
from tests.engine.test_apply import check_roll_back
from tests.engine.views.test_dump import dumped, made_from

COUNT = 3


class PartitionedDriver(FifoDriver):
    """The same steps on FIFO queues with partitions, from which is mostly received by partition."""

    attributes = MappingProxyType({**FifoDriver.attributes, "ElasticqPartitions": str(COUNT)})

    def _receive(self, name: str, a: int, b: int) -> None:
        asked, before = (a + b) % (COUNT + 1), len(self.received)
        command = c.ReceiveMessage(
            queue_url=name,
            message_system_attribute_names=["MessageGroupId"],
            max_number_of_messages=a + 1,
            visibility_timeout=b,
            receive_request_attempt_id=f"try{b // 2}" if b % 2 else None,
            elasticq_partition=asked if asked < COUNT else None,
        )
        self._do(command, self._guid(a + b))
        for message in (message for result in self.received[before:] for message in result.messages):
            assert asked in (COUNT, partition_of((message.attributes or {})["MessageGroupId"]))


def partition_of(group: str) -> int:
    return crc32(group.encode()) % COUNT


def check_partitions(state: State, now_ms: int) -> None:
    check_indexes(state, now_ms)
    for queue in state.queues.values():
        own: dict[int, list[int]] = {}
        for sequence in queue.order.choose(now_ms, 1_000, -1):
            own.setdefault(partition_of(queue.contents[sequence].group_id or ""), []).append(sequence)
        assert queue.order.open_partitions(now_ms) == own.keys()
        for partition in range(COUNT):
            for limit in (1, 3, 1_000):
                assert queue.order.choose_in(partition, now_ms, limit, -1) == own.get(partition, [])[:limit]


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_partitions_always_say_what_the_queue_says(steps: list[Step]) -> None:
    driver = PartitionedDriver()
    for step in steps:
        driver.run([step])
        check_partitions(driver.desk.state, driver.desk.context.now_ms)


@settings(max_examples=60, deadline=None)
@given(before=STEPS, lost=STEPS, after=STEPS)
def test_rolled_back_state_is_the_state_before(before: list[Step], lost: list[Step], after: list[Step]) -> None:
    driver = PartitionedDriver()
    check_roll_back(driver, before, lost, after)
    check_partitions(driver.desk.state, driver.desk.context.now_ms)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_dump_has_the_same_partitions(steps: list[Step]) -> None:
    driver = PartitionedDriver()
    driver.run(steps)
    now_ms = driver.desk.context.now_ms
    other = made_from(dumped(driver.desk.state))
    assert state_digest(other, now_ms) == digest(driver.desk)
    check_partitions(other, now_ms)
    for queue in driver.desk.state.queues.values():
        for partition in range(COUNT):
            own = other.queues[queue.id].order.choose_in(partition, now_ms, 1_000, -1)
            assert own == queue.order.choose_in(partition, now_ms, 1_000, -1)


def test_number_given_anew_after_a_roll_back_is_of_its_new_partition_alone() -> None:
    """The line of the old one still has an entry with that number and time."""
    driver = PartitionedDriver()
    first, second = (sorted(g for g in map(str, range(50)) if partition_of(g) == partition) for partition in (0, 1))
    send(driver, "stays", first[0])
    driver.undo = []
    send(driver, "is lost", first[1])
    roll_back(driver.undo)
    driver.undo = None
    send(driver, "comes instead", second[0])
    queue = driver.desk.queue(driver.names[0])
    now_ms = driver.desk.context.now_ms
    bodies = [[queue.contents[each].body for each in queue.order.choose_in(at, now_ms, 10, -1)] for at in range(COUNT)]
    assert bodies == [["stays"], ["comes instead"], []]


def send(driver: PartitionedDriver, body: str, group: str) -> None:
    command = c.SendMessage(driver.names[0], body, message_group_id=group, message_deduplication_id=group)
    driver.desk.do(command, undo=driver.undo)
