"""What every process has that is linked to members of a cluster: its runtime, its peers, and what goes between them."""

import asyncio
import logging
from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final

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
    if not ended.done():
        ended.set_result(status)


class ClusterProcess(ABC):
    """A member (member.py) or a proxy (proxy.py). ``ended`` gets its exit status.

    answer: answers the questions of members; None until it can be asked.
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
        """``listens``: others may dial it, if it has peers at all."""
        self.ended: asyncio.Future[int] = loop.create_future()
        self._settings = settings
        self._loop = loop
        self._operator_log = operator_log
        self._peer_connections_max = peer_connections_max
        self._listens = listens
        self._runtime: Runtime | None = None
        self._peers: Peers | None = None
        self.answer: Callable[[str, bytes], Coroutine[None, None, Answer]] | None = None
        self._frames: list[tuple[str, bytes]] = []  # that came in this turn of the loop, with their links

    # --- life -----------------------------------------------------------------------

    @abstractmethod
    async def start(self) -> Runtime:
        """Read what is kept, and begin. Raises OSError if the peer port is taken."""

    async def can_serve(self) -> bool:
        """Wait until commands can be executed; False if the end comes before that."""
        ready = self._loop.create_future()
        self.runtime.when_ready(lambda: ready.set_result(None))
        await asyncio.wait((ready, self.ended), return_when=asyncio.FIRST_COMPLETED)
        return not self.ended.done()

    @abstractmethod
    async def hand_over(self) -> None:
        """Give the mastership away before a stop; it does not wait long for another member to take it."""

    async def close(self) -> None:
        """Release what is open, also after a failure."""
        if self._peers is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._peers.stop(), STOP_PEERS_S)

    @property
    def runtime(self) -> Runtime:
        assert self._runtime is not None, "started"
        return self._runtime

    @property
    def peer_address(self) -> str:
        """host:port where other members reach this one, empty without peers."""
        return "" if self._peers is None else self._peers.address

    def metrics(self) -> dict[str, float]:
        """Return figures of its links."""
        if self._peers is None:
            return {}
        found = {name: float(value) for name, value in self._peers.status().items() if isinstance(value, int)}
        now = {f"peers_{name}": found.pop(name) for name in ("connections", "known_addresses")}
        return now | {f"peers_{name}_total": value for name, value in found.items()}

    @property
    @abstractmethod
    def sync_times(self) -> Histogram | None:
        """How long syncs of the log took; None where there is none."""

    # --- peers ----------------------------------------------------------------------

    def _known_addresses(self) -> tuple[str, ...]:
        """Addresses at which members once were, which are seeds, too."""
        return ()

    def _peer_settings(self) -> PeerSettings:
        """Read the files with secrets. Raises SettingsError."""
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
        """Read the secrets and certificates of the links anew. Raises SettingsError; nothing changed then."""
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
        """Keep a frame: all frames of one turn of the loop are given to the runtime together."""
        if not self._frames:
            self._loop.call_soon(self._take_frames)
        self._frames.append((member_id, frame))

    def _take_frames(self) -> None:
        """Give the frames to the runtime. A refused frame costs its link; a refused content does not."""
        frames, self._frames = self._frames, []
        if not frames:
            return
        with suppress(RuntimeStopped):  # its failure is known, and the process about to end
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
        """Return what a member answers to a question. Raises NotAnswered."""
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
        """Open a snapshot for another member. Raises what it likes if there is none."""

    @abstractmethod
    def release(self, snapshot: Offered) -> None:
        """Let a snapshot go."""

    # --- what goes wrong --------------------------------------------------------------

    def _node_failed(self, failure: BaseException) -> None:
        _log.critical("node_failed", exc_info=failure)
        end(self.ended, EXIT_FAILURE)
