"""Tells when a refusal is final: a live process has held this member's name for more than 3 s."""

FINAL_S = 3.0
FORGOTTEN_S = 5.0  # refusals further apart than this are not of one contest


class Refusals:
    """A restart meets its own old link for a moment, so only a holder of the name that goes on to live is final."""

    __slots__ = ("_first_s", "_last_s")

    def __init__(self) -> None:
        self._first_s = 0.0
        self._last_s = -FORGOTTEN_S

    def is_final(self, now_s: float) -> bool:
        """Note one more refusal, and tell whether it is final."""
        if now_s - self._last_s >= FORGOTTEN_S:
            self._first_s = now_s
        self._last_s = now_s
        return now_s - self._first_s > FINAL_S
