"""A server inside a test: ``with ElasticQ() as server:`` starts it within milliseconds, in a thread or a process."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION
from elasticq.testing.calls import Caller
from elasticq.testing.host import Host, overlaid

if TYPE_CHECKING:
    from elasticq.testing.asynchronous import AsyncView
    from elasticq.testing.member import EmbeddedMember, LoopThread
    from elasticq.testing.process import ServerProcess


class ElasticQ(Host):
    """A server that runs between ``start`` and ``stop``, or as a context manager. ``async with`` yields an AsyncView.

    port: 0 for a free one; data_dir: stores messages there, None: in memory; process: run in another process instead
    of a thread; settings: sections of the configuration file, which override all other arguments.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        data_dir: str | Path | None = None,
        process: bool = False,
        account: str = DEFAULT_ACCOUNT,
        region: str = DEFAULT_REGION,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(account, region)
        self._is_process = process
        self._sections = _sections(host, port, data_dir, account, region, settings or {})
        self._url = ""
        self._thread: LoopThread | None = None
        self._member: EmbeddedMember | None = None
        self._process: ServerProcess | None = None
        self._asynchronous: AsyncView | None = None

    # --- life -----------------------------------------------------------------------

    def start(self) -> None:
        """Start the server, and return when it serves.

        Raise OSError, SettingsError or DataError if it cannot start, RuntimeError if it is a process.
        """
        assert not self._url, "the server is running already"
        if self._is_process:
            from elasticq.testing.process import ServerProcess

            self._process = ServerProcess(self._sections)
            self._url = self._process.url
        else:
            self._start_in_thread()

    def _start_in_thread(self) -> None:
        from elasticq.server.settings import load
        from elasticq.testing.member import EmbeddedMember, LoopThread

        member = EmbeddedMember(load(None, {}, self._sections))
        thread = LoopThread("elasticq")
        try:
            thread.run(member.start())
        except BaseException:
            thread.stop()
            raise
        self._member, self._thread, self._url = member, thread, member.url

    def stop(self) -> None:
        """Stop the server, and close all clients of its views. Do nothing if it is not running."""
        self._close_views()
        self._url = ""
        thread, member, process = self._thread, self._member, self._process
        self._thread = self._member = self._process = None
        if thread is not None and member is not None:
            try:
                thread.run(member.stop())
            finally:
                thread.stop()
        if process is not None:
            process.stop()

    async def __aenter__(self) -> "AsyncView":
        from elasticq.testing.asynchronous import AsyncView

        await asyncio.to_thread(self.start)
        return AsyncView(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    # --- views ----------------------------------------------------------------------

    def callers(self, account: str) -> list[Caller]:
        return [Caller(self.endpoint_url, account, self._region)]

    @property
    def endpoint_url(self) -> str:
        assert self._url, "the server is not running: use it as a context manager, or start() it"
        return self._url


def _sections(
    host: str,
    port: int,
    data_dir: str | Path | None,
    account: str,
    region: str,
    more: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    sections: dict[str, dict[str, Any]] = {
        "http": {"host": host, "port": port},
        "admin": {"port": -1},
        "node": {"account": account, "region": region},
        "storage": {"memory": True} if data_dir is None else {"data_dir": str(data_dir)},
        "testing": {"enabled": True},
    }
    return overlaid(sections, more)
