"""Addresses: ``host:port`` texts with IPv6 hosts in brackets, the own one, and replacements for tests."""

import os
from ipaddress import ip_address
from pathlib import Path

import msgspec

from elasticq.node.membership.peer import Peer

WILDCARDS = ("", "0.0.0.0", "::")


def split(address: str) -> tuple[str, int]:
    """Return host and port. Raise ValueError if there is no port from 0 to 65535."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ValueError(f"{address!r} is not host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_dialable(address: str) -> bool:
    """Return whether one can connect to an address: its host is no wildcard, and its port is not 0."""
    try:
        host, port = split(address)
    except ValueError:
        return False
    return port != 0 and host not in WILDCARDS and len(address) <= 300


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class OwnAddress:
    """The address of the peer port that this member reports. It depends on the connection over which it reports it.

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


VARIABLE = "ELASTICQ_FAULT_ROUTES"


def route(address: str) -> str:
    """Return the address to dial instead of ``address``, or ``address`` itself.

    ``ELASTICQ_FAULT_ROUTES`` names a JSON file {"host:port": "host:port", ...}, which is read at each dial. Partition
    tests use it to put a TCP proxy between each two members. If it is not set, nothing is replaced.
    """
    file = os.environ.get(VARIABLE)
    if not file:
        return address
    return msgspec.json.decode(Path(file).read_bytes(), type=dict[str, str]).get(address, address)
