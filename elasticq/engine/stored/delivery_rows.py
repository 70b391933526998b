"""Where the delivery of a message stands, and the grace after a change of master."""

from typing import Final


class Row:
    """The delivery of one message; replaced as a whole, never changed, so an old one undoes.

    visible_at_ms: 0 = never delayed nor received; else hidden until then (compare with cluster time);
    delivery_number: (term << 32 | count) of the newest delivery, 0 = never handed out, never lowered;
    receive_count: ApproximateReceiveCount; first_received_ms, received_ms: 0 or of the first and newest receive.

    No Struct, as it is never encoded: compiled, its numbers are kept and read without an object for each.
    """

    __slots__ = ("delivery_number", "first_received_ms", "receive_count", "received_ms", "visible_at_ms")

    def __init__(
        self,
        visible_at_ms: int,
        delivery_number: int = 0,
        receive_count: int = 0,
        first_received_ms: int = 0,
        received_ms: int = 0,
    ) -> None:
        self.visible_at_ms: Final = visible_at_ms
        self.delivery_number: Final = delivery_number
        self.receive_count: Final = receive_count
        self.first_received_ms: Final = first_received_ms
        self.received_ms: Final = received_ms

    def __repr__(self) -> str:
        numbers = self.visible_at_ms, self.delivery_number, self.receive_count, self.first_received_ms, self.received_ms
        return f"Row{numbers}"


UNTOUCHED: Final = Row(0)
"""Of every message that was never delayed nor received: one object and a range of sequences for all of them."""


class Grace:
    """Spans of time in which nobody could extend a visibility timeout because there was no master.

    A deadline of a message in flight (never of a delay) that falls into a span counts as the span's
    end; spans chain. Why: docs/adr/0018.
    """

    __slots__ = ("spans",)

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []

    def deadline(self, row: Row) -> int:
        return self.until_ms(row.visible_at_ms) if row.delivery_number else row.visible_at_ms

    def until_ms(self, deadline_ms: int) -> int:
        """When a deadline of ``deadline_ms`` passes, with the spans that it falls into."""
        for from_ms, until_ms in self.spans:
            if from_ms <= deadline_ms < until_ms:
                deadline_ms = until_ms
        return deadline_ms
