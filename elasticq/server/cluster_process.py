"""The base of processes with links to members: their runtime, their peers, and the traffic between both."""

import asyncio
import logging
from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final

from elasticq.admin.source import Links
from elasticq.model.histogram import Histogram
from elasticq.node.forwarding import ContentRefused
from elasticq.node.membership.peer import Peer
from elasticq.node.outputs import Frame
from elasticq.peers.peers import Peers
from elasticq.peers.questions import Answer, NotAnswered
from elasticq.peers.settings import PeerSettings, PeerSettingsError
from elasticq.peers.transfer import Snapshot as Offered
from elasticq.runtime.runtime import Runtime, RuntimeStopped
from elasticq.server.operator_log import OperatorLog
from elasticq.server.ports import EXIT_FAILURE
from elasticq.server.settings import Settings, SettingsError, secrets

EXIT_STOPPED: Final = 0
STOP_PEERS_S: Final = 3.0

_log = logging.getLogger(__name__)


def end(ended: "asyncio.Future[int]", status: int) -> None:
    """Set the exit status, unless it is set already."""
    if not ended.done():
        ended.set_result(status)


class ClusterProcess(ABC):
    """A member (member.py) or a proxy (proxy.py). ended: gets its exit status.

    answer: the function that answers questions of members, None until the process can answer.
    """

    def __init__(
        self,
        settings: Settings,
        loop: AbstractEventLoop,
        operator_log: OperatorLog,
        peer_connections_max: int,
        *,
        listens: bool = True,
    ) -> None:
        """Create the process. listens: whether other members can connect to it, if it has peers."""
        self.ended: asyncio.Future[int] = loop.create_future()
        self._settings = settings
        self._loop = loop
        self._operator_log = operator_log
        self._peer_connections_max = peer_connections_max
        self._listens = listens
        self._runtime: Runtime | None = None
        self._peers: Peers | None = None
        self.answer: Callable[[str, bytes], Coroutine[None, None, Answer]] | None = None
        self._frames: list[tuple[str, bytes]] = []  # (member id, frame) received in this iteration of the loop

    # --- life -----------------------------------------------------------------------

    @abstractmethod
    async def start(self) -> Runtime:
        """Load the stored state and start. Raise OSError if the peer port is taken."""

    async def can_serve(self) -> bool:
        """Wait until commands can be executed. Return False if the process ends before."""
        ready = self._loop.create_future()
        self.runtime.when_ready(lambda: ready.set_result(None))
        await asyncio.wait((ready, self.ended), return_when=asyncio.FIRST_COMPLETED)
        return not self.ended.done()

    @abstractmethod
    async def hand_over(self) -> None:
        """Hand the mastership over before a stop, and wait a short time for another member to take it."""

    async def close(self) -> None:
        """Close links and files. It may be called after a failure, too."""
        if self._peers is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._peers.stop(), STOP_PEERS_S)

    @property
    def runtime(self) -> Runtime:
        assert self._runtime is not None, "started"
        return self._runtime

    @property
    def peer_address(self) -> str:
        """Return the host:port that other members connect to, empty without peers."""
        return "" if self._peers is None else self._peers.address

    def metrics(self) -> dict[str, float]:
        """Return figures of the links, by name."""
        if self._peers is None:
            return {}
        found = {name: float(value) for name, value in self._peers.status().items() if isinstance(value, int)}
        now = {f"peers_{name}": found.pop(name) for name in ("connections", "known_addresses")}
        return now | {f"peers_{name}_total": value for name, value in found.items()}

    def links(self) -> Links:
        """Return the troubles of the links to other members."""
        peers = self._peers
        return Links() if peers is None else Links(peers.unreached(), peers.refusal_log.conflicts(self._loop.time()))

    @property
    @abstractmethod
    def sync_times(self) -> Histogram | None:
        """Return the durations of the log's syncs, None without a log on disk."""

    # --- peers ----------------------------------------------------------------------

    def _known_addresses(self) -> tuple[str, ...]:
        """Return earlier addresses of members, which are used as seeds, too."""
        return ()

    def _peer_settings(self) -> PeerSettings:
        """Return the settings of the links. Read the files with secrets. Raise SettingsError if one cannot be used."""
        cluster = self._settings.cluster
        secret, also = secrets(self._settings)
        try:
            return PeerSettings(
                listens=self._listens,
                host=cluster.peer_host,
                port=cluster.peer_port,
                advertise=cluster.advertise,
                seeds=tuple(dict.fromkeys((*cluster.seeds, *self._known_addresses()))),
                discovery=cluster.discovery,
                cluster_name=cluster.name,
                secret=secret,
                also=also,
                tls_cert=cluster.tls_cert,
                tls_key=cluster.tls_key,
                tls_ca=cluster.tls_ca,
                rate_bytes_per_s=cluster.transfer_mb_per_s * 1_000_000,
                connections_max=self._peer_connections_max,
            )
        except PeerSettingsError as error:
            raise SettingsError(str(error)) from error

    def _make_peers(self) -> Peers:
        settings = self._peer_settings()
        try:
            peers = Peers(
                settings, self._loop, introduce=lambda: self.runtime.introduce(), receiver=self, snapshots=self
            )
        except PeerSettingsError as error:
            raise SettingsError(str(error)) from error
        self.runtime.obstacle = lambda: next(iter(peers.refusal_log.conflicts(self._loop.time())), "")
        return peers

    def renew_secrets(self) -> None:
        """Read the secrets and certificates of the links again. Raise SettingsError, with no change, if that fails."""
        if self._peers is not None:
            try:
                self._peers.renew(self._peer_settings())
            except PeerSettingsError as error:
                raise SettingsError(str(error)) from error

    # --- between runtime and peers --------------------------------------------------

    def _send(self, frames: list[Frame]) -> None:
        if self._peers is not None:
            self._peers.send(frames)

    def receive(self, member_id: str, frame: bytes) -> None:
        """Buffer a frame. The runtime gets all frames of one iteration of the loop together."""
        if not self._frames:
            self._loop.call_soon(self._take_frames)
        self._frames.append((member_id, frame))

    def _take_frames(self) -> None:
        """Pass the buffered frames to the runtime. Cut the link of a malformed frame, but not of a refused content."""
        frames, self._frames = self._frames, []
        if not frames:
            return
        with suppress(RuntimeStopped):  # the failure is logged, and the process is about to end
            for member_id, error in self.runtime.receive(frames):
                if isinstance(error, ContentRefused):
                    _log.warning("frame_dropped %s", error)
                elif self._peers is not None:
                    self._peers.cut(member_id, str(error))

    def met(self, peer: Peer) -> None:
        self._take_frames()
        self._operator_log.met(peer, self.runtime.introduce())
        with suppress(RuntimeStopped):
            self.runtime.met(peer)

    def lost(self, member_id: str) -> None:
        self._take_frames()
        self._operator_log.lost(member_id)
        with suppress(RuntimeStopped):
            self.runtime.lost(member_id)

    async def ask(self, member_id: str, kind: str, body: bytes, timeout_s: float) -> Answer:
        """Return a member's answer to a question. Raise NotAnswered without one."""
        if self._peers is None:
            raise NotAnswered("this server has no links to others")
        return await self._peers.ask(member_id, kind, body, timeout_s)

    async def asked(self, kind: str, body: bytes) -> Answer:
        if self.answer is None:
            return 503, b'{"error":"the member is starting"}'
        return await self.answer(kind, body)

    def refused(self, reason: str) -> None:
        _log.critical("refused %s", reason)
        end(self.ended, EXIT_FAILURE)

    # --- snapshots ------------------------------------------------------------------

    @abstractmethod
    async def open(self, index: int) -> Offered:
        """Open a snapshot for another member or an operator. Raise any exception if there is none."""

    @abstractmethod
    def release(self, snapshot: Offered) -> None:
        """Close a snapshot."""

    # --- failures ---------------------------------------------------------------------

    def _node_failed(self, failure: BaseException) -> None:
        _log.critical("node_failed", exc_info=failure)
        end(self.ended, EXIT_FAILURE)
