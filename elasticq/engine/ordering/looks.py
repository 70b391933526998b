"""What people are shown of an order: the parts of it that no command asks for. It changes nothing."""

from collections.abc import Iterator

from elasticq.engine.ordering.contract import Order


def hidden(order: Order, now_ms: int) -> Iterator[int]:
    """Yield the messages in flight, those first that were received, or hidden anew, longest ago.

    They must not be changed meanwhile. After a start they come in the order of their sequences.
    """
    order.advance(now_ms)
    return iter(order._deadlines)
