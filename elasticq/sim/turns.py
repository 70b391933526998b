"""Whose turn it is in queues whose groups share must follow from the rows, so that each member knows it alike."""

from elasticq.engine.ordering.looks import as_a
from elasticq.engine.ordering.shared import SharedOrder
from elasticq.engine.state import Queue, State
from elasticq.engine.stored.delivery_rows import Row

AHEAD = 12


def wrong_turns(state: State, now_ms: int) -> list[Queue]:
    """Return the queues whose order does not say what one says that is made anew from the rows."""
    return [queue for queue in state.queues.values() if queue.sharing is not None and _is_wrong(queue, state, now_ms)]


def _is_wrong(queue: Queue, state: State, now_ms: int) -> bool:
    order = as_a(SharedOrder, queue.order)
    assert order is not None, "a queue whose groups share has an order by turns"
    order.advance(now_ms)
    anew = _made_anew(queue, state)
    anew.advance(now_ms)
    return [order.group_name(each) for each in order.ahead(AHEAD)] != [
        anew.group_name(each) for each in anew.ahead(AHEAD)
    ]


def _made_anew(queue: Queue, state: State) -> SharedOrder:
    """Return an order that is made of the rows as a start makes it."""
    order = queue.order
    anew = SharedOrder(queue.rows, queue.contents, state.grace, queue.ages)
    for first, last in order.untouched_pairs():
        anew.insert_untouched(first, last)
    for sequence in queue.issued:
        name = order.group_name(sequence) if queue.row(sequence) is not None else None
        if name is not None:
            anew.join(sequence, name)
    for sequence in sorted(queue.rows):
        anew.insert(sequence, queue.rows[sequence])
    for sequence, due_ms in order.delayed():
        anew.insert(sequence, Row(due_ms))
    assert queue.sharing is not None
    anew.share_by(queue.sharing, queue.turns)
    return anew
