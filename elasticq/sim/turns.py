"""The check that the turns of fair-share queues follow from the rows, so all members have the same order."""

from elasticq.engine.ordering.looks import as_a
from elasticq.engine.ordering.shared import SharedOrder
from elasticq.engine.state import Queue, State
from elasticq.engine.stored.delivery_rows import Row

AHEAD = 12


def wrong_turns(state: State, now_ms: int) -> list[Queue]:
    """Return the fair-share queues whose order differs from an order that is rebuilt from the rows."""
    return [queue for queue in state.queues.values() if queue.sharing is not None and _is_wrong(queue, state, now_ms)]


def _is_wrong(queue: Queue, state: State, now_ms: int) -> bool:
    order = as_a(SharedOrder, queue.order)
    assert order is not None, "a fair-share queue has a SharedOrder"
    order.advance(now_ms)
    rebuilt = _rebuilt(queue, state)
    rebuilt.advance(now_ms)
    return [order.group_name(each) for each in order.ahead(AHEAD)] != [
        rebuilt.group_name(each) for each in rebuilt.ahead(AHEAD)
    ]


def _rebuilt(queue: Queue, state: State) -> SharedOrder:
    """Return an order that is built from the rows, as at the start of a member."""
    order = queue.order
    rebuilt = SharedOrder(queue.rows, queue.contents, state.grace, queue.ages)
    for first, last in order.untouched_pairs():
        rebuilt.insert_untouched(first, last)
    for sequence in queue.issued:
        name = order.group_name(sequence) if queue.row(sequence) is not None else None
        if name is not None:
            rebuilt.join(sequence, name)
    for sequence in sorted(queue.rows):
        rebuilt.insert(sequence, queue.rows[sequence])
    for sequence, due_ms in order.delayed():
        rebuilt.insert(sequence, Row(due_ms))
    assert queue.sharing is not None
    rebuilt.share_by(queue.sharing, queue.turns)
    return rebuilt
