"""The address that this member reports to others. It depends on the connection over which it reports it."""

import msgspec

from elasticq.node.membership.peer import Peer
from elasticq.peers.addresses import WILDCARDS, is_dialable, join, split


class OwnAddress:
    """The address of the peer port.

    host: the listening host. advertise: host:port from the settings, empty for none. port: the listening port, 0 until
    the kernel has chosen one. A process that does not listen keeps 0, and reports no address.
    """

    def __init__(self, host: str, advertise: str, port: int) -> None:
        self._host = host
        self._advertise = advertise
        self.port = port

    def assumed(self) -> str:
        """Return the address that is likely to be right before any other member has connected to this one."""
        if self._advertise:
            host, port = split(self._advertise)
            return join(host, port or self.port)
        return join("127.0.0.1" if self._host in WILDCARDS else self._host, self.port)

    def spoken(self, own: Peer, local_host: str) -> Peer:
        """Return ``own`` with an address that the other side of a connection can reach.

        local_host: the address of this machine in that connection, empty if unknown.
        """
        if is_dialable(own.address) or not self.port:
            return own
        if self._advertise or self._host not in WILDCARDS:
            return msgspec.structs.replace(own, address=self.assumed())
        return msgspec.structs.replace(own, address=join(local_host or "127.0.0.1", self.port))

    def announced(self, own: Peer) -> Peer:
        """Return ``own`` as zeroconf announces it.

        The address is empty if this member listens on all interfaces: zeroconf knows their addresses.
        """
        if is_dialable(own.address) or not self.port:
            return own
        listens_everywhere = self._host in WILDCARDS and not self._advertise
        return msgspec.structs.replace(own, address="" if listens_everywhere else self.assumed())
