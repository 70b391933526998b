"""The process of a member: the wiring of its node, storage, runtime and peers."""

import asyncio
import logging
import os
from asyncio import AbstractEventLoop
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory
from typing import Final

from elasticq.model.histogram import Histogram
from elasticq.node.node import Node
from elasticq.node.outputs import News, Wanted
from elasticq.node.settings import NodeSettings
from elasticq.peers.addresses import is_dialable
from elasticq.peers.transfer import Snapshot as Offered
from elasticq.peers.transfer import parts_of
from elasticq.push.addresses import Listeners, addresses_of
from elasticq.runtime.runtime import Runtime, RuntimeStopped
from elasticq.server.cluster import host_of
from elasticq.server.cluster_process import ClusterProcess, end
from elasticq.server.files import PEERS_MAX
from elasticq.server.machine import memory_bytes
from elasticq.server.operator_log import OperatorLog
from elasticq.server.ports import EXIT_FAILURE
from elasticq.server.settings import Settings, SettingsError, call_limits, template
from elasticq.server.signatures import Signatures
from elasticq.storage.directory import DataDirectory
from elasticq.storage.errors import Damaged, DataError
from elasticq.storage.interface import Damage, Loaded, Storage
from elasticq.storage.memory import MemoryStorage
from elasticq.storage.snapshot import Snapshot, base_of
from elasticq.storage.sqlite import SqliteStorage

FETCH_AGAIN_S: Final = 1.0
INCOMING: Final = "incoming.db"
HEALS_MAX: Final = 3  # in the life of one process
HAND_OVER_S: Final = 1.0
MEASURE_S: Final = 1.0

_log = logging.getLogger(__name__)


