"""Comparisons in parts: each entry's work is bounded, and what differs anywhere is found."""

import pytest

from elasticq.engine.apply import apply
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.comparisons import RowsCompared
from elasticq.engine.views import digest
from elasticq.model import commands as c
from elasticq.node.digests import INCOMPLETE
from elasticq.node.node import Node
from elasticq.node.orders import OrderDone, OrderRefused, VerifyRows
from tests.node.cluster import WALL_MS, Cluster

CALLS = 3 * digest.PART_ROWS
LAST = 9_999


def filled() -> Cluster:
    """Members whose states need several parts, and have a row in the last one."""
    cluster = Cluster()
    cluster.do(cluster.elect(), c.CreateQueue(queue_name="jobs"))
    cluster.advance(300)
    for name in cluster.names:
        state = cluster.node(name).state
        for number in range(CALLS):
            key = number.to_bytes(4, "little") * 4
            apply(state, m.InvocationRecorded(key, WALL_MS + cluster.now_ms, 1, number + 1))
        apply(state, lease(LAST))
    return cluster


def lease(batch: int) -> m.Mutation:
    return m.LeaseCalled(1, "reader", batch, 0, 0, WALL_MS, WALL_MS + 1_000, [], [])


def compared_parts(node: Node) -> int:
    """How many parts the log of the node has."""
    log = node.replica.log
    payloads = [log.entry(index).payload for index in range(log.first_index, log.last_index + 1)]
    return sum(type(mutation) is RowsCompared for payload in payloads for mutation in m.decode(payload))


def begun(cluster: Cluster, master: str) -> int:
    """The number of a comparison that is ordered now."""
    outcome = cluster.obey(master, VerifyRows())
    assert isinstance(outcome, OrderDone)
    return int(outcome.text.rpartition(" ")[2])


def found(cluster: Cluster, number: int) -> dict[str, str | None]:
    return {name: cluster.node(name).status(cluster.now_ms).digests.get(number) for name in cluster.names}


def test_a_large_state_is_compared_in_parts_while_it_changes() -> None:
    cluster = filled()
    master = cluster.elect()
    number = begun(cluster, master)
    assert set(found(cluster, number).values()) == {None}
    for _ in range(30):
        cluster.advance(7)
        cluster.do(master, c.SendMessage(queue_url="jobs", message_body="x"))
    cluster.advance(300)
    (equal,) = set(found(cluster, number).values())
    assert equal not in (None, INCOMPLETE)
    assert compared_parts(cluster.node(master)) > CALLS // digest.PART_ROWS


@pytest.mark.parametrize("where", ["the first part", "the middle", "the last part"])
def test_a_difference_is_found_in_any_part(where: str) -> None:
    cluster = filled()
    master = cluster.elect()
    other = next(name for name in cluster.names if name != master)
    state = cluster.node(other).state
    if where == "the first part":
        state.last_queue_id += 1
    elif where == "the middle":
        state.invocations.remove((CALLS // 2).to_bytes(4, "little") * 4)
    else:
        apply(state, lease(LAST + 1))
    number = begun(cluster, master)
    cluster.advance(500)
    seen = found(cluster, number)
    odd = seen.pop(other)
    (equal,) = set(seen.values())
    assert None not in (odd, equal)
    assert odd != equal


def test_a_member_that_restarts_meanwhile_is_incomplete_and_not_different() -> None:
    cluster = filled()
    master = cluster.elect()
    other = next(name for name in cluster.names if name != master)
    cluster.forget_log(master)
    number = begun(cluster, master)
    cluster.install(other, master)
    cluster.advance(500)
    seen = found(cluster, number)
    assert seen.pop(other) == INCOMPLETE
    (equal,) = set(seen.values())
    assert equal not in (None, INCOMPLETE)


def test_a_change_of_mastership_ends_a_comparison_and_the_next_one_is_whole() -> None:
    cluster = filled()
    old = cluster.elect()
    number = begun(cluster, old)
    cluster.advance(15)
    waiting = cluster.order(old, VerifyRows())
    assert cluster.answers(old, waiting) == [], "it begins when the first one is over"
    parts = compared_parts(cluster.node(old))
    cluster.isolate(old)
    cluster.advance(30)  # it goes on with a part that nobody gets
    new = cluster.elect_other(old)
    cluster.heal()
    cluster.advance(1_000)
    assert isinstance(cluster.answer(old, waiting), OrderRefused)
    assert set(found(cluster, number).values()) == {None}
    assert compared_parts(cluster.node(new)) <= parts + 1
    number = begun(cluster, new)
    cluster.advance(500)
    (equal,) = set(found(cluster, number).values())
    assert equal not in (None, INCOMPLETE)


def test_an_order_that_comes_during_a_comparison_gets_one_of_its_own() -> None:
    cluster = filled()
    master = cluster.elect()
    first = begun(cluster, master)
    tickets = [cluster.order(master, VerifyRows()) for _ in range(2)]
    cluster.advance(500)
    outcomes = [cluster.answer(master, ticket) for ticket in tickets]
    assert outcomes[0] == outcomes[1]
    cluster.advance(500)
    assert isinstance(outcomes[0], OrderDone)
    second = int(outcomes[0].text.rpartition(" ")[2])
    assert second > first
    assert None not in found(cluster, second).values()
