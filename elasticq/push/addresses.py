"""Which addresses a notification may be sent to: a subscriber names a URL, and this server sends a request there.

Whoever may subscribe could otherwise have the server ask what only the server reaches: the page where a cloud gives a
machine its credentials, or the ports of the cluster itself. Judged is each address that a name was found to have, in
the moment in which it is connected to, and not the name.
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
    """Nothing is sent to this address."""


class Listeners(NamedTuple):
    """Where the processes of a cluster listen, as far as this one knows them.

    trusted: ports of operators and members, which are refused at any address. sqs: ports of SQS, which other web
    servers may use elsewhere: they are refused at ``hosts``, and at every address of this machine.
    """

    trusted: frozenset[int] = frozenset()
    sqs: frozenset[int] = frozenset()
    hosts: frozenset[Address] = frozenset()


NOBODY: Final = Listeners()


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
    """Judges addresses.

    ports: refused at any address; listeners: returns those of the cluster, and is called for each judgement.
    """

    def __init__(
        self, refused: Iterable[str], ports: Iterable[int] = (), listeners: Callable[[], Listeners] = lambda: NOBODY
    ) -> None:
        self._networks = [ipaddress.ip_network(text) for text in refused]
        self._ports = frozenset(ports)
        self._listeners = listeners

    def check(self, text: str, port: int) -> None:
        """Raises AddressRefused; also where ``text`` is no address."""
        found = addresses_of([text])
        if not found:
            raise AddressRefused(f"{text} is no address")
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
    """Return the addresses among ``texts``, and the IPv4 addresses that packets to IPv6 ones among them end at."""
    found: set[Address] = set()
    for text in texts:
        try:
            address = ipaddress.ip_address(text.partition("%")[0])
        except ValueError:
            continue
        found.update((address, *_inner(address)))
    return frozenset(found)


def _is_here(address: Address) -> bool:
    """Return whether an address is one of this machine: a socket can be bound to no other."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


def _inner(address: Address) -> list[Address]:
    """IPv4 addresses that packets to an IPv6 address end at."""
    if not isinstance(address, ipaddress.IPv6Address):
        return []
    found: list[Address | None] = [address.ipv4_mapped, address.sixtofour]
    if address in _NAT64:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return [each for each in found if each is not None]
