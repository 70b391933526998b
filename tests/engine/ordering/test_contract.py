"""What every order must do, whatever goes first in it: of each kind, with groups and without."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.ordering.contract import ADVANCED_MAX, ContentsMissing, has_due_messages
from elasticq.engine.ordering.kinds import FIFO, KINDS, STANDARD, Kind
from elasticq.engine.ordering.lease_groups import LeaseGroups
from elasticq.engine.ordering.partitions import PARTITIONS
from elasticq.engine.ordering.sharing import FAIRNESS, STRATEGIES
from elasticq.engine.stored.delivery_rows import UNTOUCHED
from elasticq.engine.stored.mutations import LeaseCalled
from tests.engine.ordering.shelf import QUEUE_ID, Shelf, lines_run

every_order = pytest.mark.parametrize(
    ("kind", "groups", "attributes"),
    [
        pytest.param(kind, groups, attributes, id=f"{kind.name}{''.join(attributes.values())}-{groups}")
        for kind in KINDS
        for attributes in (
            {},
            *({FAIRNESS: strategy} for strategy in STRATEGIES[1:] if kind.shared),
            *({PARTITIONS: count} for count in ("2", "5") if kind.partitioned),
        )
        for groups in (0, 3)
    ],
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "later", "take", "take", "hide", "drop", "undo", "delay", "wait"]),
        st.integers(0, 7),
        st.sampled_from([0, 0, 1, 10, 100]),
    ),
    max_size=30,
)


@every_order
@given(steps=STEPS)
@settings(max_examples=60)
def test_order_says_what_the_rows_say(
    kind: Kind, groups: int, attributes: dict[str, str], steps: list[tuple[str, int, int]]
) -> None:
    shelf, now_ms = Shelf(kind, groups, attributes=attributes), 1_000
    for step, number, passed_ms in steps:
        now_ms += passed_ms
        _do(shelf, step, number, now_ms)
        _check(shelf, now_ms)
    restored = shelf.restored()
    _check(restored, now_ms)
    assert restored.choose(now_ms) == shelf.choose(now_ms), "a start changes nothing"


def _do(shelf: Shelf, step: str, number: int, now_ms: int) -> None:
    known = sorted(shelf.sent_ms)
    if step in ("send", "later") or not known:
        newest = shelf.queue.last_sequence = shelf.queue.last_sequence + 1 + number % 2
        shelf.put(newest, now_ms, delay_ms=number * 20 if step == "later" else 0)
        return
    one = known[number % len(known)]
    if step == "take":
        for sequence in shelf.choose(now_ms, number + 1):
            shelf.take(sequence, now_ms, now_ms + number * 20)
    elif step == "hide" and shelf.queue.order.is_in_flight(one, now_ms):
        shelf.hide(one, now_ms + (number % 3) * 30)
    elif step == "drop":
        shelf.drop(one)
    elif step == "undo":
        shelf.drop_and_roll_back(one)
    elif step == "delay":
        shelf.delay(number % 3 * 50)


def _check(shelf: Shelf, now_ms: int) -> None:
    order = shelf.queue.order
    assert order.counts(now_ms) == shelf.counts(now_ms)
    for sequence in shelf.sent_ms:
        state = shelf.state(sequence, now_ms)
        assert order.is_in_flight(sequence, now_ms) == (state == "in flight")
        assert order.is_delayed(sequence, now_ms) == (state == "delayed")
        assert order.is_untouched(sequence) == (shelf.row(sequence) is UNTOUCHED)
        assert order.group_name(sequence) == shelf.group_of(sequence)
    assert order.in_flight(now_ms) == shelf.counts(now_ms).in_flight
    untouched = [sequence for first, last in order.untouched_pairs() for sequence in range(first, last + 1)]
    delayed = [sequence for sequence, _ in order.delayed()]
    assert sorted([*untouched, *delayed]) == sorted(shelf.sent_ms.keys() - shelf.queue.rows.keys())
    assert order.untouched_count == len(untouched)
    assert order.rowless_count == len(untouched) + len(delayed)
    _check_choice(shelf, now_ms)
    due_ms = order.next_due_ms()
    unchanged_until_ms = now_ms + 1_000 if due_ms is None else due_ms - 1
    assert shelf.available(max(unchanged_until_ms, now_ms)) == shelf.available(now_ms), "never too late"


def _check_choice(shelf: Shelf, now_ms: int) -> None:
    available = shelf.available(now_ms)
    chosen = shelf.choose(now_ms)
    assert sorted(chosen) == sorted(available)
    assert shelf.choose(now_ms) == chosen, "a choice changes nothing"
    for limit in (1, 2, 3):
        assert shelf.choose(now_ms, limit) == chosen[:limit]
    oldest_ms = min(shelf.sent_ms.values(), default=0)
    living = shelf.choose(now_ms, sent_after_ms=oldest_ms)
    assert sorted(living) == sorted(sequence for sequence in available if shelf.sent_ms[sequence] > oldest_ms)
    if shelf.queue.partitions:
        _check_partitions(shelf, now_ms, chosen, living, oldest_ms)


def _check_partitions(shelf: Shelf, now_ms: int, chosen: list[int], living: list[int], oldest_ms: int) -> None:
    """Each partition gives what the queue gives, in its order, without the messages of the others."""
    order = shelf.queue.order
    assert order.open_partitions(now_ms) == {shelf.partition_of(sequence) for sequence in chosen}
    for partition in range(shelf.queue.partitions):
        own = [sequence for sequence in chosen if shelf.partition_of(sequence) == partition]
        for limit in (1, 2, 1_000):
            assert order.choose_in(partition, now_ms, limit, -1) == own[:limit]
        assert order.choose_in(partition, now_ms, 1_000, oldest_ms) == [x for x in living if x in own]


@every_order
@given(steps=STEPS, cold=st.sets(st.integers(0, 30)))
@settings(max_examples=60)
def test_contents_are_asked_for_until_there_is_something_to_hand_out(
    kind: Kind, groups: int, attributes: dict[str, str], steps: list[tuple[str, int, int]], cold: set[int]
) -> None:
    shelf, now_ms = Shelf(kind, groups, attributes=attributes), 1_000
    for step, number, passed_ms in steps:
        now_ms += passed_ms
        if step != "delay":  # the queue's delay of a content on disk may end a step of Ages too late
            _do(shelf, step, number, now_ms)
    available, counts = shelf.available(now_ms), shelf.counts(now_ms)
    for sequence in cold & shelf.sent_ms.keys():
        shelf.evict(sequence)
    order = shelf.queue.order
    assert set(order.missing_ahead()) <= shelf.cold.keys()
    chosen, missing = shelf.choose_or_miss(now_ms)
    for partition in range(shelf.queue.partitions):
        _check_contents_of(shelf, partition, available, now_ms)
    while missing:
        assert order.counts(now_ms) == counts, "contents do not count"
        assert missing[0] in available
        assert shelf.cold.keys() >= set(missing)
        shelf.fetch(missing[0])
        chosen, missing = shelf.choose_or_miss(now_ms)
    assert bool(chosen) == bool(available)
    assert available.issuperset(chosen)
    assert shelf.cold.keys().isdisjoint(chosen)


def _check_contents_of(shelf: Shelf, partition: int, available: set[int], now_ms: int) -> None:
    """What a partition asks for is of its own, and what it gives is in memory; no content comes."""
    own = {sequence for sequence in available if shelf.partition_of(sequence) == partition}
    chosen, missing = shelf.choose_or_miss(now_ms, partition)
    assert bool(chosen or missing) == bool(own)
    assert own.issuperset(chosen)
    assert shelf.cold.keys().isdisjoint(chosen)
    assert own.issuperset(missing[:1])
    assert shelf.cold.keys() >= set(missing)
    assert {shelf.partition_of(sequence) for sequence in missing} <= {partition}


@every_order
def test_no_message_is_handed_out_before_the_grace_is_over(kind: Kind, groups: int, attributes: dict[str, str]) -> None:
    shelf = Shelf(kind, groups, attributes=attributes)
    shelf.put(1, 100)
    shelf.take(1, 100, 500)
    assert shelf.choose(500) == [1]
    shelf.grace.spans = [(400, 900)]
    shelf.queue.order.recheck_returned(400)
    assert shelf.choose(899) == []
    assert shelf.queue.order.is_in_flight(1, 899)
    shelf.grace.spans = []
    shelf.queue.order.forget_grace()
    assert shelf.choose(500) == [1]


@every_order
def test_grace_that_came_while_a_message_was_in_flight_prolongs_its_deadline(
    kind: Kind, groups: int, attributes: dict[str, str]
) -> None:
    shelf = Shelf(kind, groups, attributes=attributes)
    shelf.put(1, 100)
    shelf.take(1, 100, 500)
    shelf.grace.spans = [(400, 900)]
    shelf.queue.order.recheck_returned(400)
    assert shelf.choose(899) == []
    assert shelf.choose(900) == [1]


@every_order
def test_many_moved_deadlines_cost_no_memory(kind: Kind, groups: int, attributes: dict[str, str]) -> None:
    shelf = Shelf(kind, groups, attributes=attributes)
    shelf.put(1, 0)
    shelf.take(1, 0, 10_000)
    for at in range(5_000):
        shelf.hide(1, 10_000 + at)
    assert len(shelf.queue.order._heap) <= 130
    assert shelf.choose(14_998) == []
    assert shelf.choose(14_999) == [1]


@every_order
def test_next_look_for_contents_comes_after_more_was_handed_out(
    kind: Kind, groups: int, attributes: dict[str, str]
) -> None:
    shelf = Shelf(kind, groups, attributes=attributes)
    for sequence in range(1, 601):
        shelf.put(sequence, sequence)
    order = shelf.queue.order
    next_prefetch_at = order.next_prefetch_at([], 1)
    assert order.progress(1) < next_prefetch_at
    for sequence in range(1, 601):
        shelf.take(sequence, 1_000, 2_000)
    assert order.progress(600) >= next_prefetch_at


@every_order
def test_lease_receives_behind_its_own_messages(kind: Kind, groups: int, attributes: dict[str, str]) -> None:
    shelf, order_groups = Shelf(kind, groups, attributes=attributes), LeaseGroups()
    for sequence in (1, 4, 7):
        shelf.put(sequence, 100)
    shelf.take(1, 100, 500)
    order_groups.learn({1: LeaseCalled(QUEUE_ID, "n", 1, 1, 1, 100, 500, [1], [1])})
    found = shelf.queue.order.choose_behind(order_groups, 200, 10, -1, may_miss=False)
    every = sorted([*shelf.choose(200), *found])
    assert every == [4, 7], "what is in flight is the lease's own and keeps nothing back from it"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.blocks_groups], ids=lambda kind: kind.name)
def test_lease_waits_for_the_next_content_of_its_group_unless_it_may_miss(kind: Kind) -> None:
    shelf, lease = Shelf(kind, groups=1), LeaseGroups()
    order = shelf.queue.order
    for sequence in (1, 2, 3):
        shelf.put(sequence, 100)
    shelf.take(1, 100, 500)
    lease.learn({1: LeaseCalled(QUEUE_ID, "n", 1, 1, 1, 100, 500, [1], [1])})
    shelf.evict(2)
    with pytest.raises(ContentsMissing) as missing:
        order.choose_behind(lease, 200, 10, -1, may_miss=False)
    assert missing.value.sequences == [2]
    assert order.choose_behind(lease, 200, 10, -1, may_miss=True) == []
    shelf.fetch(2)
    shelf.evict(3)
    assert order.choose_behind(lease, 200, 10, -1, may_miss=False) == [2], "what is in memory goes first"


@every_order
def test_of_many_deadlines_that_pass_together_each_look_moves_some(
    kind: Kind, groups: int, attributes: dict[str, str]
) -> None:
    """Counts are right at once, and nothing waits for its turn in vain."""
    shelf, count = Shelf(kind, groups, attributes=attributes), 5 * ADVANCED_MAX
    for sequence in range(1, 2 * count + 1):
        shelf.put(sequence, 1_000, delay_ms=9_000 if sequence > count else 0)
    shelf.queue.last_sequence = 2 * count
    for sequence in range(1, count + 1):
        shelf.take(sequence, 1_000, 10_000)
    order = shelf.queue.order
    assert not has_due_messages(order, 9_999)
    order.advance(10_000)
    assert has_due_messages(order, 10_000)
    assert order.counts(10_000) == shelf.counts(10_000)
    for sequence in (1, count, count + 1, 2 * count):
        assert not order.is_in_flight(sequence, 10_000)
        assert not order.is_delayed(sequence, 10_000)
    chosen = order.choose(10_000, 1_000, -1)
    assert len(chosen) == 1_000
    if not groups and not kind.needs_group:
        assert set(chosen) <= set(range(1, 2_001)) | set(range(count + 1, count + 2_001)), "what came due first"
    looks = 0
    while has_due_messages(order, 10_000):
        order.advance(10_000)
        looks += 1
    assert looks >= 1
    assert order.counts(10_000) == shelf.counts(10_000)
    if not shelf.queue.partitions:
        assert len(order.choose(10_000, 2 * count, -1)) == 2 * count


DELAY, LIMIT, WEIGHTS, SEPARATOR = (
    "DelaySeconds",
    "ElasticqMaxInFlightPerGroup",
    "ElasticqGroupWeights",
    "ElasticqGroupSeparator",
)
CHANGES = (
    (FIFO, {}, [{DELAY: "900"}, {DELAY: "0"}, {DELAY: "5"}, {DELAY: "900"}, {DELAY: "5"}, {DELAY: "0"}]),
    (FIFO, {PARTITIONS: "5"}, [{DELAY: "900"}, {DELAY: "5"}, {DELAY: "0"}]),
    (STANDARD, {}, [{FAIRNESS: "round_robin"}, {FAIRNESS: "weighted", WEIGHTS: '{"g1":3}'}, {}]),
    (STANDARD, {FAIRNESS: "adaptive"}, [{FAIRNESS: "adaptive", LIMIT: "2"}, {FAIRNESS: "sqs"}]),
    (STANDARD, {FAIRNESS: "round_robin"}, [{FAIRNESS: "round_robin", SEPARATOR: "1"}, {FAIRNESS: "round_robin"}]),
)


def _longest_turn(kind: Kind, attributes: dict[str, str], changes: list[dict[str, str]], count: int) -> int:
    """Return the lines of the longest turn while a queue with so many groups lives through the changes."""
    shelf, now_ms = Shelf(kind, 0 if kind.needs_group else count + 1, attributes=attributes), 10_000
    for sequence in range(1, count + 1):
        shelf.put(sequence, now_ms)
    now_ms += 60_000
    queue, turns = shelf.queue, []

    def receive() -> None:
        for sequence in queue.order.choose(now_ms, 10, -1):
            shelf.take(sequence, now_ms, now_ms + 30_000)

    for change in (attributes, *changes):
        turns.append(lines_run(queue.set_attributes, {**queue.attributes, **attributes, **change}))
        turns += [lines_run(receive) for _ in range(3)]
        while has_due_messages(queue.order, now_ms):
            turns.append(lines_run(queue.order.advance, now_ms))
            turns.append(lines_run(queue.order.counts, now_ms))
        shelf.delay_ms = queue.delay_s * 1_000
        assert len(queue.order.choose(now_ms, 2 * count, -1)) == len(shelf.available(now_ms))
    return max(turns)


@pytest.mark.pure
@pytest.mark.parametrize(("kind", "attributes", "changes"), CHANGES)
def test_no_turn_after_a_change_of_attributes_grows_with_the_number_of_groups(
    kind: Kind, attributes: dict[str, str], changes: list[dict[str, str]]
) -> None:
    few, many = (_longest_turn(kind, attributes, changes, factor * ADVANCED_MAX) for factor in (3, 6))
    assert many <= few * 1.2


@pytest.mark.pure
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_end_of_a_grace_moves_some_messages_in_each_turn(kind: Kind) -> None:
    """The order follows the deadlines all the same, and no turn sorts what the turns before it moved."""

    def longest(count: int) -> int:
        shelf = Shelf(kind)
        for sequence in range(1, count + 1):
            shelf.put(sequence, 100)
        by_deadline = sorted(range(1, count + 1), key=lambda sequence: sequence * 7_919 % count)
        for place, sequence in enumerate(by_deadline):
            shelf.take(sequence, 100, 400 + place * 400 // count)
        shelf.grace.spans = [(400, 900)]
        order = shelf.queue.order
        order.recheck_returned(400)
        turns = []
        for now_ms in (850, 900):
            while has_due_messages(order, now_ms):
                turns.append(lines_run(order.advance, now_ms))
        if kind.name == "standard":
            rows = shelf.queue.rows
            expected = sorted(rows, key=lambda each: (rows[each].visible_at_ms, rows[each].receive_count, each))
            assert order.choose(900, count, -1) == expected
        return max(turns)

    assert longest(9 * ADVANCED_MAX) <= 1.2 * longest(3 * ADVANCED_MAX)


@pytest.mark.pure
@every_order
def test_grace_costs_nothing_where_no_message_has_returned(kind: Kind, groups: int, attributes: dict[str, str]) -> None:
    shelf = Shelf(kind, groups, attributes=attributes)
    for sequence in range(1, 1_001):
        shelf.put(sequence, 100)
        shelf.take(sequence, 100, 500)
    assert lines_run(shelf.queue.order.recheck_returned, 400) < 20
    assert shelf.counts(100) == shelf.queue.order.counts(100)
