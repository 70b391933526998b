"""The watch over the clients of one member: whether one address sends nearly all requests."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

FLOOD_PER_S: Final = 100
FLOOD_SHARE: Final = 0.8
ROUNDS: Final = 2
"""The number of rounds in a row in which an address must send so much."""


class Flood(Struct, frozen=True):
    """An address that sends nearly all requests of a member, although other clients send some, too.

    per_s: its requests a second; share: its part of all, from 0 to 1; since_ms: cluster time.
    """

    address: str
    per_s: float
    share: float
    connections: int
    since_ms: int


class ClientWatch:
    """The flood of one member, None if there is none. ``look`` is called every few seconds."""

    def __init__(self) -> None:
        self.flood: Flood | None = None
        self._before: dict[str, int] = {}
        self._at_ms = 0
        self._suspect = ""
        self._rounds = 0
        self._since_ms = 0

    def look(self, clients: Mapping[str, tuple[int, int]], now_ms: int) -> None:
        """Compare with the last call. clients: by address, the number of all requests, and of open connections."""
        before, took_ms = self._before, now_ms - self._at_ms
        self._before, self._at_ms = {address: count for address, (count, _) in clients.items()}, now_ms
        came = {address: count - before.get(address, 0) for address, (count, _) in clients.items()}
        came = {address: count for address, count in came.items() if count > 0}
        self.flood = None
        if not came or not before or took_ms <= 0:
            self._rounds = 0
            return
        address = max(came, key=came.__getitem__)
        per_s, share = came[address] * 1_000 / took_ms, came[address] / sum(came.values())
        if len(came) < 2 or per_s < FLOOD_PER_S or share < FLOOD_SHARE:
            self._rounds = 0
            return
        if address != self._suspect or not self._rounds:
            self._suspect, self._rounds, self._since_ms = address, 0, now_ms - took_ms
        self._rounds += 1
        if self._rounds >= ROUNDS:
            self.flood = Flood(address, per_s, share, clients[address][1], self._since_ms)
