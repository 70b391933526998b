"""The ids and handles of leases, and the table of them."""

import pytest

from elasticq.engine.ordering.leases import Attempt, Handle, Lease, Leases, read_attempt, read_lease_handle
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.delivery_rows import Grace


@pytest.mark.parametrize(
    ("attempt_id", "expected"),
    [
        ("q/0/0/0", Attempt("q", 0, 0, 0)),
        ("My-query_1.a/12/3/456", Attempt("My-query_1.a", 12, 3, 456)),
        ("n" * 80 + "/999999999999999/999999999999999/999999999999999", Attempt("n" * 80, *[10**15 - 1] * 3)),
    ],
)
def test_attempt_id_of_a_lease_is_read(attempt_id: str, expected: Attempt) -> None:
    assert read_attempt(attempt_id) == expected
    assert len(attempt_id) <= 128


@pytest.mark.parametrize(
    "attempt_id",
    [
        None,
        "",
        "q/0/0",
        "q/0/0/0/0",
        "q/00/0/0",
        "q/0/01/0",
        "q/0/0/-1",
        "q/0/0/0\n",
        "/0/0/0",
        "a b/0/0/0",
        "q/0/0/\u0663",
        "n" * 81 + "/0/0/0",
        "q/1000000000000000/0/0",
    ],
)
def test_any_other_attempt_id_is_none_of_a_lease(attempt_id: str | None) -> None:
    assert read_attempt(attempt_id) is None


def test_handles_name_one_lease_or_all_of_a_batch() -> None:
    assert read_lease_handle("lease:q/7/") == Handle("q", 7, None)
    assert read_lease_handle("lease:q/7/0") == Handle("q", 7, 0)
    for handle in (None, "", "lease:", "lease:q/7", "lease:q//", "lease:q/7/0/1", "lease:q/07/", "Lease:q/7/", "q/7/"):
        assert read_lease_handle(handle) is None


def test_lease_dies_at_its_deadline_or_at_the_end_of_the_grace_that_it_falls_into() -> None:
    grace, lease = Grace(), Lease(1_000, 5_000)
    assert lease.lives(grace, 4_999)
    assert not lease.lives(grace, 5_000)
    grace.spans = [(4_500, 7_000)]
    assert lease.lives(grace, 6_999)
    assert not lease.lives(grace, 7_000)
    lease.ended_ms = 2_000
    assert not lease.lives(grace, 3_000)


def test_leases_of_a_batch_come_in_the_order_of_their_partitions() -> None:
    leases = Leases()
    for partition in (10, 2, 0):
        leases.put((1, "q", 5, partition), Lease(0, 1))
    leases.put((1, "q", 6, 0), Lease(0, 1))
    leases.put((2, "q", 5, 1), Lease(0, 1))
    assert [partition for partition, _ in leases.of_batch(1, Handle("q", 5, None))] == [0, 2, 10]
    assert [partition for partition, _ in leases.of_batch(1, Handle("q", 5, 2))] == [2]
    assert leases.of_batch(1, Handle("q", 5, 3)) == leases.of_batch(3, Handle("q", 5, None)) == []


def test_lease_stands_among_the_living_or_the_ended() -> None:
    leases, key, lease = Leases(), (1, "q", 5, 0), Lease(0, 1)
    leases.put(key, lease)
    assert (list(leases.living), list(leases.ended), len(leases)) == ([key], [], 1)
    lease.ended_ms, lease.state = 9, m.LEASE_COMMITTED
    leases.put(key, lease)
    assert (list(leases.living), list(leases.ended), len(leases)) == ([], [key], 1)
    leases.remove(key)
    assert (leases.get(key), len(leases), leases.items()) == (None, 0, [])
