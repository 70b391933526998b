"""Digests of the rows at places of the log: the newest ones, none of what was taken back, none of damaged rows."""

from elasticq.engine.views.digest import delivery_digest
from elasticq.node.digests import DAMAGED, DIGESTS_MAX
from tests.node.cluster import Solo


def digests(solo: Solo) -> dict[int, str]:
    return solo.node.status(solo.now_ms).digests


def test_a_digest_is_that_of_the_state() -> None:
    solo = Solo()
    solo.create()
    solo.send()
    solo.node._digests.note(7, solo.time_ms)
    assert digests(solo) == {7: delivery_digest(solo.node.state, solo.time_ms).hex()}


def test_only_the_newest_are_kept() -> None:
    solo = Solo()
    for index in range(1, DIGESTS_MAX + 4):
        solo.node._digests.note(index, solo.time_ms)
    assert list(digests(solo)) == list(range(4, DIGESTS_MAX + 4))


def test_those_of_entries_that_were_taken_back_are_forgotten() -> None:
    solo = Solo()
    for index in range(1, 6):
        solo.node._digests.note(index, solo.time_ms)
    solo.node._digests.forget_above(3)
    assert list(digests(solo)) == [1, 2, 3]


def test_damaged_rows_have_none() -> None:
    solo = Solo(volatile=False)
    solo.node.replica.is_whole = False
    solo.node._digests.note(3, solo.time_ms)
    assert digests(solo) == {3: DAMAGED}
