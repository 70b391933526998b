"""The links of this process: one to every other member that it can find.

Addresses come from seeds, discovery and greetings. This process dials each of them until the member there is linked.
admission.py decides which of two links stays, and which of two processes keeps a name. This package does not decide
who is a member of the cluster.
"""

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine
from logging import getLogger
from pathlib import Path
from secrets import token_bytes
from ssl import SSLError
from typing import Protocol

from elasticq.net.acceptor import Acceptor, listeners_of
from elasticq.net.connection_limits import choose_victim
from elasticq.node.membership.peer import Peer
from elasticq.node.outputs import Frame, Wanted
from elasticq.peers.addresses import OwnAddress, route, split
from elasticq.peers.admission import claim_of, is_elder, is_rival, proxies_max, replaces
from elasticq.peers.book import RUMOUR_S, Book
from elasticq.peers.connection import HANDSHAKE_S, Connection
from elasticq.peers.dial import Dialler, Target
from elasticq.peers.errors import (
    CLOSED,
    NO_ANSWER,
    OtherProtocol,
    PeerError,
    RefusedFrame,
    SelfMet,
    TwoClusters,
    Unreachable,
)
from elasticq.peers.frames import FRAME_BYTES_MAX
from elasticq.peers.handshake import NONCE_BYTES, Handshake, check_cluster, make_hello
from elasticq.peers.link import Link
from elasticq.peers.links import Links
from elasticq.peers.messages import CROWDED, DUPLICATE, HELD, STRANGER, Hello, Known, Purpose, Refused
from elasticq.peers.questions import Answer, Questions
from elasticq.peers.refusal_log import RefusalLog, Refusals
from elasticq.peers.settings import PeerSettings, client_context, server_context
from elasticq.peers.transfer import Fetch, Fetching, Snapshots, TransferServer

TICK_S = 0.2
LATE_S = 1.0  # a tick that is later than this shows that this process was paused, not that its peers were silent
CONNECT_S = 3.0
VERDICT_S = 2.0  # how long the younger of two processes of one name waits for the other's refusal
BACKLOG = 128
UNPROVEN_MAX = 256  # accepted connections that are not authenticated yet
FOUND_MAX = 256  # addresses from discovery
_log = getLogger("elasticq.peers")


class Receiver(Protocol):
    """The handler of events on links. Called in the event loop's thread, never from inside a call of Peers."""

    def receive(self, member_id: str, frame: bytes) -> None:
        """Handle a frame for the node. Frames of one link come in the order in which they were sent."""

    def met(self, peer: Peer) -> None:
        """Handle a member's greeting: the first one of a link, or one that reports changes of ``peer``."""

    def lost(self, member_id: str) -> None:
        """Handle the end of the link to a member."""

    async def asked(self, kind: str, body: bytes) -> Answer:
        """Return the answer to a question that another member asks for its operator: HTTP status and body."""

    def refused(self, reason: str) -> None:
        """End this process, because another live process has this member's name or id."""


class Discovery(Protocol):
    async def start(self, peer: Peer) -> None: ...
    async def update(self, peer: Peer) -> None: ...
    async def stop(self) -> None: ...


