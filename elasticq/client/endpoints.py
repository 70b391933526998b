"""Knows at which endpoints a cluster is asked: those that were given, and those that its admin ports name."""

from collections.abc import Iterable
from http.client import HTTPException
from json import load
from typing import Any, Final
from urllib.request import urlopen

LEARN_S: Final = 2.0


class Endpoints:
    """The endpoints of one client. Threads share it without a lock: what changes is replaced as a whole."""

    def __init__(self, own: str, given: Iterable[str], admin: Iterable[str]) -> None:
        self.own = own
        self._known = tuple(dict.fromkeys((own, *given)))
        self._admin = tuple(admin)
        self.current = own

    def leave(self, failed: str) -> None:
        """Make the endpoint after ``failed`` the current one, unless another thread has gone on already."""
        if self.current == failed:
            known = self._known
            self.current = known[(known.index(failed) + 1) % len(known)]

    def learn(self) -> None:
        """Ask the admin ports in turn, each for up to LEARN_S, until one names the members of its cluster."""
        self._known = tuple(dict.fromkeys((*self._known, *self._members())))

    def _members(self) -> list[str]:
        for admin in self._admin:
            try:
                with urlopen(f"{admin.rstrip('/')}/cluster", timeout=LEARN_S) as answer:
                    told: Any = load(answer)
                    return [member["http"] for member in told["members"] if member.get("http")]
            except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError):
                continue
        return []
