"""Digests of comparisons: the newest, none of what was taken back, of damaged rows or of a part that is missing."""

from elasticq.engine.stored.comparisons import RowsCompared
from elasticq.engine.views.digest import Position
from elasticq.node.digests import DAMAGED, DIGESTS_MAX, INCOMPLETE, Digests
from tests.node.cluster import Solo

MIDDLE: Position = [1, 1]
LATER: Position = [4, 9]


def made(solo: Solo) -> Digests:
    return Digests(solo.node.state, solo.node.replica)


def note(digests: Digests, number: int, *ends: Position, after: Position | None = None) -> None:
    """Note parts that end at ``ends``, at the log indexes from ``number`` on."""
    begin: Position = after or []
    for at, end in enumerate(ends):
        digests.note(RowsCompared(number, begin, end), number + at, 1)
        begin = end


def test_a_digest_is_of_all_parts() -> None:
    solo = Solo()
    solo.create()
    digests = made(solo)
    note(digests, 1, [])
    note(digests, 2, MIDDLE, LATER)
    assert list(digests.by_number) == [1], "the second one is not over"
    note(digests, 5, MIDDLE, [])
    solo.send()
    note(digests, 7, MIDDLE, [])
    assert list(digests.by_number) == [1, 5, 7]
    assert len({*digests.by_number.values()}) == 3


def test_parts_of_another_comparison_and_parts_behind_a_gap_are_no_part_of_it() -> None:
    digests = made(Solo())
    note(digests, 1, MIDDLE)
    note(digests, 3, [], after=MIDDLE)
    note(digests, 5, MIDDLE)
    note(digests, 5, [], after=LATER)
    note(digests, 8, LATER, [], after=MIDDLE)
    assert digests.by_number == {3: INCOMPLETE, 5: INCOMPLETE, 8: INCOMPLETE}
    note(digests, 10, MIDDLE, [])
    assert digests.by_number[10] != INCOMPLETE


def test_only_the_newest_are_kept() -> None:
    digests = made(Solo())
    for number in range(1, DIGESTS_MAX + 4):
        note(digests, number, [])
    assert list(digests.by_number) == list(range(4, DIGESTS_MAX + 4))


def test_those_of_entries_that_were_taken_back_are_forgotten() -> None:
    digests = made(Solo())
    note(digests, 1, [])
    note(digests, 2, MIDDLE, LATER, [])
    note(digests, 5, MIDDLE)
    digests.forget_above(3)
    assert list(digests.by_number) == [1]
    note(digests, 5, [], after=MIDDLE)
    assert digests.by_number[5] == INCOMPLETE


def test_damaged_rows_have_none() -> None:
    solo = Solo(volatile=False)
    digests = made(solo)
    note(digests, 1, MIDDLE)
    solo.node.replica.is_whole = False
    note(digests, 1, LATER, after=MIDDLE)
    solo.node.replica.is_whole = True
    note(digests, 1, [], after=LATER)
    assert digests.by_number == {1: DAMAGED}
