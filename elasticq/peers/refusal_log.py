"""The log of refused connections: at most one line a minute for each reason and address."""

from logging import getLogger

from elasticq.peers.errors import PeerError

_log = getLogger("elasticq.peers")
QUIET_S = 60.0
CONFLICT_S = 10.0  # an unresolved conflict occurs again with each dial, about once a second
PLACES_MAX = 1_024


class RefusalLog:
    """The counts and the log of refused connections. counts: refused connections by reason.

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
