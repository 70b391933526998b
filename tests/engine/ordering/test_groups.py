"""Groups: each message in one, in order, and little memory for many."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.ordering.groups import Group, Groups


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 300), st.integers(0, 3)), max_size=200))
def test_groups_are_what_a_dict_of_lists_is(steps: list[tuple[bool, int, int]]) -> None:
    groups = Groups(Group)
    model: dict[int, str] = {}
    for is_join, number, group in steps:
        sequence = (1 << 40) + number * 7
        if is_join and sequence not in model:
            groups.join(sequence, f"g{group}")
            model[sequence] = f"g{group}"
        elif not is_join and model:
            gone = sorted(model)[number % len(model)]
            assert groups.leave(gone).name == model.pop(gone)
        assert {group.name for group in groups} == set(model.values())
        for each in groups:
            expected = sorted(sequence for sequence, name in model.items() if name == each.name)
            assert (list(each), each.first) == (expected, expected[0])
    for sequence, name in model.items():
        group = groups.of(sequence)
        assert group is not None
        assert group is groups.named(name)
    assert len(groups) == len(set(model.values()))
    assert groups.of(5) is None


def test_backlog_costs_little_for_each_message_and_group() -> None:
    tracemalloc.start()
    try:
        groups = Groups(Group)
        before = tracemalloc.get_traced_memory()[0]
        for sequence in range(100_000):
            groups.join((1 << 40) + sequence, f"g{sequence % 100}")
        message_bytes = (tracemalloc.get_traced_memory()[0] - before) / 100_000
        before = tracemalloc.get_traced_memory()[0]
        for number in range(5_000):
            groups.join((2 << 40) + number, f"other-{number}")
        group_bytes = (tracemalloc.get_traced_memory()[0] - before) / 5_000
    finally:
        tracemalloc.stop()
    assert message_bytes < 20
    assert group_bytes < 1_000


def test_emptied_groups_leave_nothing_behind() -> None:
    groups = Groups(Group)
    for sequence in range(1, 2_000):
        groups.join(sequence, f"g{sequence}")
        groups.leave(sequence)
    assert len(groups) == 0
    assert groups.join(5_000, "next").number == 1
