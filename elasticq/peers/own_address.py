"""Where others reach this member: what it tells them of itself, by the way over which they hear it."""

import msgspec

from elasticq.node.membership.peer import Peer
from elasticq.peers.addresses import WILDCARDS, is_dialable, join, split


class OwnAddress:
    """The address of the peer port.

    host: where it listens; advertise: host:port that an operator gave for it, empty for none; port: where it
    listens, 0 until the kernel has chosen one, and where nobody is to call: then it has no address to speak of.
    """

    __slots__ = ("_advertise", "_host", "port")

    def __init__(self, host: str, advertise: str, port: int) -> None:
        self._host = host
        self._advertise = advertise
        self.port = port

    def assumed(self) -> str:
        """Return the address as far as it is known before any other member has reached this one."""
        if self._advertise:
            host, port = split(self._advertise)
            return join(host, port or self.port)
        return join("127.0.0.1" if self._host in WILDCARDS else self._host, self.port)

    def spoken(self, own: Peer, local_host: str) -> Peer:
        """Return ``own`` with an address that the other side of a connection can reach.

        local_host: the address of this machine at which that connection ends, empty if unknown.
        """
        if is_dialable(own.address) or not self.port:
            return own
        if self._advertise or self._host not in WILDCARDS:
            return msgspec.structs.replace(own, address=self.assumed())
        return msgspec.structs.replace(own, address=join(local_host or "127.0.0.1", self.port))

    def announced(self, own: Peer) -> Peer:
        """Return ``own`` as zeroconf announces it; that knows the interfaces' addresses itself."""
        if is_dialable(own.address) or not self.port:
            return own
        is_open = self._host in WILDCARDS and not self._advertise
        return msgspec.structs.replace(own, address="" if is_open else self.assumed())
