"""When a client counts as one that floods a member."""

from elasticq.admin.attention.clients import ROUNDS, ClientWatch

START_MS = 1_700_000_000_000


def seen(watch: ClientWatch, rounds: int, **per_round: int) -> ClientWatch:
    for _ in range(rounds):
        counts = {address: watch._before.get(address, 0) + count for address, count in per_round.items()}
        watch.look({address: (count, 3) for address, count in counts.items()}, watch._at_ms + 2_000)
    return watch


def fresh() -> ClientWatch:
    watch = ClientWatch()
    watch.look({"a": (0, 1), "b": (0, 1)}, START_MS)
    return watch


def test_an_address_that_sends_nearly_all_for_some_time_is_told() -> None:
    watch = seen(fresh(), ROUNDS - 1, a=1_000, b=10)
    assert watch.flood is None
    flood = seen(watch, 1, a=1_000, b=10).flood
    assert flood is not None
    assert (flood.address, flood.per_s, flood.connections, flood.since_ms) == ("a", 500, 3, START_MS)
    assert 0.99 < flood.share < 1
    assert seen(watch, 1, a=100, b=10).flood is None


def test_a_busy_client_that_is_alone_floods_nobody() -> None:
    assert seen(fresh(), 5, a=5_000).flood is None


def test_clients_that_share_the_load_do_not_flood() -> None:
    assert seen(fresh(), 5, a=3_000, b=1_500).flood is None


def test_a_count_that_falls_is_no_flood() -> None:
    watch = seen(fresh(), 3, a=1_000, b=10)
    watch.look({"a": (0, 1), "b": (9_000, 1)}, watch._at_ms + 2_000)
    assert watch.flood is None
