"""The delivery state of messages, and the grace after a change of master."""

from typing import Final


class Row:
    """The delivery state of one message. It is immutable: changes replace it, and a roll-back restores the old one.

    - visible_at_ms: 0 if the message was never delayed and never received. Else it is invisible until this cluster
      time.
    - delivery_number: The number (term << 32 | count) of the newest delivery; 0 if there was none. It never decreases.
    - receive_count: The ApproximateReceiveCount.
    - first_received_ms, received_ms: The times of the first and of the newest receive, or 0.

    It is no Struct, because it is never encoded. Compiled, a plain class stores its numbers without an object for each.
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
"""The shared row of all messages that were never delayed and never received."""


class Grace:
    """Spans of time in which no client could extend a visibility timeout because there was no master.

    A deadline of a message in flight that falls into a span counts as the span's end. The result may fall into the next
    span. Delays are not prolonged. Why: docs/adr/0018.
    """

    __slots__ = ("spans",)

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []

    def deadline(self, row: Row) -> int:
        return self.until_ms(row.visible_at_ms) if row.delivery_number else row.visible_at_ms

    def until_ms(self, deadline_ms: int) -> int:
        """Return when a deadline of ``deadline_ms`` passes, prolonged by the spans that it falls into."""
        for from_ms, until_ms in self.spans:
            if from_ms <= deadline_ms < until_ms:
                deadline_ms = until_ms
        return deadline_ms
