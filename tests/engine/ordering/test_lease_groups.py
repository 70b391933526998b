"""What a lease remembers of its groups: each call once, however often it looks."""

from elasticq.engine.ordering.lease_groups import LeaseGroups
from elasticq.engine.stored.mutations import LeaseCalled


def called(number: int, *sequences: int) -> LeaseCalled:
    return LeaseCalled(7, "n", 1, 1, number, 100, 500, list(sequences), [each + 100 for each in sequences])


def test_each_call_is_learnt_once_and_in_its_order() -> None:
    groups, calls = LeaseGroups(), {1: called(1, 5, 6)}
    groups.learn(calls)
    groups.learn(calls)
    assert groups.new == [5, 6]
    calls |= {2: called(2, 9), 3: called(3, 7)}
    groups.learn(calls)
    assert groups.new == [5, 6, 9, 7]
    assert groups.delivery_numbers == {5: 105, 6: 106, 9: 109, 7: 107}


def test_call_that_was_rolled_back_and_made_again_is_learnt_again() -> None:
    groups, calls = LeaseGroups(), {1: called(1, 5)}
    groups.learn(calls)
    calls[1] = called(1, 8)
    groups.learn(calls)
    assert groups.new == [5, 8]
