"""Posts to one endpoint are not more often than they may be."""

from hypothesis import given
from hypothesis import strategies as st

from elasticq.push.pusher import Pace


def test_posts_that_come_together_are_made_one_after_another() -> None:
    pace = Pace()
    assert [pace.wait_s(100.0, 4) for _ in range(4)] == [0.0, 0.25, 0.5, 0.75]
    assert pace.wait_s(200.0, 4) == 0.0, "nothing is saved up, and nothing owed"


def test_without_a_bound_nothing_waits() -> None:
    pace = Pace()
    assert {pace.wait_s(1.0, None) for _ in range(100)} == {0.0}


@given(st.lists(st.floats(0, 0.5), max_size=60), st.integers(1, 50))
def test_no_second_has_more_posts_than_the_bound(gaps_s: list[float], per_second: int) -> None:
    pace, now_s, posts_s = Pace(), 0.0, []
    for gap_s in gaps_s:
        now_s += gap_s
        posts_s.append(now_s + pace.wait_s(now_s, per_second))
    for first_s in posts_s:
        within = [post_s for post_s in posts_s if first_s <= post_s < first_s + 1 - 1e-6]
        assert len(within) <= per_second
