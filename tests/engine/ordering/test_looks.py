"""What people are shown of an order."""

from elasticq.engine.ordering.looks import hidden
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
    assert list(hidden(desk.queue().order, desk.context.now_ms)) == [one, other]
    desk.do(c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=first.receipt_handle, visibility_timeout=200))
    assert list(hidden(desk.queue().order, desk.context.now_ms)) == [other, one]
    desk.wait(100)
    assert list(hidden(desk.queue().order, desk.context.now_ms)) == [one]
