"""A network between members that can be broken: a TCP relay per dialler and target, in a process of its own.

Member A reaches B only through the relay A->B (``ELASTICQ_FAULT_ROUTES`` sends A's dials there). Either
of them may have dialled, so bytes obey the flow (from, to), whichever connection they travel on:

    pass     they go on, after ``delay_ms`` +- ``jitter_ms`` and at ``bytes_per_s`` (0: unlimited)
    hold     they stay in the relay, as in a dead network whose TCP sends them again later: nobody is told,
             new connections open and say nothing, and all comes through when the flow passes again
    swallow  they vanish; a connection that lost some is closed when the flow passes again

The process is told by JSON lines on stdin and answers each with one on stdout, so that the test's own
threads (clients under load) do not slow the network down, and it ends with its test.
"""

import asyncio
import contextlib
import itertools
import json
import subprocess
import sys
import threading
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
HOST = "127.0.0.1"
CHUNK_BYTES = 65_536
CHUNKS_WAITING = 64  # of one connection and direction; then its sender is not read any more
DIAL_AGAIN_S = 0.05


class Network:
    """What a test says: members by name, flows between them."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.system.cluster.proxy"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._context = threading.Lock()

    def link(self, dialler: str, target: str, port: int) -> int:
        """The relay's port by which ``dialler`` reaches ``target``, which listens at ``port``."""
        return int(self._ask(do="link", dialler=dialler, target=target, port=port)["port"])

    def set(self, sender: str, receiver: str, state: str = "pass", **how: float) -> None:
        """One direction. ``how``: delay_ms, jitter_ms, bytes_per_s."""
        self._ask(do="flow", sender=sender, receiver=receiver, state=state, **how)

    def close(self, dialler: str, target: str) -> int:
        """Reset the connections of a link; how many there were."""
        return int(self._ask(do="close", dialler=dialler, target=target)["closed"])

    def passed_bytes(self, sender: str, receiver: str) -> int:
        """Since the start, on all connections of both."""
        return int(self._ask(do="bytes", sender=sender, receiver=receiver)["bytes"])

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _ask(self, **command: Any) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        with self._context:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        assert line, "the network ended"
        answer: dict[str, Any] = json.loads(line)
        assert "error" not in answer, answer
        return answer


class Flow:
    """Bytes from one member to another, on all their connections."""

    def __init__(self) -> None:
        self.passing = asyncio.Event()
        self.passing.set()
        self.swallows = False
        self.delay_ms = self.jitter_ms = self.bytes_per_s = 0.0
        self.bytes = 0
        self.wounded: set[asyncio.StreamWriter] = set()
        self._free_s = 0.0
        self._random = Random(0)

    def set(self, state: str, delay_ms: float = 0, jitter_ms: float = 0, bytes_per_s: float = 0) -> None:
        assert state in ("pass", "hold", "swallow"), state
        self.swallows = state == "swallow"
        self.delay_ms, self.jitter_ms, self.bytes_per_s = delay_ms, jitter_ms, bytes_per_s
        if state == "hold":
            self.passing.clear()
        else:
            self.passing.set()
        if state == "pass":
            for writer in self.wounded:
                writer.transport.abort()
            self.wounded.clear()

    def due_s(self, count: int) -> float:
        """When ``count`` bytes that came now are to go on."""
        now_s = asyncio.get_running_loop().time()
        wait_ms = self.delay_ms + self._random.uniform(-self.jitter_ms, self.jitter_ms)
        if self.bytes_per_s:
            self._free_s = max(self._free_s, now_s) + count / self.bytes_per_s
            now_s = self._free_s
        return now_s + max(0.0, wait_ms) / 1_000


class Relay:
    """One link: everything ``dialler`` opens towards ``target``."""

    def __init__(self, forth: Flow, back: Flow, port: int) -> None:
        self.forth, self.back, self.port = forth, back, port
        self.writers: set[asyncio.StreamWriter] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        other: asyncio.StreamWriter | None = None
        try:
            # A dead network opens nothing: the target is dialled when bytes can travel.
            await self.forth.passing.wait()
            other_reader, other = await asyncio.open_connection(HOST, self.port)
            self.writers.add(other)
            async with asyncio.TaskGroup() as both:
                both.create_task(carry(reader, other, self.forth))
                both.create_task(carry(other_reader, writer, self.back))
        except* OSError:
            pass  # either side closed or nobody listens: both are told by the close below
        finally:
            for end in (writer, other):
                if end is not None:
                    self.writers.discard(end)
                    self.forth.wounded.discard(end)
                    self.back.wounded.discard(end)
                    end.close()  # what was passed on before still arrives

    def close(self) -> int:
        ends = list(self.writers)
        for writer in ends:
            writer.transport.abort()
        return len(ends)


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flow: Flow) -> None:
    """Until either end is gone; then OSError, so that the other direction ends as well."""
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_WAITING)

    async def deliver() -> None:
        while True:
            due_s, data = await waiting.get()
            early_s = due_s - asyncio.get_running_loop().time()
            if early_s > 0:
                await asyncio.sleep(early_s)
            await flow.passing.wait()
            if not data:
                raise ConnectionResetError
            if flow.swallows:
                flow.wounded.add(writer)
                continue
            flow.bytes += len(data)
            writer.write(data)
            await writer.drain()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(deliver())
        while data := await reader.read(CHUNK_BYTES):
            await waiting.put((flow.due_s(len(data)), data))
        await waiting.put((flow.due_s(0), b""))


class Desk:
    """Does what the test's process says."""

    def __init__(self) -> None:
        self.flows: dict[tuple[str, str], Flow] = {}
        self.relays: dict[tuple[str, str], Relay] = {}
        self.servers: list[asyncio.Server] = []

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        match command.pop("do"):
            case "link":
                return {"port": await self.link(**command)}
            case "flow":
                sender, receiver = command.pop("sender"), command.pop("receiver")
                self.flow(sender, receiver).set(**command)
                return {}
            case "close":
                relay = self.relays.get((command["dialler"], command["target"]))
                return {"closed": relay.close() if relay else 0}
            case "bytes":
                return {"bytes": self.flow(command["sender"], command["receiver"]).bytes}
        return {"error": "unknown"}

    def flow(self, sender: str, receiver: str) -> Flow:
        return self.flows.setdefault((sender, receiver), Flow())

    async def link(self, dialler: str, target: str, port: int) -> int:
        relay = Relay(self.flow(dialler, target), self.flow(target, dialler), port)
        self.relays[dialler, target] = relay
        server = await asyncio.start_server(relay.accept, HOST, 0)
        self.servers.append(server)
        return int(server.sockets[0].getsockname()[1])


async def main() -> None:
    desk = Desk()
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    for number in itertools.count():
        line = await lines.readline()
        if not line:
            return
        try:
            answer = await desk.do(json.loads(line))
        except (TypeError, KeyError, AssertionError, OSError) as error:
            answer = {"error": f"line {number}: {error!r}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
