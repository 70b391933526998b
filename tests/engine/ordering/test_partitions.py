"""The order of FIFO queues with partitions: which group is in which, and what one partition costs."""

from elasticq.engine.ordering.fifo import FifoOrder
from elasticq.engine.ordering.kinds import FIFO
from elasticq.engine.ordering.partitions import PARTITIONS, PartitionedOrder
from tests.engine.ordering.shelf import Shelf


def shelf(count: int, groups: int = 0) -> tuple[Shelf, PartitionedOrder]:
    made = Shelf(FIFO, groups, attributes={PARTITIONS: str(count)})
    assert type(made.queue.order) is PartitionedOrder
    return made, made.queue.order


def test_queue_without_partitions_has_the_order_that_it_always_had() -> None:
    assert type(Shelf(FIFO).queue.order) is FifoOrder
    assert Shelf(FIFO).queue.partitions == 0


def test_partition_follows_from_the_name_alone_for_ever() -> None:
    """These are written down: another version must find a group where this one did."""
    _, order = shelf(12)
    names = ("orders", "customer-1", "customer-2", "größe", "")
    assert [order.partition_of(name) for name in names] == [2, 9, 3, 5, 0]
    _, order = shelf(256)
    assert [order.partition_of(name) for name in names] == [238, 125, 199, 137, 0]


def test_groups_spread_over_all_partitions() -> None:
    _, order = shelf(12)
    found = [order.partition_of(f"customer-{number}") for number in range(12_000)]
    assert min(map(found.count, range(12))) > 800


def test_receive_of_a_partition_looks_at_no_group_of_another() -> None:
    """Thousands of groups wait in the other partition; of its line nothing is read."""
    made, order = shelf(2)
    own = order.partition_of("g1")
    others = [each for each in range(2, 10_000) if order.partition_of(f"g{each}") != own]
    made.put(1, 1)
    for sequence in others:
        made.put(sequence, sequence)
    entries = {partition: len(line.entries) for partition, line in order._lines.items()}
    assert entries == {own: 1, 1 - own: len(others)}
    assert order.choose_in(own, 20_000, 10, -1) == [1]
    made.take(1, 20_000, 30_000)
    assert order.open_partitions(20_000) == {1 - own}
    assert order.choose_in(own, 20_000, 10, -1) == []


def test_lines_hold_few_stale_entries_whoever_receives() -> None:
    made, order = shelf(2)
    for sequence in range(1, 5):
        made.put(sequence, sequence)
    for now_ms in range(1_000, 3_000):
        for sequence in made.choose(now_ms, 2):
            made.take(sequence, now_ms, now_ms)
        for partition in tuple(order.open_partitions(now_ms)):
            assert order.choose_in(partition, now_ms, 1, -1)
    assert len(order._line) <= 64 + 2 * 4 + 1
    assert all(len(line.entries) <= 64 + 2 * 4 + 1 for line in order._lines.values())


def test_empty_partition_keeps_no_memory() -> None:
    made, order = shelf(3)
    for sequence in range(1, 100):
        made.put(sequence, sequence)
    assert len(order._lines) == 3
    for sequence in range(1, 100):
        made.drop(sequence)
    assert order._lines == {}
