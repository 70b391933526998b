"""A thread that sends requests, logs each before it is sent, and counts the answers."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from random import Random
from typing import Final, TextIO

from msgspec import Struct, field

from tests.system.siege.client import Answer, Connection, Keys
from tests.system.siege.entries import ENTRIES, Entry, draw
from tests.system.siege.maker import Maker
from tests.system.siege.request import CUT, PIPE, Request, dump, load
from tests.system.siege.verdict import LATE_S
from tests.system.siege.world import World

RING_MAX: Final = 2_000
PIPED_MAX: Final = 4
SLOWEST: Final = 5

FindPort = Callable[[str, bool], int]
"""Returns the port of a member with a role; the second argument: the operators' port."""


class Ring:
    """A file that keeps at least the last RING_MAX requests, and the file before it with older ones."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lines = 0
        self._began_s = time.monotonic()
        self._open = self._start()

    def _start(self) -> TextIO:
        return self.file.open("w", buffering=1)

    def note(self, request: Request) -> int:
        """Log a request; return its number."""
        if self._lines and self._lines % RING_MAX == 0:
            self._open.close()
            self.file.replace(older(self.file))
            self._open = self._start()
        self._lines += 1
        self._open.write(dump(request, self._lines, time.monotonic() - self._began_s))
        return self._lines

    def close(self) -> None:
        self._open.close()


def older(file: Path) -> Path:
    return file.with_suffix(".older")


def replayed(files: list[Path]) -> Iterator[Request]:
    """Return the requests of several workers' files and the older ones next to them, in the order of their times."""
    found: list[tuple[float, Request]] = []
    for file in files:
        for each in (older(file), file):
            for line in each.read_text().splitlines() if each.exists() else ():
                try:
                    found.append(load(line))
                except ValueError:
                    continue  # the last line of a process that was killed
    return iter([request for _, request in sorted(found, key=lambda each: each[0])])


def generated(world: World, entries: tuple[Entry, ...] = ENTRIES) -> Iterator[Request]:
    """Return requests without end."""
    maker = Maker(world)
    while True:
        yield draw(maker, entries)


class Tally(Struct):
    """What one worker saw. failures, late: evidence; slowest: seconds and names."""

    statuses: Counter[int] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    slowest: list[tuple[float, str]] = field(default_factory=list)


class Worker(threading.Thread):
    """pause_s: mean time between two calls; world: it learns from the answers; error: of the worker itself."""

    def __init__(
        self,
        requests: Iterator[Request],
        find_port: FindPort,
        keys: Keys,
        ring: Ring,
        *,
        seed: str = "",
        pause_s: float = 0.0,
        world: World | None = None,
    ) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.tally = Tally()
        self.error: BaseException | None = None
        self._requests, self._find_port, self._keys, self.ring = requests, find_port, keys, ring
        self._pause_s, self._world = pause_s, world
        self._random = Random(f"sends of {seed}")
        self._connections: dict[int, Connection] = {}

    def run(self) -> None:
        try:
            while (request := next(self._requests, None)) is not None:
                if self.over.wait(self._random.uniform(0, 2 * self._pause_s)):
                    break
                self._send(request)
        except BaseException as error:
            self.error = error
        for connection in self._connections.values():
            connection.close()
        self.ring.close()

    def _send(self, request: Request) -> None:
        port = self._find_port(request.to, request.is_operators)
        requests = [request]
        if request.manner == PIPE:
            requests += self._alike(request)
        numbers = list(map(self.ring.note, requests))
        connection = self._connections.setdefault(port, Connection(port, self._keys))
        if request.manner == CUT:
            connection.cut(request)
            self.tally.done[f"cut {request.name}"] += 1
            return
        for each, number, answer in zip(requests, numbers, connection.exchange(*requests), strict=True):
            self._judge(each, number, answer)

    def _alike(self, request: Request) -> list[Request]:
        """Return a few of the next requests, to be sent with this one; they stop at the first for the other port."""
        found: list[Request] = []
        for _ in range(self._random.randrange(1, PIPED_MAX)):
            following = next(self._requests, None)
            if following is None or following.is_operators != request.is_operators:
                self._requests = chain([following] if following else [], self._requests)
                break
            found.append(following)
        return found

    def _judge(self, request: Request, number: int, answer: Answer) -> None:
        tally, took_s = self.tally, round(answer.took_s, 2)
        tally.statuses[answer.status] += 1
        if answer.status == 200:
            tally.done[request.name] += 1
            if self._world is not None:
                self._world.learn(request.focus, answer.body)
        evidence = (
            f"{request.name} at the {request.to}: {answer.status} after {took_s} s, call {number} of {self.ring.file}"
        )
        if answer.is_failure:
            tally.failures.append(f"{evidence}: {answer.body[:200]!r}")
        if answer.took_s > LATE_S:
            tally.late.append(evidence)
        tally.slowest = sorted([*tally.slowest, (took_s, request.name)], reverse=True)[:SLOWEST]
