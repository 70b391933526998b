"""What every process has that is linked to members of a cluster: its runtime, its peers, and what goes between them."""

import asyncio
import logging
from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop
from contextlib import suppress
from typing import Final

from elasticq.model.histogram import Histogram
from elasticq.node.forwarding import UnknownKind
from elasticq.node.outputs import Frame
from elasticq.node.peer import Peer
from elasticq.peers.peers import Peers
from elasticq.peers.settings import PeerSettings, PeerSettingsError
from elasticq.peers.transfer import Snapshot as Offered
from elasticq.runtime.runtime import Runtime, RuntimeStopped
from elasticq.server.ports import EXIT_FAILURE
from elasticq.server.settings import Settings, SettingsError, secret

EXIT_STOPPED: Final = 0
STOP_PEERS_S: Final = 3.0

_log = logging.getLogger(__name__)


def end(ended: "asyncio.Future[int]", status: int) -> None:
    if not ended.done():
        ended.set_result(status)


class Linked(ABC):
    """A member (member.py) or a proxy (proxy.py). ``ended`` gets its exit status."""

    def __init__(self, settings: Settings, loop: AbstractEventLoop, peer_connections_max: int) -> None:
        self.ended: asyncio.Future[int] = loop.create_future()
        self._settings = settings
        self._loop = loop
        self._peer_connections_max = peer_connections_max
        self._runtime: Runtime | None = None
        self._peers: Peers | None = None
        self._trouble = ""
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

    def _tell_trouble(self, trouble: str, well: str) -> None:
        """Log what keeps this process from its cluster, or ``well``, once each time it changes."""
        if trouble != self._trouble:
            self._trouble = trouble
            _log.warning("%s", trouble or well)

    def _make_peers(self, known: tuple[str, ...] = (), *, listens: bool = True) -> Peers:
        """Make the peers. ``known``: addresses at which members once were, which are seeds, too."""
        cluster = self._settings.cluster
        try:
            settings = PeerSettings(
                listens=listens,
                host=cluster.peer_host,
                port=cluster.peer_port,
                advertise=cluster.advertise,
                seeds=tuple(dict.fromkeys((*cluster.seeds, *known))),
                discovery=cluster.discovery,
                cluster_name=cluster.name,
                secret=secret(self._settings),
                tls_cert=cluster.tls_cert,
                tls_key=cluster.tls_key,
                tls_ca=cluster.tls_ca,
                rate_bytes_per_s=cluster.transfer_mb_per_s * 1_000_000,
                connections_max=self._peer_connections_max,
            )
        except PeerSettingsError as error:
            raise SettingsError(str(error)) from error
        return Peers(settings, self._loop, introduce=self.introduce, receiver=self, snapshots=self)

    # --- between runtime and peers --------------------------------------------------

    def introduce(self) -> Peer:
        return self.runtime.introduce()

    def _send(self, frames: list[Frame]) -> None:
        if self._peers is not None:
            self._peers.send(frames)

    def receive(self, member_id: str, frame: bytes) -> None:
        """Keep a frame: all frames of one turn of the loop are given to the runtime together."""
        if not self._frames:
            self._loop.call_soon(self._take_frames)
        self._frames.append((member_id, frame))

    def _take_frames(self) -> None:
        """Give the frames to the runtime. A refused frame costs its link; one of another version is ignored."""
        frames, self._frames = self._frames, []
        if not frames:
            return
        with suppress(RuntimeStopped):  # its failure is known, and the process about to end
            for member_id, error in self.runtime.receive(frames):
                if isinstance(error, UnknownKind):
                    _log.warning("frame_dropped %s", error)
                elif self._peers is not None:
                    self._peers.cut(member_id, str(error))

    def met(self, peer: Peer) -> None:
        self._take_frames()
        with suppress(RuntimeStopped):
            self.runtime.met(peer)

    def lost(self, member_id: str) -> None:
        self._take_frames()
        with suppress(RuntimeStopped):
            self.runtime.lost(member_id)

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
