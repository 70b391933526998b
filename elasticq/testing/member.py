"""A member inside this process, and the thread for its event loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

from elasticq.http.context import ServerContext
from elasticq.http.protocol import SqsProtocol
from elasticq.node.membership.peer import Peer
from elasticq.node.outputs import Frame
from elasticq.runtime.listener import listen
from elasticq.runtime.runtime import Runtime
from elasticq.server.cluster_process import EXIT_STOPPED, end
from elasticq.server.declare import declare
from elasticq.server.files import BACKLOG_MAX
from elasticq.server.life import loop_factory, make_context, url_of
from elasticq.server.member import Member
from elasticq.server.pushes import Pushes
from elasticq.server.settings import Settings, SettingsError, declarations
from elasticq.storage.directory import DataDirectory

STOP_S: Final = 1.0
PATIENCE_S: Final = 60.0

T = TypeVar("T")


class LoopThread:
    """An event loop in its own thread, in which other threads run coroutines until ``stop``."""

    def __init__(self, name: str) -> None:
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._thread.start()
        self._started.wait()

    def _live(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self._started.set()
        await self._end.wait()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result. Call it from any thread except the loop's."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE_S)

    def ask(self, function: Callable[[], T]) -> T:
        """Call a function in the loop's thread and return its result."""

        async def call() -> T:
            return function()

        return self.run(call())

    def stop(self) -> None:
        assert self._loop is not None
        assert self._end is not None
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()


class CuttableMember(Member):
    """A member whose links can be cut. cut: the ids of the members with cut links."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.cut: set[str] = set()
        self._met: dict[str, Peer] = {}

    def _send(self, frames: list[Frame]) -> None:
        super()._send([frame for frame in frames if frame.to not in self.cut])

    def met(self, peer: Peer) -> None:
        self._met[peer.id] = peer
        if peer.id not in self.cut:
            super().met(peer)

    def lost(self, member_id: str) -> None:
        self._met.pop(member_id, None)
        if member_id not in self.cut:
            super().lost(member_id)

    def cut_link(self, member_id: str) -> None:
        """Cut the link to a member. To the node it is as if the link was lost."""
        if member_id not in self.cut:
            if member_id in self._met:
                super().lost(member_id)
            self.cut.add(member_id)

    def restore_links(self) -> None:
        """Restore all cut links."""
        parted, self.cut = self.cut, set()
        for member_id in sorted(parted):
            if member_id in self._met:
                super().met(self._met[member_id])


class EmbeddedMember:
    """A member that a loop starts and stops. The constructor binds its port, so ``url`` is known at once."""

    def __init__(self, settings: Settings) -> None:
        """Bind the port. Raise OSError if it is in use."""
        self.settings = settings
        self._listener = listen(settings.http.host, settings.http.port, BACKLOG_MAX)
        self._port: int = self._listener.getsockname()[1]
        self.url = url_of(settings.http, self._port)
        self._member: CuttableMember | None = None
        self._runtime: Runtime | None = None
        self._context: ServerContext | None = None
        self._server: asyncio.Server | None = None
        self._pushes: Pushes | None = None

    async def start(self) -> None:
        """Start to serve. Raise OSError, DataError or SettingsError if that fails, with all files closed."""
        loop = asyncio.get_running_loop()
        storage = self.settings.storage
        try:
            directory = None if storage.memory else DataDirectory(Path(storage.data_dir), self.settings.node.id)
            self._member = CuttableMember(self.settings, directory, loop, http=self.url, admin="", http_port=self._port)
            self._runtime = await self._member.start()
            if self.settings.cluster.nodes == 1:
                await self._member.can_serve()
                declared = declarations(self.settings)
                failed = await declare(self._runtime, declared, self.settings.node.account, self.url)
                if failed:
                    raise SettingsError("; ".join(failed))
            context = self._context = make_context(self.settings, self._runtime, loop)
            self._server = await loop.create_server(
                lambda: SqsProtocol(context), sock=self._listener, backlog=BACKLOG_MAX
            )
            context.start()
            self._pushes = Pushes(self.settings, self._member, loop)
            context.certificate = self._pushes.certificate
            self._pushes.start()
        except BaseException:
            await self.kill()
            raise

    async def stop(self) -> None:
        """Stop in good order: a master hands over, long polls are answered, and writes reach the disk."""
        assert self._context is not None
        await self.member.hand_over()
        await self._close(STOP_S)

    async def kill(self) -> None:
        """Stop at once: waiting calls get no answer."""
        await self._close(0)

    async def _close(self, patience_s: float) -> None:
        if self._server is not None:
            self._server.close()
        self._listener.close()
        if self._member is not None:
            end(self._member.ended, EXIT_STOPPED)
        if self._pushes is not None:
            await self._pushes.stop()
        if self._context is not None:
            await self._context.stop(patience_s)
        if self._runtime is not None and not self._runtime.stopped:
            self._runtime.close()
        if self._member is not None:
            await self._member.close()

    @property
    def member(self) -> CuttableMember:
        assert self._member is not None, "started"
        return self._member

    @property
    def runtime(self) -> Runtime:
        assert self._runtime is not None, "started"
        return self._runtime
