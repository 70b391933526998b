"""Calls that wait for contents on disk: by queue, in their order, a bounded number."""

from elasticq.model import commands as c
from elasticq.node.waits.contents import WAITING_MAX, ContentWaits
from tests.node.cluster import call_of

CALL = call_of(c.ReceiveMessage("jobs"))


def test_calls_become_ready_with_the_contents_of_their_queue() -> None:
    waits = ContentWaits()
    for ticket, queue_id in enumerate((1, 2, 1, 1, 2)):
        assert waits.add(queue_id, CALL, ticket)
    assert not waits.has_ready
    waits.fetched(1)
    waits.fetched(3)
    assert [ticket for _, ticket in waits.take_ready(2)] == [0, 2]
    waits.fetched(2)
    waits.cancel(4)
    waits.cancel(4)
    assert [ticket for _, ticket in waits.take_ready(9)] == [3, 1]
    assert (waits.count, waits.has_ready) == (0, False)


def test_number_of_calls_is_bounded() -> None:
    waits = ContentWaits()
    for ticket in range(WAITING_MAX):
        assert waits.add(ticket % 7, CALL, ticket)
    assert not waits.add(1, CALL, "late")
    waits.fetched(1)
    assert not waits.add(1, CALL, "late"), "ready calls count, too"
    waits.cancel(0)
    assert waits.add(1, CALL, "late")
    assert len(waits.take_of(2)) == len(range(2, WAITING_MAX, 7))
    rest = waits.take_all()
    assert len({ticket for _, ticket in rest}) == len(rest) == WAITING_MAX - len(range(2, WAITING_MAX, 7))
    assert waits.count == 0
