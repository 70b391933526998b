"""The process of a proxy: it stores nothing, never votes, and passes calls on to the master of its cluster."""

import os
from asyncio import AbstractEventLoop
from typing import Final

from elasticq.model.histogram import Histogram
from elasticq.node.proxy import Proxy
from elasticq.node.settings import NodeSettings
from elasticq.peers.transfer import Snapshot as Offered
from elasticq.runtime.runtime import Runtime
from elasticq.server.cluster_process import ClusterProcess
from elasticq.server.files import PEERS_MAX
from elasticq.server.operator_log import OperatorLog
from elasticq.server.settings import Settings, call_limits
from elasticq.storage.memory import MemoryStorage

LOOK_S: Final = 1.0


class ProxyProcess(ClusterProcess):
    """The process of one proxy. http, admin: the URLs that it announces to members, whose ports may be others."""

    def __init__(
        self,
        settings: Settings,
        loop: AbstractEventLoop,
        *,
        http: str,
        admin: str,
        http_port: int = 0,
        admin_port: int = 0,
        peer_connections_max: int = PEERS_MAX,
    ) -> None:
        super().__init__(settings, loop, OperatorLog(None, loop), peer_connections_max, listens=False)
        self._proxy = Proxy(
            NodeSettings(
                member_id=f"{settings.node.id}-{os.urandom(8).hex()}",
                voters=(),
                region=settings.node.region,
                single_region=settings.node.single_region,
                limits=call_limits(settings),
                incarnation=os.urandom(8).hex(),
                http=http,
                admin=admin,
                http_port=http_port,
                admin_port=admin_port,
                cluster_name=settings.cluster.name,
                hold_ms=settings.cluster.hold_s * 1_000,
            )
        )

    async def start(self) -> Runtime:
        self._runtime = Runtime(
            self._proxy,
            MemoryStorage(),
            self._loop,
            self._node_failed,
            send=self._send,
            on_news=self._operator_log.news,
        )
        self._peers = self._make_peers()
        self._runtime.start()
        await self._peers.start()
        self._loop.call_later(LOOK_S, self._look)
        return self._runtime

    def _look(self) -> None:
        if not self.ended.done():
            trouble, well = self._proxy.unready_reason(), "this proxy passes calls on to its cluster"
            self._operator_log.trouble(trouble, well, is_usual=True)
            self._loop.call_later(LOOK_S, self._look)

    async def hand_over(self) -> None:
        """Do nothing: a proxy is never master."""

    @property
    def sync_times(self) -> Histogram | None:
        return None

    async def open(self, index: int) -> Offered:
        raise LookupError("a proxy has no snapshots")

    def release(self, snapshot: Offered) -> None:
        raise AssertionError("a proxy has no snapshots")
