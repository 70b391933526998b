"""The discovery by zeroconf: it announces this member on the LAN and finds others with the same cluster name.

Discovery yields only addresses to dial; the handshake proves which member is there. Everyone on the LAN can read the
announcement. It contains names, ids and the peer port, and nothing secret.
"""

import asyncio
import socket
from collections.abc import Callable
from hashlib import blake2b
from logging import getLogger

from ifaddr import get_adapters
from zeroconf import InterfaceChoice, IPVersion, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from elasticq.node.membership.peer import Peer
from elasticq.peers.addresses import WILDCARDS, is_dialable, is_loopback, join

SERVICE_TYPE = "_elasticq._tcp.local."
QUERY_MS = 3_000
QUERIES_MAX = 64
_log = getLogger("elasticq.peers")


class ZeroconfDiscovery:
    """Zeroconf as a source of addresses.

    host, port: where the peer port listens. A loopback host is announced on loopback only. With port 0 nothing is
    announced, but others are found. found: called with each address to dial.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, host: str, port: int, found: Callable[[str], None]) -> None:
        self._loop = loop
        self._host = host
        self._port = port
        self._found = found
        self._zeroconf: AsyncZeroconf | None = None
        self._browser: AsyncServiceBrowser | None = None
        self._info: AsyncServiceInfo | None = None
        self._queries: set[asyncio.Task[None]] = set()

    async def start(self, peer: Peer) -> None:
        """Announce this member and start to look for others. Raise OSError if no interface supports multicast."""
        interfaces = InterfaceChoice.All if self._host in WILDCARDS else [self._address()]
        self._zeroconf = AsyncZeroconf(interfaces=interfaces, ip_version=IPVersion.V4Only)
        if self._port:
            self._info = self._service(peer)
            await self._zeroconf.async_register_service(self._info, cooperating_responders=True)
        self._browser = AsyncServiceBrowser(
            self._zeroconf.zeroconf, SERVICE_TYPE, handlers=[self._changed_for(peer.cluster_name)]
        )

    async def update(self, peer: Peer) -> None:
        """Announce changed data of this member, such as its cluster id."""
        if self._zeroconf is not None and self._info is not None:
            self._info = self._service(peer)
            await self._zeroconf.async_update_service(self._info)

    async def stop(self) -> None:
        for query in list(self._queries):
            query.cancel()
        await asyncio.gather(*self._queries, return_exceptions=True)
        if self._browser is not None:
            await self._browser.async_cancel()
        if self._zeroconf is not None:
            await self._zeroconf.async_unregister_all_services()
            await self._zeroconf.async_close()
            self._zeroconf = None

    def _service(self, peer: Peer) -> AsyncServiceInfo:
        label = blake2b(
            f"{peer.id} {peer.incarnation}".encode(), digest_size=12
        ).hexdigest()  # DNS labels have 63 bytes
        text = {
            "name": peer.cluster_name,
            "cluster": peer.cluster,
            "node": peer.name,
            "member": peer.id,
            "peers": peer.address,
        }
        # A TXT string has at most 255 bytes. Cut values are only shown to people, except the cluster name: `_query`
        # cuts its own cluster name in the same way before it compares.
        short = {key: value.encode()[: 250 - len(key)] for key, value in text.items()}
        return AsyncServiceInfo(
            SERVICE_TYPE,
            f"{label}.{SERVICE_TYPE}",
            port=self._port,
            properties=short,
            server=f"{label}.local.",
            addresses=[socket.inet_aton(address) for address in self._announced()],
        )

    def _announced(self) -> list[str]:
        if self._host not in WILDCARDS:
            return [self._address()]
        found = [str(ip.ip) for adapter in get_adapters() for ip in adapter.ips if ip.is_IPv4]
        return [address for address in found if not is_loopback(address)] or ["127.0.0.1"]

    def _address(self) -> str:
        """Return the listening host as an IPv4 address. Raise OSError if it has none."""
        return str(socket.getaddrinfo(self._host, None, socket.AF_INET)[0][4][0])

    def _changed_for(self, cluster_name: str) -> Callable[..., None]:
        def changed(zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:
            if state_change is ServiceStateChange.Removed or len(self._queries) >= QUERIES_MAX:
                return
            query = self._loop.create_task(self._query(zeroconf, name, cluster_name))
            self._queries.add(query)
            query.add_done_callback(self._queries.discard)

        return changed

    async def _query(self, zeroconf: Zeroconf, name: str, cluster_name: str) -> None:
        info = AsyncServiceInfo(SERVICE_TYPE, name)
        if self._info is not None and name == self._info.name:
            return
        if not await info.async_request(zeroconf, QUERY_MS):
            return
        if (info.properties.get(b"name") or b"") != cluster_name.encode()[: 250 - len("name")]:
            return
        for address in places(info):
            self._found(address)


def places(info: AsyncServiceInfo) -> list[str]:
    """Return the addresses to dial: the one that the member advertises, and those of its zeroconf record."""
    advertised = (info.properties.get(b"peers") or b"").decode(errors="replace")
    found = [join(host, info.port or 0) for host in info.parsed_addresses(IPVersion.V4Only)]
    return [address for address in dict.fromkeys([advertised, *found]) if is_dialable(address)]
