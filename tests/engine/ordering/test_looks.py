"""What people are shown of an order."""

from elasticq.engine.ordering.fair import FairOrder
from elasticq.engine.ordering.fifo import FifoOrder
from elasticq.engine.ordering.looks import as_a, messages_in_flight
from elasticq.engine.ordering.shared import SharedOrder
from elasticq.model import commands as c
from tests.engine.desk import Desk


def test_what_was_hidden_longest_ago_comes_first() -> None:
    desk = Desk()
    desk.create(VisibilityTimeout="100")
    for _ in range(3):
        desk.send()
    [first] = desk.receive()
    desk.receive()
    one, other, _ = desk.queue().issued
    assert list(messages_in_flight(desk.queue().order, desk.context.now_ms)) == [one, other]
    desk.do(c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=first.receipt_handle, visibility_timeout=200))
    assert list(messages_in_flight(desk.queue().order, desk.context.now_ms)) == [other, one]
    desk.wait(100)
    assert list(messages_in_flight(desk.queue().order, desk.context.now_ms)) == [one]


def test_the_kind_of_an_order_is_told_rightly_after_another_was_asked_for() -> None:
    """Compiled classes share what ABCMeta remembers: ``isinstance`` said here that the first one is a FIFO order."""
    desk = Desk()
    desk.create("turns", ElasticqFairness="round_robin")
    desk.create("jobs.fifo", FifoQueue="true")
    turns, fifo = desk.queue("turns").order, desk.queue("jobs.fifo").order
    for _ in range(2):
        assert as_a(SharedOrder, turns) is turns
        assert as_a(FairOrder, turns) is turns
        assert as_a(FifoOrder, turns) is None
        assert as_a(FifoOrder, fifo) is fifo
        assert as_a(FairOrder, fifo) is None
