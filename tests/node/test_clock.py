"""Cluster time: linked by heartbeats, fixed by a win, never below the last entry; advanced for tests."""

from hypothesis import given
from hypothesis import strategies as st

from elasticq.node.clock import ROUNDING_MS, ClusterClock


def started(now_ms: int = 100, wall_ms: int = 5_000) -> ClusterClock:
    clock = ClusterClock()
    clock.start(now_ms, wall_ms)
    return clock


def test_unlinked_clock_shows_its_wall_clock() -> None:
    assert started().reading(150) == (0, 5_050)


def test_heartbeat_links_and_the_wall_clock_no_longer_counts() -> None:
    clock = started()
    clock.link(3, 9_000, 200)
    assert clock.reading(260) == (3, 9_060 - ROUNDING_MS)
    assert clock.contact_ms == 9_000
    clock.link(3, 8_000, 300)  # the present master's word counts, also backwards
    assert clock.time_ms(310) == 8_010 - ROUNDING_MS


def test_winner_takes_the_highest_reading_of_its_quorum_that_the_newest_master_gave() -> None:
    clock = started()
    clock.win(6, [(0, 99_999), (4, 7_000), (4, 7_500), (3, 7_900)], 0, 200)
    assert clock.reading(200) == (6, 7_500 - ROUNDING_MS)


def test_where_nobody_is_linked_the_lower_median_of_the_walls_counts() -> None:
    for walls, expected in (([5], 5), ([9, 4], 4), ([1, 9, 5], 5), ([1, 2, 3, 4], 2)):
        clock = started()
        clock.win(1, [(0, wall) for wall in walls], 0, 200)
        assert clock.time_ms(200) == expected


def test_winner_never_goes_below_the_last_entry() -> None:
    clock = started()
    clock.win(2, [(1, 7_000)], 9_000, 200)
    assert clock.time_ms(200) == 9_000


def test_master_keeps_contact_with_itself() -> None:
    clock = started()
    clock.win(2, [(1, 7_000)], 0, 200)
    assert clock.contact_ms is None
    clock.keep(250)
    assert clock.contact_ms == 7_050 - ROUNDING_MS


def test_advance_moves_cluster_time_and_nothing_that_members_tell_each_other() -> None:
    clock = started()
    clock.link(1, 9_000, 200)
    clock.ahead_ms = 60_000
    assert clock.time_ms(260) == 69_060 - ROUNDING_MS
    assert clock.boot_ms(69_060 - ROUNDING_MS) == 260
    assert clock.reading(260) == (1, 9_060 - ROUNDING_MS)
    clock.keep(260)
    assert clock.contact_ms == 9_060 - ROUNDING_MS


def test_winner_of_an_advanced_cluster_does_not_advance_it_again() -> None:
    clock = started()
    clock.ahead_ms = 60_000
    clock.win(2, [(1, 7_000)], 66_500, 200)
    assert clock.time_ms(200) == 67_000 - ROUNDING_MS
    clock.win(2, [(1, 7_000)], 68_000, 200)
    assert clock.time_ms(200) == 68_000


@given(st.integers(0, 10**12), st.integers(0, 10**13), st.integers(0, 10**6))
def test_boot_time_and_cluster_time_are_inverse(now_ms: int, time_ms: int, later_ms: int) -> None:
    clock = started(now_ms)
    assert clock.time_ms(clock.boot_ms(time_ms)) == time_ms
    clock.link(1, time_ms, now_ms)
    assert clock.boot_ms(clock.time_ms(now_ms + later_ms)) == now_ms + later_ms
