"""When a refusal is final: this member's name has been held by a live process for more than 3 s."""

FINAL_S = 3.0
FORGOTTEN_S = 5.0  # refusals further apart than this are not of one contest


class Refusals:
    """A restart meets its own old link for a moment; only a holder that goes on to live ends the newcomer."""

    __slots__ = ("_first_s", "_last_s")

    def __init__(self) -> None:
        self._first_s = 0.0
        self._last_s = -FORGOTTEN_S

    def is_final(self, now_s: float) -> bool:
        """Take note of one more refusal."""
        if now_s - self._last_s >= FORGOTTEN_S:
            self._first_s = now_s
        self._last_s = now_s
        return now_s - self._first_s > FINAL_S
