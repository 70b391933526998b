"""Who gives way: the busiest address first, and of it the oldest."""

from hypothesis import given
from hypothesis import strategies as st

from elasticq.net.connection_limits import choose_victim


def test_the_oldest_of_the_busiest_address_gives_way() -> None:
    waiting = {1: "quiet", 2: "busy", 3: "busy", 4: "other"}
    assert choose_victim(waiting) == 2


def test_spared_addresses_go_when_there_is_nobody_else() -> None:
    waiting = {1: "member", 2: "member", 3: "stranger"}
    assert choose_victim(waiting, {"member"}) == 3
    del waiting[3]
    assert choose_victim(waiting, {"member"}) == 1


@given(st.lists(st.sampled_from("abc"), min_size=5), st.integers(5, 50))
def test_one_that_is_alone_at_its_address_outlasts_any_flood_of_another(others: list[str], bound: int) -> None:
    waiting: dict[int, str] = {-1: "prober"}
    for number, address in enumerate(others * 20):
        waiting[number] = address
        if len(waiting) > bound:
            del waiting[choose_victim(waiting)]
    assert -1 in waiting
