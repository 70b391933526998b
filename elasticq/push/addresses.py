"""The rules for the addresses to which this server may send notifications.

A subscriber names a URL, and this server sends requests to it. Without these rules a subscriber could reach addresses
that only the server can reach. Examples are a cloud's metadata page, which has credentials, and the cluster's own
ports. The server checks each address that a name resolves to, right before it connects. It does not check names.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

REFUSED: Final = (
    "169.254.0.0/16",  # link-local; 169.254.169.254 is the metadata page of most clouds
    "fe80::/10",
    "fd00:ec2::/32",  # AWS's metadata page by IPv6
    "100.100.100.200/32",  # Alibaba's
    "168.63.129.16/32",  # Azure's
    "192.0.0.192/32",  # Oracle's
    "0.0.0.0/8",
    "::/128",
    "224.0.0.0/4",
    "ff00::/8",
    "240.0.0.0/4",
)
"""The default of ``push.refused_networks``."""

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


class AddressRefused(OSError):
    """An address to which this server must not send requests."""


class Listeners(NamedTuple):
    """The listening ports and hosts of the cluster's processes that this process knows.

    trusted: the operators' and the peers' ports, refused at every address. sqs: SQS ports, refused only at ``hosts``
    and at the addresses of this machine, because other web servers may use the same port numbers elsewhere.
    """

    trusted: frozenset[int] = frozenset()
    sqs: frozenset[int] = frozenset()
    hosts: frozenset[Address] = frozenset()


NOBODY: Final = Listeners()


def unreadable(refused: Iterable[str]) -> list[str]:
    """Return the texts that are not a network in CIDR notation, such as 10.0.0.0/8."""
    found = []
    for text in refused:
        try:
            ipaddress.ip_network(text)
        except ValueError:
            found.append(text)
    return found


class Guard:
    """A check of addresses before a request is sent to them.

    refused: networks in CIDR notation. ports: refused at every address. listeners: returns the listeners of the
    cluster; each check calls it.
    """

    def __init__(
        self, refused: Iterable[str], ports: Iterable[int] = (), listeners: Callable[[], Listeners] = lambda: NOBODY
    ) -> None:
        self._networks = [ipaddress.ip_network(text) for text in refused]
        self._ports = frozenset(ports)
        self._listeners = listeners

    def check(self, text: str, port: int) -> None:
        """Raise AddressRefused if ``text`` is a refused address or is not an IP address."""
        found = addresses_of([text])
        if not found:
            raise AddressRefused(f"{text} is not an IP address")
        listeners = self._listeners()
        if port in self._ports or port in listeners.trusted:
            raise AddressRefused(f"port {port} is a port of this cluster's operators or members")
        if port in listeners.sqs and (found & listeners.hosts or any(map(_is_here, found))):
            raise AddressRefused(f"{text} port {port} is an SQS port of this cluster")
        for each in found:
            for network in self._networks:
                if each in network:
                    raise AddressRefused(f"{text} is in {network}, which push.refused_networks lists")


def addresses_of(texts: Iterable[str]) -> frozenset[Address]:
    """Return the IP addresses among ``texts``, and the IPv4 addresses embedded in the IPv6 ones. Skip other texts."""
    found: set[Address] = set()
    for text in texts:
        try:
            address = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            continue
        found.update((address, *_inner(address)))
    return frozenset(found)


def _is_here(address: Address) -> bool:
    """Return whether an address belongs to this machine. A socket can be bound only to such an address."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


def _inner(address: Address) -> list[Address]:
    """Return the IPv4 addresses that receive the packets sent to an IPv6 address (mapped, 6to4, NAT64)."""
    if not isinstance(address, ipaddress.IPv6Address):
        return []
    found: list[Address | None] = [address.ipv4_mapped, address.sixtofour]
    if address in _NAT64:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return [each for each in found if each is not None]
