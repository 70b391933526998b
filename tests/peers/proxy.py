"""A TCP proxy for one link: passes, cuts after some bytes, goes mute, changes a byte."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    """towards: host:port. cut_after: bytes from the far end after which one connection is cut, None: never."""

    def __init__(self, towards: str) -> None:
        host, _, port = towards.rpartition(":")
        self._host, self._port = host, int(port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.cut_after: int | None = None
        self.flip_at: int | None = None
        self.is_mute = False
        self.connections = 0
        self.passed = 0
        self.cut = asyncio.Event()
        self.address = ""

    async def serve(self, near: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            far, request = await asyncio.open_connection(self._host, self._port)
        except OSError:
            answer.close()
            return
        self._writers |= {answer, request}
        for source, sink, is_answer in ((near, request, False), (far, answer, True)):
            task = asyncio.create_task(self._pump(source, sink, is_answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, is_answer: bool) -> None:
        try:
            while data := await source.read(65_536):
                if self.is_mute:
                    continue
                if is_answer:
                    data = self._changed(data)
                sink.write(data)
                await sink.drain()
                if is_answer and self.cut_after is not None and self.passed >= self.cut_after:
                    self.cut_after = None
                    self.cut_all()
        except OSError:
            pass
        finally:
            sink.close()

    def _changed(self, data: bytes) -> bytes:
        start, self.passed = self.passed, self.passed + len(data)
        if self.flip_at is None or not start <= self.flip_at < self.passed:
            return data
        at = self.flip_at - start
        self.flip_at = None
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    def cut_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        self.cut.set()

    async def stop(self) -> None:
        self.cut_all()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def proxied(towards: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(towards)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    proxy.address = f"{host}:{port}"
    try:
        yield proxy
    finally:
        server.close()
        await proxy.stop()
