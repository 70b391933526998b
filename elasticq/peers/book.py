"""The address book: where this member met other members, and where others report them to be."""

from msgspec import Struct

from elasticq.peers.addresses import is_dialable
from elasticq.peers.messages import KNOWN_MAX, Known

ENTRIES_MAX = 256
RUMOUR_S = 600.0  # a reported address that this member never met is forgotten this long after the last report


class Entry(Struct):
    """A member's address. Times are loop times.

    met_s: time of the last greeting from it, None if there was none. heard_s: time of the last greeting or report.
    """

    id: str
    address: str
    met_s: float | None
    heard_s: float


class Book:
    """The known addresses: one per member, and one member per address.

    The newest greeting decides. A report by another member never replaces an address from a greeting.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def met(self, member_id: str, address: str, now_s: float) -> None:
        """Record the address that a member gave in its greeting."""
        if not is_dialable(address):
            return
        for other in [entry.id for entry in self._entries.values() if entry.address == address]:
            del self._entries[other]  # the old member there has a new id, or has moved
        self._make_room(now_s)
        self._entries[member_id] = Entry(member_id, address, now_s, now_s)

    def heard(self, known: tuple[Known, ...], now_s: float) -> None:
        """Record addresses that another member reported."""
        for one in known[:KNOWN_MAX]:
            entry = self._entries.get(one.id)
            if entry is not None:
                entry.heard_s = now_s
                if entry.met_s is None and is_dialable(one.address):
                    entry.address = one.address
            elif is_dialable(one.address) and len(one.id) <= 256 and one.address not in self.addresses():
                self._make_room(now_s)
                self._entries[one.id] = Entry(one.id, one.address, None, now_s)

    def address(self, member_id: str) -> str:
        """Return a member's address, empty if unknown."""
        entry = self._entries.get(member_id)
        return entry.address if entry else ""

    def addresses(self) -> set[str]:
        return {entry.address for entry in self._entries.values()}

    def members(self) -> list[str]:
        return list(self._entries)

    def told(self, linked: set[str], now_s: float) -> tuple[Known, ...]:
        """Return the addresses for a greeting: of members that are linked, or were met within RUMOUR_S.

        Reported addresses are not passed on, so all members forget a member that is gone.
        """
        fresh = [
            Known(entry.id, entry.address)
            for entry in self._entries.values()
            if entry.id in linked or (entry.met_s is not None and now_s - entry.met_s < RUMOUR_S)
        ]
        return tuple(sorted(fresh, key=lambda known: known.id not in linked)[:KNOWN_MAX])

    def forget_rumours(self, now_s: float) -> None:
        self._entries = {
            key: entry
            for key, entry in self._entries.items()
            if entry.met_s is not None or now_s - entry.heard_s < RUMOUR_S
        }

    def _make_room(self, now_s: float) -> None:
        if len(self._entries) >= ENTRIES_MAX:
            oldest = min(self._entries.values(), key=lambda entry: (entry.met_s is not None, entry.heard_s))
            del self._entries[oldest.id]