class Peers:
    """All links of this process.

    introduce: returns this process's own Peer. It is called every 200 ms, and each change is sent over all links.
    receiver: handles the events on links. snapshots: opens the snapshots that other members fetch.
    """

    def __init__(
        self,
        settings: PeerSettings,
        loop: AbstractEventLoop,
        *,
        introduce: Callable[[], Peer],
        receiver: Receiver,
        snapshots: Snapshots,
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._introduce = introduce
        self._receiver = receiver
        self._server_tls = server_context(settings)
        self._client_tls = client_context(settings)
        self._acceptor: Acceptor | None = None
        self._discovery: Discovery | None = None
        self._transfers = TransferServer(loop, snapshots, settings.rate_bytes_per_s)
        self._ticked_s = loop.time()
        self._links = Links(self._ticked_s)
        self.hosts = self._links.hosts
        self._dialler = Dialler(loop, self._dial, self._links.has)
        self.unreached = self._dialler.failures
        self._book = Book()
        self._found: dict[str, float] = {}
        self._connections: set[Connection] = set()
        self._unproven: dict[Connection, str] = {}  # accepted ones with their hosts, the oldest first
        self._contests: dict[Connection, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.refusal_log = RefusalLog()
        self._refusals = Refusals()
        self._questions = Questions(loop, lambda kind, body: receiver.asked(kind, body))
        self._last_introduced: Peer | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopping = False
        self._all_closed = asyncio.Event()
        self._frames_dropped = 0
        self._own_address = OwnAddress(settings.host, settings.advertise, settings.port if settings.listens else 0)
        self._unproven_max = min(UNPROVEN_MAX, settings.connections_max // 2)
        self._proxies_max = proxies_max(settings.connections_max, self._unproven_max)

    async def start(self) -> None:
        """Listen if the settings say so, then dial others. Raise OSError if the port is not available."""
        if self._settings.listens:
            await self._listen()
        self._last_introduced = self._introduce()
        self._follow()
        self._timer = self._loop.call_later(TICK_S, self._tick)
        if self._settings.discovery == "zeroconf":
            await self._start_discovery()

    async def _listen(self) -> None:
        listeners = await listeners_of(self._settings.host, self._settings.port, BACKLOG)
        self._own_address.port = int(listeners[0].getsockname()[1])
        self._acceptor = Acceptor(
            "peers",
            self._loop,
            listeners,
            lambda: Connection(self, self._loop, self._settings.send_buffer_bytes, is_dialler=False),
            count=lambda: len(self._connections),
            connections_max=self._settings.connections_max,
            tls=self._server_tls,
            handshake_s=HANDSHAKE_S,
        )
        self._acceptor.start()

    async def stop(self) -> None:
        """Close all connections. Frames sent before still go out, for up to 1 s. The receiver is not called again."""
        self._is_stopping = True
        if self._timer is not None:
            self._timer.cancel()
        if self._acceptor is not None:
            self._acceptor.close()
        await self._dialler.stop()
        tasks = [*self._contests.values(), *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._discovery is not None:
            await self._discovery.stop()
        await self._transfers.stop()
        await self._questions.stop()
        for connection in list(self._connections):
            connection.close()
        while self._connections:
            self._all_closed.clear()
            await self._all_closed.wait()  # a connection that has not closed within LINGER_S is aborted

    def renew(self, settings: PeerSettings) -> None:
        """Use the secrets and certificates of ``settings`` for new connections.

        Raise PeerSettingsError if the TLS files cannot be used; then nothing changes.
        """
        server_tls, client_tls = server_context(settings), client_context(settings)
        self._settings, self._server_tls, self._client_tls = settings, server_tls, client_tls
        if self._acceptor is not None:
            self._acceptor.renew(server_tls)

    @property
    def address(self) -> str:
        """Return the address at which others probably reach this member, empty if it does not listen."""
        return self._own_address.assumed() if self._settings.listens else ""

    def send(self, frames: list[Frame]) -> None:
        """Send each frame to its member. Drop it if the member is not linked: Raft sends it again."""
        links = self._links.by_id
        for frame in frames:
            link = links.get(frame.to)
            if link is None:
                self._frames_dropped += 1
            elif len(frame.data) > FRAME_BYTES_MAX:  # drop only this frame: the others must still be sent
                self._frames_dropped += 1
                text = f"a frame of {len(frame.data)} bytes to {link.peer.name} is longer than {FRAME_BYTES_MAX}"
                self.refusal_log.say("frame_too_long", link.connection.place, text, self._loop.time())
            else:
                link.send(frame.data)

    def cut(self, member_id: str, reason: str) -> None:
        """End the link to a member whose frame the node refused."""
        link = self._links.live(member_id)
        if link is not None:
            link.connection.fail(RefusedFrame(f"a frame of member {link.peer.name} was refused: {reason}"))

    def know(self, member_id: str, address: str) -> None:
        """Record a member's address from elsewhere, such as a voter's from the log, and dial it."""
        if member_id != self._introduce().id:
            self._book.heard((Known(member_id, address),), self._loop.time())
            self._follow()

    async def fetch(self, wanted: Wanted, into: Path) -> None:
        """Fetch a whole verified snapshot at ``wanted.index`` or above into ``into``. It retries until cancelled.

        Raise OSError if this member's disk fails. The partial file is next to ``into``, named
        ``<name>.<snapshot id>.part``. A later fetch continues it.
        """
        await Fetch(self._loop, wanted, into, self._connect_transfer, self._sources).run()

    async def ask(self, member_id: str, kind: str, body: bytes, timeout_s: float) -> Answer:
        """Return another member's answer to a question: HTTP status and body. Raise NotAnswered if there is none."""
        return await self._questions.ask(self._links.live(member_id), kind, body, timeout_s)

    def status(self) -> dict[str, int | list[str] | dict[str, int]]:
        """Return the state of the links.

        links: member ids. Counts are since the start of the process. conflicts: those of the last ten seconds.
        """
        return {
            "links": sorted(self._links.by_id),
            "connections": len(self._connections),
            "known_addresses": len(self._book.addresses()),
            **self._links.totals(),
            "frames_dropped": self._frames_dropped,
            "snapshot_bytes_served": self._transfers.bytes_served,
            "refused": dict(self.refusal_log.counts),
            "conflicts": self.refusal_log.conflicts(self._loop.time()),
        }

    # Called by connections (connection.Owner).

    def handshake(self, connection: Connection) -> Handshake:
        self._connections.add(connection)
        if self._is_stopping:
            connection.abort()
        elif not connection.is_dialler:
            self._unproven[connection] = connection.place
            if len(self._unproven) > self._unproven_max:
                self._make_room()
        own, now_s = self._introduce(), self._loop.time()
        claim = self._links.claim(own.incarnation, now_s)
        hello = make_hello(
            self._own_address.spoken(own, connection.local_host),
            connection.purpose,
            is_keyed=bool(self._settings.secret),
            nonce=token_bytes(NONCE_BYTES),
            standing_ms=int((now_s - claim.standing_s) * 1_000),
            uptime_ms=int((now_s - claim.started_s) * 1_000),
        )
        settings = self._settings
        return Handshake(hello, settings.secret, is_dialler=connection.is_dialler, also=settings.also)

    def _make_room(self) -> None:
        """Close one unauthenticated connection to make room for a new one.

        So clients that stay silent cannot keep others out. Connections from known addresses of members are closed
        only if there are no others.
        """
        known = {split(address)[0] for address in (*self._book.addresses(), *self._settings.seeds)}
        slow = choose_victim(self._unproven, known)
        del self._unproven[slow]
        self.refusal_log.say(
            "too_many_unproven", slow.place, "too many connections have not authenticated yet", self._loop.time()
        )
        slow.abort()

    def may_prove(self, connection: Connection, theirs: Hello) -> bool:
        if connection.purpose == "transfer":
            return True
        link = self._links.live(theirs.peer.id)
        if link is None or link.peer.incarnation != theirs.peer.incarnation:
            return True
        # A new link replaces an old one only if both were dialled at the same moment. A greeted link stays.
        return not link.is_greeted and self._introduce().id < link.dialler_id

    def established(self, connection: Connection, theirs: Hello) -> None:
        self._unproven.pop(connection, None)
        check_cluster(self._introduce(), theirs.peer)
        if connection.purpose == "link":
            self._admit(connection, theirs)
        elif connection.is_dialler:
            connection.session = Fetching(connection)
        else:
            connection.session = self._transfers.session(connection)

    def refused(self, connection: Connection, refused: Refused) -> None:
        if refused.code == DUPLICATE:
            return
        now_s = self._loop.time()
        self.refusal_log.say("refused_by_peer", connection.place, refused.reason, now_s)
        if refused.code == STRANGER and connection.is_dialler:
            self.refusal_log.conflict(refused.reason, now_s)
        if refused.code == HELD and connection.is_established and self._refusals.is_final(now_s):
            self._receiver.refused(refused.reason)

    def fault(self, connection: Connection, error: PeerError) -> None:
        if isinstance(error, SelfMet):
            return
        self.refusal_log.note(error, connection.place, self._loop.time())
        if isinstance(error, (TwoClusters, OtherProtocol)):
            self.refusal_log.conflict(str(error), self._loop.time())

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._unproven.pop(connection, None)
        if not self._connections:
            self._all_closed.set()

    # Called by links (link.LinkOwner).

    def greeted(self, link: Link, known: tuple[Known, ...]) -> None:
        check_cluster(self._introduce(), link.peer)
        now_s = self._loop.time()
        own = self._introduce()
        self._book.met(link.peer.id, link.peer.address, now_s)
        self._book.heard(tuple(one for one in known if one.id != own.id), now_s)
        self._follow()
        self._dialler.linked(link.peer.id, link.peer.address)  # after _follow, because the address may be new
        self._receiver.met(link.peer)

    def talked(self, link: Link, kind: int, body: bytes) -> None:
        self._questions.take(link, kind, body)

    def link_ended(self, link: Link) -> None:
        self._links.count_ended(link)
        self._questions.link_ended(link)
        if self._links.by_id.get(link.peer.id) is link:
            self._forget(link)

    # Links.

    def _admit(self, connection: Connection, theirs: Hello) -> None:
        """Link a proven process, or refuse it. If another process has an older claim, first probe that one."""
        own, peer = self._introduce(), theirs.peer
        now_s = self._loop.time()
        claim = claim_of(theirs, now_s)
        if is_rival(own, peer):
            if is_elder(self._links.claim(own.incarnation, now_s), claim):
                self._refuse_name(connection, peer, own)
            else:
                self._loop.call_later(VERDICT_S, connection.abort)  # the other side refuses this link with a reason
            return
        for old in self._links.claimants(peer):
            if old.peer.incarnation == peer.incarnation:
                gives_way = replaces(own.id if connection.is_dialler else peer.id, old.dialler_id)
            else:
                gives_way = not is_elder(old.claim, claim)
            if not gives_way:
                self._contest(connection, theirs, old)
                return
            self._end(old, peer)
        if peer.is_proxy and not self._links.has(peer.id) and self._links.proxies() >= self._proxies_max:
            reason = f"{self._proxies_max} proxies are linked already; the other connections are reserved for members"
            self.refusal_log.say("too_many_proxies", connection.place, reason, now_s)
            connection.refuse(CROWDED, reason)
            return
        self._link(connection, theirs)

    def _end(self, old: Link, winner: Peer) -> None:
        """Close a link that a new link to ``winner`` replaces."""
        if old.peer.incarnation == winner.incarnation:
            old.connection.refuse(DUPLICATE, "another link between these two processes replaces it")
        else:
            self._refuse_name(old.connection, old.peer, winner)

    def _contest(self, connection: Connection, theirs: Hello, old: Link) -> None:
        connection.hold()
        self._contests[connection] = self._loop.create_task(self._probe_old_link(connection, theirs, old))

    async def _probe_old_link(self, connection: Connection, theirs: Hello, old: Link) -> None:
        """Keep the old link if its process answers a probe. Otherwise decide again about the new connection."""
        is_alive = await old.answers()
        self._contests.pop(connection, None)
        if is_alive:
            if old.peer.incarnation == theirs.peer.incarnation:
                connection.refuse(DUPLICATE, "these two processes have a link already, and it works")
            else:
                self._refuse_name(connection, theirs.peer, old.peer)
            return
        old.connection.abort()
        if connection.is_closed:
            return
        self._admit(connection, theirs)
        if connection not in self._contests:
            connection.resume()

    def _refuse_name(self, connection: Connection, loser: Peer, holder: Peer) -> None:
        what = f"member id {loser.id}" if loser.id == holder.id else f"node id {loser.name!r}"
        reason = (
            f"the {what} belongs to a live process, member {holder.id} at {holder.address or 'an unknown address'}: "
            "give this process another --node-id, or stop the other process"
        )
        self.refusal_log.say("name_taken", connection.place, reason, self._loop.time())
        connection.refuse(HELD, reason)

    def _link(self, connection: Connection, theirs: Hello) -> None:
        own = self._introduce()
        replaced = self._links.by_id.get(theirs.peer.id)
        if replaced is not None and replaced.peer.incarnation != theirs.peer.incarnation:
            self._forget(replaced)
        link = Link(self, self._loop, connection, theirs, own.id, self._receiver.receive)
        connection.session = link
        self._links.add(link, self._loop.time())
        self._dialler.linked(theirs.peer.id, theirs.peer.address)
        link.greet(self._own_address.spoken(self._introduce(), connection.local_host), self._known_addresses())

    def _forget(self, link: Link) -> None:
        self._links.remove(link)
        self._dialler.lost(link.peer.id)
        if link.is_greeted and not self._is_stopping:
            self._receiver.lost(link.peer.id)

    # Every 200 ms.

    def _tick(self) -> None:
        now_s = self._loop.time()
        if now_s - self._ticked_s > TICK_S + LATE_S:
            for connection in self._connections:
                connection.heard_s = now_s
        self._ticked_s = now_s
        for link in list(self._links.by_id.values()):
            try:
                link.tick(now_s)
            except PeerError as error:
                link.connection.fail(error)
        self._send_changes()
        self._book.forget_rumours(now_s)
        self._follow()
        self._timer = self._loop.call_later(TICK_S, self._tick)

    def _send_changes(self) -> None:
        own = self._introduce()
        if own == self._last_introduced:
            return
        self._last_introduced = own
        known = self._known_addresses()
        for link in list(self._links.by_id.values()):
            try:
                check_cluster(own, link.peer)
            except PeerError as error:
                link.connection.fail(error)
            link.greet(self._own_address.spoken(own, link.connection.local_host), known)
        if self._discovery is not None:
            self._spawn(self._discovery.update(self._own_address.announced(own)))

    def _known_addresses(self) -> tuple[Known, ...]:
        return self._book.told(set(self._links.by_id), self._loop.time())

    # Dialling.

    def _follow(self) -> None:
        if self._is_stopping:
            return
        now_s = self._loop.time()
        self._found = {place: at_s for place, at_s in self._found.items() if now_s - at_s < RUMOUR_S}
        own = {self.address, self._introduce().address}
        self._dialler.follow((self._book.addresses() | self._found.keys() | set(self._settings.seeds)) - own)

    async def _dial(self, target: Target) -> None:
        try:
            connection = await self._connect(target.address, "link")
        except Unreachable as error:
            target.failure = error.why
            return  # the dialler tries again
        while (contest := self._contests.get(connection)) is not None:
            await asyncio.wait({contest})
        if connection.theirs is not None:
            target.member_id = connection.theirs.peer.id
        target.is_own = isinstance(connection.failure, SelfMet)
        is_linked = target.is_own or self._links.has(target.member_id)
        target.failure = "" if is_linked else str(connection.failure or CLOSED)

    async def _connect(self, address: str, purpose: Purpose) -> Connection:
        """Return a connection whose handshake has succeeded or failed. Raise Unreachable if nobody answers."""
        host, port = split(route(address))
        connection = Connection(
            self, self._loop, self._settings.send_buffer_bytes, is_dialler=True, purpose=purpose, place=address
        )
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._loop.create_connection(lambda: connection, host, port, ssl=self._client_tls)
        except SSLError as error:
            self.refusal_log.say("tls", address, str(error), self._loop.time())
            raise Unreachable(address, str(error)) from error
        except TimeoutError as error:
            connection.abort()
            raise Unreachable(address, f"{NO_ANSWER} within {CONNECT_S:g} s") from error
        except (OSError, UnicodeError) as error:
            connection.abort()
            raise Unreachable(address, (getattr(error, "strerror", "") or str(error)).lower()) from error
        except asyncio.CancelledError:
            connection.abort()
            raise
        await connection.outcome
        return connection

    # Snapshots.

    async def _connect_transfer(self, member_id: str) -> Connection:
        address = self._book.address(member_id)
        if not address:
            raise Unreachable(member_id, "no address of this member is known")
        connection = await self._connect(address, "transfer")
        if connection.is_closed:
            raise Unreachable(address, str(connection.failure or CLOSED))
        return connection

    def _sources(self) -> list[str]:
        return sorted(self._book.members(), key=lambda member_id: member_id not in self._links.by_id)

    # Discovery.

    async def _start_discovery(self) -> None:
        from elasticq.peers.discovery import ZeroconfDiscovery  # imported here because zeroconf is optional

        discovery = ZeroconfDiscovery(self._loop, self._settings.host, self._own_address.port, self._discovered)
        self._discovery = discovery
        try:
            await discovery.start(self._own_address.announced(self._introduce()))
        except OSError as error:  # no multicast; seeds and greetings still work
            _log.warning("zeroconf_failed: %s: set --seeds, or use an interface with multicast", error)

    def _discovered(self, address: str) -> None:
        self._found.pop(address, None)
        if len(self._found) >= FOUND_MAX:
            del self._found[next(iter(self._found))]
        self._found[address] = self._loop.time()
        self._follow()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
