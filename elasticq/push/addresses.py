"""Which addresses a notification may be sent to: a subscriber names a URL, and this server sends a request there.

Whoever may subscribe could otherwise have the server ask what only the server reaches: the page where a cloud gives a
machine its credentials, or the ports of this server's own operators and members, which trust their host. Judged is each
address that a name was found to have, in the moment in which it is connected to, and not the name.
"""

import ipaddress
from collections.abc import Iterable
from typing import Final

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
    """Nothing is sent to this address."""


def unreadable(refused: Iterable[str]) -> list[str]:
    """Return those texts that are no network, such as 10.0.0.0/8."""
    found = []
    for text in refused:
        try:
            ipaddress.ip_network(text)
        except ValueError:
            found.append(text)
    return found


class Guard:
    """Judges addresses. ``ports``: of this server's operators and members, which are refused at any address."""

    def __init__(self, refused: Iterable[str], ports: Iterable[int] = ()) -> None:
        self._networks = [ipaddress.ip_network(text) for text in refused]
        self._ports = frozenset(ports)

    def check(self, text: str, port: int) -> None:
        """Raises AddressRefused; also where ``text`` is no address."""
        try:
            address = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            raise AddressRefused(f"{text} is no address") from None
        if port in self._ports:
            raise AddressRefused(f"port {port} is a port of this server's operators or members")
        for each in (address, *_inner(address)):
            for network in self._networks:
                if each in network:
                    raise AddressRefused(f"{text} is in {network}, which push.refused_networks lists")


def _inner(address: Address) -> list[Address]:
    """IPv4 addresses that packets to an IPv6 address end at."""
    if not isinstance(address, ipaddress.IPv6Address):
        return []
    found: list[Address | None] = [address.ipv4_mapped, address.sixtofour]
    if address in _NAT64:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return [each for each in found if each is not None]
