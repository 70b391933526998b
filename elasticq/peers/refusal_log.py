"""Refusals: the log of refused connections, and the decision when a refusal of this member's name is final."""

from logging import getLogger

from elasticq.peers.errors import PeerError

_log = getLogger("elasticq.peers")
QUIET_S = 60.0
CONFLICT_S = 10.0  # an unresolved conflict occurs again with each dial, about once a second
PLACES_MAX = 1_024


class RefusalLog:
    """The counts and the log of refused connections: at most one line a minute for each reason and address.

    counts: refused connections by reason.
    A conflict is a refusal that an operator must resolve, such as two clusters with one name.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._last_s: dict[tuple[str, str], float] = {}
        self._conflicts: dict[str, float] = {}

    def note(self, error: PeerError, place: str, now_s: float) -> None:
        self.say(error.reason, place, str(error), now_s)

    def say(self, reason: str, place: str, text: str, now_s: float) -> None:
        """Count a refusal. Log it unless one with the same reason and place was logged within QUIET_S."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        if now_s - self._last_s.get((reason, place), -QUIET_S) < QUIET_S:
            return
        if len(self._last_s) >= PLACES_MAX:  # bounds memory; costs only repeated log lines
            self._last_s.clear()
        self._last_s[reason, place] = now_s
        _log.warning("peer_connection_closed reason=%s address=%s: %s", reason, place, _printable(text))

    def conflict(self, text: str, now_s: float) -> None:
        if len(self._conflicts) < PLACES_MAX:
            self._conflicts[_printable(text)] = now_s

    def conflicts(self, now_s: float) -> list[str]:
        """Return the conflicts of the last CONFLICT_S."""
        self._conflicts = {text: at_s for text, at_s in self._conflicts.items() if now_s - at_s < CONFLICT_S}
        return list(self._conflicts)


def _printable(text: str) -> str:
    """Return a short text without line breaks and control codes. Strangers may have chosen parts of it."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:500])


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
