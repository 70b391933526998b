"""The decision when a refusal of this member's name is final: after another live process has held it for over 3 s."""

FINAL_S = 3.0
FORGOTTEN_S = 5.0  # after a pause of this length, a refusal starts a new series


class Refusals:
    """The current series of refusals.

    A restarted process may be refused for a moment because of its own old link. So a refusal is final only if
    refusals continue for more than FINAL_S.
    """

    def __init__(self) -> None:
        self._first_s = 0.0
        self._last_s = -FORGOTTEN_S

    def is_final(self, now_s: float) -> bool:
        """Record a refusal and return whether it is final."""
        if now_s - self._last_s >= FORGOTTEN_S:
            self._first_s = now_s
        self._last_s = now_s
        return now_s - self._first_s > FINAL_S