class Member(ClusterProcess):
    """The process of one member. http, admin: the URLs that it announces to others, whose ports may be others."""

    def __init__(
        self,
        settings: Settings,
        directory: DataDirectory | None,
        loop: AbstractEventLoop,
        *,
        http: str,
        admin: str,
        http_port: int = 0,
        admin_port: int = 0,
        peer_connections_max: int = PEERS_MAX,
    ) -> None:
        super().__init__(settings, loop, OperatorLog(directory, loop), peer_connections_max)
        self._directory = directory
        self._storage = self._open()
        self.signatures = Signatures()
        self._node_settings = self._describe(http, admin, http_port, admin_port)
        self._fetching: asyncio.Task[None] | None = None
        self._healing: asyncio.Task[None] | None = None
        self._is_full = False
        self._heals = 0
        self._scratch: TemporaryDirectory[str] | None = None
        self._has_incoming = directory is not None  # an earlier process may have left parts of a snapshot

    # --- life -----------------------------------------------------------------------

    async def start(self) -> Runtime:
        self._drop_incoming_of_former_lives()
        cluster = self._settings.cluster
        try:
            node = self._node(self._storage.load())
        except Damaged as damaged:
            node = self._node(self._storage.salvage(damaged))
        if node.replica.log.last_index and not node.replica.voters:
            raise SettingsError(
                f"{self._settings.storage.data_dir} belongs to a cluster of one: start it with --nodes 1 and seeds, "
                "and let others join it ('elasticq cluster add')"
            )
        node.journal.discarded = self._operator_log.discarded_count
        self._runtime = Runtime(
            node,
            self._storage,
            self._loop,
            self._node_failed,
            send=self._send,
            on_wanted=self._fetch,
            on_discarded=self._operator_log.discarded,
            on_news=self._log_news,
        )
        if cluster.discovery != "none":
            self._peers = self._make_peers()
        self._operator_log.removed(node.members.was_removed)
        self._runtime.start()
        if self._peers is not None:
            await self._peers.start()
            self._measure()
        elif self._has_incoming:
            self._drop_incoming()
        return self._runtime

    def _measure(self) -> None:
        """Report the duration of syncs to the node, whose election timeouts depend on it. Repeat every MEASURE_S.

        Also log why the member is not ready, and delete a snapshot that is not needed.
        """
        if not self.ended.done():
            self.runtime.node.fsync_measured(self._storage.slow_sync_ms)
            members = self.runtime.node.members
            is_usual = members.is_fresh and not members.trouble
            self._operator_log.trouble(
                members.waiting_for(), "this member takes part in its cluster", is_usual=is_usual
            )
            if self._has_incoming and self._fetching is None and self.runtime.status().ready:
                self._has_incoming = False
                self._drop_incoming()
            self._loop.call_later(MEASURE_S, self._measure)

    def _log_news(self, news: list[News]) -> None:
        """Log events of the cluster, if this process has peers."""
        if self._peers is not None:
            self._operator_log.news(news)
        self._operator_log.removed(self.runtime.node.members.was_removed)

    async def can_serve(self) -> bool:
        """Wait as the base class does, but return True at once for a removed member.

        It can never execute commands, and opens its ports to report so.
        """
        return self.runtime.node.members.was_removed or await super().can_serve()

    async def hand_over(self) -> None:
        if self._runtime is None or not self._runtime.hand_over():
            return
        until_s = self._loop.time() + HAND_OVER_S
        while not self._runtime.stopped and self._is_master_still() and self._loop.time() < until_s:
            await asyncio.sleep(0.005)

    def _is_master_still(self) -> bool:
        replica = self.runtime.node.replica
        return replica.master in (None, replica.member_id)

    async def close(self) -> None:
        for task in (self._fetching, self._healing):
            if task is not None:
                task.cancel()
        await super().close()
        if isinstance(self._storage, SqliteStorage):
            await self._storage.aclose()
        if self._scratch is not None:
            self._scratch.cleanup()

    @property
    def sync_times(self) -> Histogram | None:
        return self._storage.sync_times

    def metrics(self) -> dict[str, float]:
        """Return the base class's figures and the free space on the disk of the data directory, if there is one."""
        found = super().metrics()
        if self._directory is not None:
            usage = disk_usage(self._directory.path)
            found |= {"disk_free_bytes": usage.free, "disk_size_bytes": usage.total, "disk_full": float(self._is_full)}
            found["disk_reserve_bytes"] = self._settings.storage.reserve_mb * 1_048_576
        return found

    # --- parts ----------------------------------------------------------------------

    def _open(self) -> Storage:
        if self._directory is None:
            return MemoryStorage(lambda: self.runtime.node.journal.committed_state(), lambda: self.runtime.node.vote)
        return SqliteStorage(
            self._directory,
            self._loop,
            durability=self._settings.storage.durability,
            reserve_bytes=self._settings.storage.reserve_mb * 1_048_576,
            on_failure=self._storage_failed,
            on_full=self._set_full,
            on_damaged=self._met_damage,
        )

    def _describe(self, http: str, admin: str, http_port: int, admin_port: int) -> NodeSettings:
        settings, kept = self._settings, self._directory
        # A start without a directory is a new member.
        member_id = kept.member_id if kept is not None else f"{settings.node.id}-{os.urandom(8).hex()}"
        cluster = settings.cluster
        return NodeSettings(
            member_id=member_id,
            voters=(member_id,) if cluster.nodes == 1 else (),
            volatile=self._storage.volatile,
            region=settings.node.region,
            single_region=settings.node.single_region,
            default_account=settings.node.account,
            sixty_second_rules=settings.node.sixty_second_rules,
            template=template(settings),
            limits=call_limits(settings),
            memory_bytes=settings.storage.memory_mb * 1_048_576,
            memory_bytes_max=settings.storage.memory_max_mb * 1_048_576 or memory_bytes() // 2,
            incarnation=os.urandom(8).hex(),
            address=cluster.advertise or f"{cluster.peer_host}:{cluster.peer_port}",
            http=http,
            admin=admin,
            http_port=http_port,
            admin_port=admin_port,
            nodes=cluster.nodes,
            cluster_name=cluster.name,
            mode=cluster.ack_mode,
            hold_ms=cluster.hold_s * 1_000,
            sign=self.signatures.sign if settings.push.sign_queues else None,
        )

    def _node(self, loaded: Loaded) -> Node:
        for line in loaded.told:
            _log.warning("data_directory %s", line)
        return Node(self._node_settings, loaded.durable, os.urandom(32), loaded.rows)

    def listeners(self) -> Listeners:
        """Return the addresses and ports of the cluster's listeners: as the members announce them, and by links."""
        members = self.runtime.node.members
        own, others = members.introduce(), list(members.peers.values())
        trusted, linked = {own.admin_port}, set[str]()
        if self._peers is not None:
            trusted |= {self._settings.cluster.peer_port, _port(self._peers.address)}
            linked = self._peers.hosts()
        trusted.update(port for peer in others for port in (peer.admin_port, _port(peer.address)))
        return Listeners(
            frozenset(trusted - {0}),
            frozenset({own.http_port, *(peer.http_port for peer in others)} - {0}),
            addresses_of(linked.union(host_of(peer.address) for peer in others)),
        )

    def _known_addresses(self) -> tuple[str, ...]:
        voters = self.runtime.node.replica.membership.voters
        return tuple(voter.address for voter in voters if is_dialable(voter.address))

    # --- snapshots ------------------------------------------------------------------

    async def open(self, index: int) -> Snapshot:
        return await self._storage.snapshot(index)

    def release(self, snapshot: Offered) -> None:
        assert isinstance(snapshot, Snapshot), "it came from open"
        self._storage.release(snapshot)

    def _fetch(self, wanted: Wanted) -> None:
        if self._fetching is None or self._fetching.done():
            self._fetching = self._loop.create_task(self._fetch_and_install(wanted))

    async def _fetch_and_install(self, wanted: Wanted) -> None:
        """Fetch the wanted snapshot and install it. Repeat after errors, until it is not wanted any more."""
        assert self._peers is not None, "snapshots are offered by peers"
        path, refused = self._incoming, 0
        try:
            while self.runtime.wanted is not None and not self.runtime.stopped:
                try:
                    await self._peers.fetch(self._in_turn(self.runtime.wanted, refused), path)
                    if self.runtime.wanted is not None:
                        await self._install(path)
                        return
                except (OSError, DataError) as error:
                    refused += 1
                    _log.warning("snapshot_not_taken %s", error)
                    await asyncio.sleep(FETCH_AGAIN_S)
        except Exception as failure:
            self._storage_failed(failure)
        finally:
            path.unlink(missing_ok=True)
            if self.runtime.wanted is None:
                self._drop_incoming()

    def _in_turn(self, wanted: Wanted, refused: int) -> Wanted:
        """Return the wanted snapshot with the next source after ``refused`` failures."""
        sources = sorted(self.runtime.node.replica.others, key=lambda other: other != wanted.source)
        return Wanted(sources[refused % len(sources)], wanted.index) if sources else wanted

    @property
    def _incoming(self) -> Path:
        """Return the file for a snapshot that is being fetched. A restarted process continues with the same file.

        Without a data directory it is in a temporary one.
        """
        if self._directory is not None:
            return self._directory.path / INCOMING
        if self._scratch is None:
            self._scratch = TemporaryDirectory(prefix="elasticq-", ignore_cleanup_errors=True)
        return Path(self._scratch.name) / INCOMING

    def _drop_incoming(self) -> None:
        """Delete a fetched snapshot that is not wanted any more."""
        for left in (self._incoming, *parts_of(self._incoming)):
            left.unlink(missing_ok=True)

    def _drop_incoming_of_former_lives(self) -> None:
        """Delete the parts of snapshots that earlier processes left, except the newest: its transfer can continue."""
        if self._directory is None:
            return
        self._incoming.unlink(missing_ok=True)
        for left in sorted(parts_of(self._incoming), key=lambda part: part.stat().st_mtime_ns)[:-1]:
            left.unlink()

    async def _install(self, path: Path) -> None:
        members = self.runtime.node.members
        if self._directory is not None and members.was_voter:
            # The install drops the log with the removal. Without this note a removed voter would return as a learner.
            voters = (await asyncio.to_thread(base_of, path)).voters
            if voters is not None:
                own = self._node_settings.member_id
                self._directory.remember_removed(all(voter.id != own for voter in voters))
        loaded = await self._storage.install(path, lambda: self.runtime.wanted is not None)
        self.runtime.replace(self._node(loaded))
        self._operator_log.installed(loaded.durable.applied_index)

    # --- damaged rows ------------------------------------------------------------------

    def _met_damage(self, damage: Damage) -> None:
        """Report damaged rows to the node.

        The node gets lost messages from other members, or drops them. If it can do neither, the storage rebuilds its
        rows from the intact ones.
        """
        _log.error("rows_damaged %s", damage.told)
        try:
            is_done = self.runtime.damaged(damage.queue_id, damage.sequences)
        except RuntimeStopped:
            return  # the failure is logged, and the process is about to end
        if is_done or self._healing is not None:
            return
        self._heals += 1
        if self._heals > HEALS_MAX:  # each leaves a file with the old rows
            self._storage_failed(DataError(f"{damage.told}; the disk keeps damaging its data: use another one"))
        else:
            self._healing = self._loop.create_task(self._heal())

    async def _heal(self) -> None:
        try:
            self.runtime.replace(self._node(await self._storage.heal()))
            _log.warning("rows_healed")
        except Exception as failure:
            self._storage_failed(failure)
        finally:
            self._healing = None

    # --- failures ---------------------------------------------------------------------

    def _set_full(self, reason: str | None) -> None:
        self._is_full = reason is not None
        self._operator_log.full(reason)
        if self._runtime is not None:
            self._runtime.set_full(reason)

    def _storage_failed(self, failure: BaseException) -> None:
        _log.critical("storage_failed", exc_info=failure)
        if self._runtime is not None:
            self._runtime.fail(failure)
        end(self.ended, EXIT_FAILURE)


def _port(place: str) -> int:
    """Return the port at the end of a URL or of host:port, 0 without one."""
    port = place.rpartition(":")[2]
    return int(port) if port.isascii() and port.isdecimal() else 0
