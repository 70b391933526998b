"""The check that no master delivers a message before its scheduled time."""

from elasticq.engine.ordering.schedule import DELIVER_AT
from elasticq.engine.stored import mutations as m


class Scheduled:
    """The earliest allowed delivery times of scheduled messages.

    A rescheduled message may come at the earlier of its two times, because the entry that changes it may be lost.
    A message that a move task returned from a dead-letter queue is a new message with the old attributes. It is
    visible at once. So it may come at the time of the first message with its body; clients send each body once.
    """

    def __init__(self) -> None:
        self._due_ms: dict[tuple[int, int], int] = {}
        self._first: dict[str, tuple[int, int]] = {}  # by body

    def early(self, made: list[m.Mutation]) -> list[str]:
        """Record the mutations of an entry. Return a description of each delivery that is too early."""
        found = []
        for mutation in made:
            if isinstance(mutation, m.MessageStored):
                value = (mutation.attributes or {}).get(DELIVER_AT)
                if value is not None and mutation.origin is None:
                    key = mutation.queue_id, mutation.sequence
                    due_ms = int(value.string_value or "")
                    first = self._first.setdefault(mutation.body, key)
                    self._due_ms[key] = min(due_ms, self._due_ms.get(first, due_ms))
            elif isinstance(mutation, m.VisibilityChanged):
                for sequence, until_ms in zip(mutation.sequences, mutation.until_ms, strict=True):
                    key = mutation.queue_id, sequence
                    if key in self._due_ms:
                        self._due_ms[key] = min(until_ms, self._due_ms[key])
            elif isinstance(mutation, m.MessagesReceived):
                for sequence in mutation.sequences:
                    early_ms = self._due_ms.get((mutation.queue_id, sequence), 0) - mutation.received_ms
                    if early_ms > 0:
                        found.append(f"message {sequence} of queue {mutation.queue_id}, by {early_ms} ms")
        return found
