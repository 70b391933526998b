"""Approximate times of sends, for messages whose contents are not in memory."""

from bisect import bisect_left, bisect_right

STEP_MS = 1_000
MARKS_MAX = 4_096


class Ages:
    """Marks (sequence, sent_ms) along a queue, one for the last message of each time step.

    If there are more than MARKS_MAX marks, the step doubles.
    """

    __slots__ = ("_newest_ms", "_newest_sequence", "_sent_ms", "_sequences", "_step_ends_ms", "_step_ms")

    def __init__(self) -> None:
        self._sequences: list[int] = []
        self._sent_ms: list[int] = []
        self._newest_sequence = 0
        self._newest_ms = 0
        self._step_ms = STEP_MS
        self._step_ends_ms = 0

    def note(self, sequence: int, sent_ms: int) -> None:
        """Record when a message was sent. Both numbers only grow, except that sequences are reused after a
        roll-back.
        """
        if sequence <= self._newest_sequence:
            self._forget_from(sequence)
        if sent_ms >= self._step_ends_ms:
            self._mark()
            self._step_ends_ms = sent_ms + self._step_ms
        self._newest_sequence = sequence
        if sent_ms > self._newest_ms:
            self._newest_ms = sent_ms

    def _forget_from(self, sequence: int) -> None:
        """Delete the marks from ``sequence`` on, whose messages are gone. ``_newest_ms`` stays, so it may
        be too late.
        """
        at = bisect_left(self._sequences, sequence)
        del self._sequences[at:], self._sent_ms[at:]
        self._newest_sequence = self._sequences[-1] if self._sequences else 0

    def _mark(self) -> None:
        if self._newest_sequence and (not self._sequences or self._newest_sequence > self._sequences[-1]):
            self._sequences.append(self._newest_sequence)
            self._sent_ms.append(self._newest_ms)
        if len(self._sequences) > MARKS_MAX:
            self._step_ms *= 2
            del self._sequences[::2], self._sent_ms[::2]

    def sent_by_ms(self, sequence: int) -> int:
        """Return a time at or after the send of the message. It is at most one step late until the step doubles."""
        at = bisect_left(self._sequences, sequence)
        return self._sent_ms[at] if at < len(self._sequences) else self._newest_ms

    def newest_sent_by(self, sent_ms: int) -> int:
        """Return a sequence such that it and all before it were sent at ``sent_ms`` or earlier; 0 if none is known."""
        at = bisect_right(self._sent_ms, sent_ms)
        return self._sequences[at - 1] if at else 0
