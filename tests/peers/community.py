"""Members without nodes, in one loop: what they heard, and conditions to wait on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from elasticq.node.membership.peer import Peer
from elasticq.node.outputs import Frame
from elasticq.peers.peers import Peers
from elasticq.peers.questions import Answer
from elasticq.peers.settings import PeerSettings

PATIENCE_S = 20.0


def make_peer(name: str, *, incarnation: str = "", **changes: Any) -> Peer:
    peer = Peer(
        f"{name}-0123456789abcdef",
        name,
        incarnation or f"boot of {name}",
        "test",
        "",
        3,
        True,
        False,
        1,
        "",
        "",
        "",
    )
    return msgspec.structs.replace(peer, **changes)


class File(msgspec.Struct):
    path: Path
    id: str
    index: int
    size_bytes: int


class Files:
    """Snapshots: files that lie there already, the newest first to be given."""

    def __init__(self) -> None:
        self.files: list[File] = []
        self.open_count = 0

    def add(self, path: Path, snapshot_id: str, index: int) -> File:
        file = File(path, snapshot_id, index, path.stat().st_size)
        self.files.insert(0, file)
        return file

    async def open(self, index: int) -> File:
        for file in self.files:
            if file.index >= index:
                self.open_count += 1
                return file
        raise LookupError(f"nothing at {index}")

    def release(self, snapshot: File) -> None:
        self.open_count -= 1


class Member:
    """A receiver with its Peers. ``until`` waits for a condition; each call of the receiver checks it again."""

    def __init__(self, name: str, *, peer: Peer | None = None, **settings: Any) -> None:
        self.peer = peer or make_peer(name)
        self.frames: list[bytes] = []
        self.mets: list[Peer] = []
        self.losts: list[str] = []
        self.refusals: list[str] = []
        self.questions: list[tuple[str, bytes]] = []
        self.answer: Callable[[str, bytes], Awaitable[Answer]] = self._echo
        self.linked: set[str] = set()
        self.files = Files()
        self._news = asyncio.Event()
        settings = {"port": 0, "cluster_name": self.peer.cluster_name} | settings
        self.peers = Peers(
            PeerSettings(**settings),
            asyncio.get_running_loop(),
            introduce=lambda: self.peer,
            receiver=self,
            snapshots=self.files,
        )

    @property
    def id(self) -> str:
        return self.peer.id

    def change(self, **changes: Any) -> None:
        self.peer = msgspec.structs.replace(self.peer, **changes)

    def send(self, to: "Member", *frames: bytes) -> None:
        self.peers.send([Frame(to.id, data, 0) for data in frames])

    def receive(self, member_id: str, frame: bytes) -> None:
        self.frames.append(frame)
        self._news.set()

    def met(self, peer: Peer) -> None:
        self.mets.append(peer)
        self.linked.add(peer.id)
        self._news.set()

    def lost(self, member_id: str) -> None:
        self.losts.append(member_id)
        self.linked.discard(member_id)
        self._news.set()

    async def asked(self, kind: str, body: bytes) -> Answer:
        self.questions.append((kind, body))
        self._news.set()
        return await self.answer(kind, body)

    async def _echo(self, kind: str, body: bytes) -> Answer:
        return 200, f"{self.peer.name} {kind} ".encode() + body

    def refused(self, reason: str) -> None:
        self.refusals.append(reason)
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def until_linked(self, *others: "Member") -> None:
        await self.until(lambda: all(other.id in self.linked for other in others))


@asynccontextmanager
async def running(*members: Member) -> AsyncIterator[None]:
    try:
        for member in members:
            await member.peers.start()
        yield
    finally:
        for member in members:
            await member.peers.stop()


async def told(heard: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await heard.wait()
