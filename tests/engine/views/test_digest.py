"""A comparison's parts: together they visit all rows once, and the work of each is bounded by rows."""

from collections.abc import Callable
from typing import Any

import pytest

from elasticq.engine.apply import apply
from elasticq.engine.ordering.priority import ORDER
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.consumer_group_rows import ConsumerGroupSet, ConsumerSet, ResourceAssigned
from elasticq.engine.views.digest import PART_ROWS, Position, delivery_digest, digest_part, walk

NOW_MS = 1_700_000_000_000
ROWS = PART_ROWS + 300
OWNER = "0" * 12


def filled(turned: Callable[[list[int]], list[int]] = list) -> State:
    """A state with more rows of each kind than a part has. turned: the order in which unsorted rows come."""
    state = State()
    rows = turned(list(range(1, ROWS + 1)))
    put(state, m.ClusterFounded("cluster", b"key", 1))
    fifo = {"FifoQueue": "true"}
    for number in range(1, ROWS + 1):
        attributes = fifo if number == 4 else {ORDER: "priority"} if number == 5 else {}
        put(state, m.QueueCreated(number, OWNER, f"queue{number}", attributes, {}, NOW_MS))
    for number in turned(list(range(ROWS - 9, ROWS + 1))):
        put(state, m.QueueDeleted(number, NOW_MS))
    for number in range(1, ROWS + 1):
        put(state, m.MessageStored(1, number, "x", NOW_MS, "a"))
        put(state, m.MessageStored(2, number, "x", NOW_MS, "a", NOW_MS + number))
        put(state, m.MessageStored(3, 3 * number, "x", NOW_MS, "a"))
        put(state, m.MessageStored(5, number, "x", NOW_MS, "a"))
    for number in rows:
        put(state, m.MessagesReceived(1, NOW_MS, NOW_MS + 1, [number], [1], [1], [NOW_MS]))
        put(state, m.InvocationRecorded(number.to_bytes(4, "little") * 4, NOW_MS, 1, number))
        put(state, m.SentIdTaken(number.to_bytes(4, "little") * 4, NOW_MS, NOW_MS + 9, 1, number))
        put(state, m.LeaseCalled(1, f"reader{number % 7}", number, 0, 0, NOW_MS, NOW_MS + 1, [], []))
        put(state, m.SubscriptionSet(number, 1, "k", OWNER, "sqs", "arn", {}, "p", "o", "http://x", NOW_MS))
    for call in range(1, ROWS + 1):  # as many of one lease
        put(state, m.LeaseCalled(1, "reader", 1, 0, call, NOW_MS, NOW_MS + 1, [call], [1]))
    put(state, ConsumerGroupSet(1, OWNER, "group", 1_000, 0, 0, [], "queue"))
    put(state, ConsumerSet(1, 1, "consumer", 1, NOW_MS, NOW_MS + 1, 1))
    for number in rows:
        put(state, ResourceAssigned(number, 1, number, f"queue{number}", -1, 1, NOW_MS))
    return state


def put(state: State, mutation: Any) -> None:
    apply(state, mutation)


def parts_of(state: State) -> list[tuple[Position, bytes, int]]:
    """The end of each part, its digest and its cost."""
    found = list[tuple[Position, bytes, int]]()
    after: Position = []
    while not found or after:
        part = digest_part(state, NOW_MS, after)
        assert digest_part(state, NOW_MS, after, part.until).digest == part.digest, "as the others do"
        found.append((part.until, part.digest, part.cost))
        after = part.until
    return found


@pytest.fixture(scope="module")
def state() -> State:
    return filled()


def test_each_part_is_bounded_by_rows(state: State) -> None:
    parts = parts_of(state)
    assert max(cost for _, _, cost in parts) < PART_ROWS + 100, "and some of the last bucket"
    assert sum(cost for _, _, cost in parts) > 10 * ROWS


def test_parts_visit_each_row_once_wherever_they_begin(state: State) -> None:
    items = list(walk(state, NOW_MS, []))
    positions = [position for position, _ in items]
    assert len({str(position) for position in positions}) == len(positions)
    assert [position[0] for position in positions] == sorted(position[0] for position in positions)
    for at in range(0, len(items), len(items) // 60):
        rest = walk(state, NOW_MS, positions[at])
        assert [next(rest, None) for _ in range(3)] == [*items[at + 1 : at + 4], *[None] * (at + 4 - len(items))]


def test_parts_are_equal_where_rows_came_in_another_order(state: State) -> None:
    other = filled(lambda numbers: numbers[::-1])
    assert parts_of(other) == parts_of(state)
    assert delivery_digest(other, NOW_MS) == delivery_digest(state, NOW_MS)


def test_rows_that_come_and_go_between_two_parts_leave_equal_states_equal() -> None:
    one, other = filled(), filled(lambda numbers: numbers[::-1])
    after: Position = []
    for number in range(1, 1_000):
        part = digest_part(one, NOW_MS, after)
        assert digest_part(other, NOW_MS, after, part.until).digest == part.digest
        for each in (one, other):
            apply(each, m.MessagesRemoved(1, [number * 3]))
            apply(each, m.MessageStored(3, 3 * ROWS + number, "x", NOW_MS, "a"))
        after = part.until
        if not after:
            return
    raise AssertionError("it has no end")


@pytest.mark.parametrize(
    "after",
    [
        [-1],
        [99],
        ["x"],
        [1],
        [1, "x"],
        [1, 3, 99, 1],
        [1, 1, 3, "x"],
        [3, 4],
        [4, "x"],
        [7, 1, 1],
        [8, 5, "x"],
        [9, "x"],
    ],
    ids=str,
)
def test_a_position_that_fits_no_row_does_no_harm(state: State, after: Position) -> None:
    digest_part(state, NOW_MS, after)
    digest_part(state, NOW_MS, [], after)
