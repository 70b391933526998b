"""The links of this member, the time since which it has always had one, and the traffic of ended links."""

from elasticq.node.membership.peer import Peer
from elasticq.peers.admission import Claim
from elasticq.peers.link import Link


class Links:
    """The links: at most one to each member. by_id: links by member id, including those that are being closed."""

    def __init__(self, started_s: float) -> None:
        self._started_s = started_s
        self._standing_s: float | None = None
        self._past = {"bytes_sent": 0, "bytes_received": 0, "frames_sent": 0, "frames_received": 0}
        self.by_id: dict[str, Link] = {}

    def add(self, link: Link, now_s: float) -> None:
        """Record a link as the only one to its member."""
        if self._standing_s is None:
            self._standing_s = now_s
        self.by_id[link.peer.id] = link

    def remove(self, link: Link) -> None:
        del self.by_id[link.peer.id]
        if not self.by_id:
            self._standing_s = None

    def has(self, member_id: str) -> bool:
        return member_id in self.by_id

    def hosts(self) -> set[str]:
        """Return the addresses of the linked members' and proxies' machines."""
        return {link.connection.remote_host for link in self.by_id.values()}

    def proxies(self) -> int:
        return sum(link.peer.is_proxy for link in self.by_id.values())

    def live(self, member_id: str) -> Link | None:
        """Return the link to a member, None if there is none or it is being closed."""
        link = self.by_id.get(member_id)
        return None if link is None or link.connection.is_closed else link

    def claimants(self, peer: Peer) -> list[Link]:
        """Return the open links to processes with the name or the member id of ``peer``, including that process."""
        return [
            link
            for link in self.by_id.values()
            if not link.connection.is_closed and (link.peer.id == peer.id or link.peer.name == peer.name)
        ]

    def claim(self, incarnation: str, now_s: float) -> Claim:
        """Return the claim of this process to its own name."""
        return Claim(now_s if self._standing_s is None else self._standing_s, self._started_s, incarnation)

    def count_ended(self, link: Link) -> None:
        """Add the traffic of an ended link to the totals. Another link to that member may exist already."""
        _add_counts(link, self._past)

    def totals(self) -> dict[str, int]:
        """Return the counts of bytes and frames since the start, of current and ended links."""
        totals = dict(self._past)
        for link in self.by_id.values():
            _add_counts(link, totals)
        return totals


def _add_counts(link: Link, totals: dict[str, int]) -> None:
    totals["bytes_sent"] += link.connection.bytes_sent
    totals["bytes_received"] += link.connection.bytes_received
    totals["frames_sent"] += link.frames_sent
    totals["frames_received"] += link.frames_received
