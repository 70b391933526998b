"""Priority queues: what a priority is, and that deep queues with few or many of them stay quick and small."""

import tracemalloc

import pytest

from elasticq.engine.ordering.kinds import PRIORITY as KIND
from elasticq.engine.ordering.priority import PRIORITY, PriorityOrder, arrival_priority, given_priority
from elasticq.engine.state import Queue
from elasticq.engine.stored.delivery_rows import UNTOUCHED, Grace, Row
from elasticq.engine.stored.mutations import MessageStored
from elasticq.model.commands import MessageAttributeValue
from tests.engine.ordering.shelf import Shelf

COUNT = 20_000


def content(sequence: int, priority: int | None = None) -> MessageStored:
    attributes = None if priority is None else {PRIORITY: MessageAttributeValue("Number", str(priority))}
    return MessageStored(7, sequence, "x", sequence, "me", attributes=attributes)


def filled(priorities: list[int]) -> Queue:
    queue = Queue(7, "0" * 12, "jobs", 0, Grace(), {KIND.marker: KIND.marker_value})
    for sequence, priority in enumerate(priorities, 1):
        put(queue, sequence, priority)
    return queue


def put(queue: Queue, sequence: int, priority: int) -> None:
    queue.contents[sequence] = content(sequence, priority)
    queue.order.insert(sequence, UNTOUCHED)


def take(queue: Queue, sequence: int, until_ms: int) -> None:
    old, row = queue.row(sequence), Row(until_ms, 1, 1, 1, 1)
    assert old is not None
    queue.rows[sequence] = row
    queue.order.replace(sequence, old, row)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("5", 5), ("-5", -5), ("+5", 5), ("007", 7), (str(2**63 - 1), 2**63 - 1), (str(-(2**63)), -(2**63))],
)
def test_priority_is_a_whole_number_of_64_bits(value: str, expected: int) -> None:
    assert given_priority({PRIORITY: MessageAttributeValue("Number", value)}) == expected


@pytest.mark.parametrize("value", ["", "1.0", "1e3", " 1", "1 ", "1\n", "٣", "--1", str(2**63), "1" * 20])
def test_anything_else_is_no_priority_and_the_default_counts(value: str) -> None:
    attributes = {PRIORITY: MessageAttributeValue("Number", value)}
    assert given_priority(attributes) is None
    assert arrival_priority(MessageStored(7, 1, "x", 1, "me", attributes=attributes), 4) == 4
    assert given_priority({PRIORITY: MessageAttributeValue("String", "1")}) is None
    assert given_priority(None) is None


@pytest.mark.parametrize("distinct", [1, 5, COUNT])
def test_deep_queue_is_drained_in_order_while_messages_come_and_return(distinct: int) -> None:
    priorities = [at * 7_919 % distinct - 3 for at in range(COUNT)]
    queue = filled(priorities)
    order = queue.order
    wanted = sorted(range(1, COUNT + 1), key=lambda sequence: (priorities[sequence - 1], sequence))
    found: list[int] = []
    for round_ in range(COUNT // 10):
        chosen = order.choose(round_, 10, -1)
        for sequence in chosen:
            take(queue, sequence, 10**9)
        if round_ % 10 == 0:  # half of them come back at once, to where they stood
            for sequence in chosen[5:]:
                take(queue, sequence, round_)
            chosen = [*chosen[:5], *order.choose(round_, 5, -1)]
            for sequence in chosen[5:]:
                take(queue, sequence, 10**9)
        found += chosen
    assert found == wanted
    assert order.choose(COUNT, 1, -1) == []


def test_message_that_returns_from_far_ahead_is_next_of_its_priority() -> None:
    shelf = Shelf(KIND)
    for at in range(600):
        shelf.put(4 * at + 4, 1)  # all have the default
    for sequence in (4, 8, 1_200, 2_400):
        shelf.take(sequence, 10, 20)
    assert shelf.choose(15, 2) == [12, 16]
    assert shelf.choose(20) == [4 * at + 4 for at in range(600)]


@pytest.mark.parametrize(("distinct", "bytes_max"), [(1, 40), (5, 40), (COUNT, 800)])
def test_index_of_a_message_is_small(distinct: int, bytes_max: int) -> None:
    contents = {sequence: content(sequence, sequence % distinct) for sequence in range(1, COUNT + 1)}
    queue = Queue(7, "0" * 12, "jobs", 0, Grace(), {KIND.marker: KIND.marker_value})
    queue.contents.update(contents)
    tracemalloc.start()
    for sequence in contents:
        queue.order.insert(sequence, UNTOUCHED)
    size_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size_bytes / COUNT < bytes_max


def test_priority_that_nobody_has_any_more_is_forgotten() -> None:
    queue = filled(list(range(500)))
    for sequence in range(1, 501):
        queue.order.prioritise(sequence, -1)
        queue.order.remove(sequence, UNTOUCHED)
    order = queue.order
    assert type(order) is PriorityOrder
    assert (len(order._levels), order._line) == (0, [])
    put(queue, 501, 3)
    assert order.choose(1_000, 1, -1) == [501]


def test_change_counts_for_what_is_in_flight_once_it_returns() -> None:
    queue = filled([1, 2, 3])
    take(queue, 2, 100)
    queue.order.prioritise(2, 9)
    assert queue.order.choose(50, 10, -1) == [1, 3]
    assert queue.order.choose(100, 10, -1) == [1, 3, 2]
    assert [queue.order.priority(sequence) for sequence in (1, 2, 3)] == [1, 9, 3]
