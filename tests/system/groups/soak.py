"""Seven consumers of one group, of which one joins or leaves each second, while the cluster's master is killed.

The consumers are threads of one process, and the cluster's members real processes. Everything that they noted is
judged at the end.
"""

import random
import threading
import time
from pathlib import Path
from typing import NamedTuple

from elasticq.checks.groups import check
from elasticq.checks.queue_history import Finding
from elasticq.client import Sqs
from tests.system.cluster.cluster import Cluster, until
from tests.system.durability.server import pause
from tests.system.groups import history
from tests.system.groups.consumer import Worker, now_us
from tests.system.groups.guard import Guard

GROUP = "soak"
CONSUMERS = 7
RESOURCES = 12


class Figures(NamedTuple):
    """What a soak found."""

    joins: int
    leaves: int
    masters_killed: int
    holds: int
    accepted: int
    refused: int
    stale: list[str]
    findings: list[Finding]

    def line(self) -> str:
        """Return it as one line."""
        return (
            f"{self.joins} joins, {self.leaves} leaves, {self.masters_killed} masters killed: {self.holds} holds, "
            f"{self.accepted} acts accepted, {self.refused} refused, {len(self.stale)} stale writes, "
            f"findings: {len(self.findings)}"
        )


class Slot:
    """A place for a consumer, which comes and goes."""

    def __init__(self, number: int) -> None:
        self.name = f"soak-{number}"
        self.logs: list[Path] = []
        self._worker: Worker | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_in(self) -> bool:
        """True while its consumer runs, or is still leaving."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def held(self) -> set[str]:
        """The names of what its consumer holds."""
        return set(self._worker.group.held) if self._worker is not None and self.is_in else set()

    def join(self, endpoints: list[str], directory: Path, guard: Guard, *, group: str, is_busy: bool = True) -> None:
        """Start a consumer, once the former one has left."""
        if self._thread is not None:
            self._thread.join()
        self.logs.append(directory / f"{self.name}-{len(self.logs)}.log")
        worker = self._worker = Worker(endpoints, group, self.name, self.logs[-1], guard)
        self._thread = threading.Thread(target=worker.run, kwargs={"is_busy": is_busy})
        self._thread.start()

    def leave(self) -> None:
        """Have the consumer leave; returns at once."""
        if self._worker is not None:
            self._worker.stop.set()

    def end(self) -> None:
        """Return when the consumer has left."""
        self.leave()
        if self._thread is not None:
            self._thread.join()


def _held_by(slots: list[Slot]) -> set[str]:
    return set().union(*(slot.held for slot in slots))


def _end(slots: list[Slot]) -> None:
    for slot in slots:
        slot.leave()
    for slot in slots:
        slot.end()


def prepare(cluster: Cluster, group: str, session_ms: int) -> tuple[list[str], set[str]]:
    """Make queues and a group of them; returns the endpoints of all members, and the queues' names."""
    endpoints = cluster.endpoints()
    names = {f"{group}-{number:02}" for number in range(RESOURCES)}
    with Sqs(endpoints[0], "us-east-1", ("x", "x")) as sqs:
        for name in names:
            sqs.create_queue(QueueName=name)
        sqs.set_group(GroupName=group, QueueNamePrefix=f"{group}-", SessionTimeoutMs=session_ms)
    return endpoints, names


def soak(
    cluster: Cluster, directory: Path, seconds: float, *, seed: int, kill_each_s: float, session_ms: int
) -> Figures:
    """Have consumers come and go for so long, kill the master every ``kill_each_s``, and judge what they noted."""
    chance = random.Random(seed)
    endpoints, names = prepare(cluster, GROUP, session_ms)
    directory.mkdir(parents=True, exist_ok=True)
    guard = Guard(directory / "guard")
    slots = [Slot(number) for number in range(CONSUMERS)]
    joins = leaves = killed = 0
    end_s = time.monotonic() + seconds
    kill_s = time.monotonic() + kill_each_s / 2
    try:
        while time.monotonic() < end_s:
            slot = chance.choice(slots)
            if slot.is_in:
                slot.leave()
                leaves += 1
            else:
                slot.join(endpoints, directory, guard, group=GROUP)
                joins += 1
            if time.monotonic() >= kill_s:
                kill_s += kill_each_s
                master = cluster.master()
                cluster[master].kill9()
                cluster[master].start()
                killed += 1
            pause(1)
        for slot in slots:
            if not slot.is_in:
                slot.join(endpoints, directory, guard, group=GROUP)
        until(lambda: _held_by(slots) == names, "all is held at the end")
    finally:
        _end(slots)
    told = history.read(history.Notes(log) for slot in slots for log in slot.logs)
    findings = check(told.events, session_ms * 1_000)
    accepted, refused = told.acts_with("ok"), told.acts_with("fail")
    return Figures(joins, leaves, killed, len(told.held), accepted, refused, guard.stale(), findings)


def leaving_takes(cluster: Cluster, directory: Path, rounds: int, session_ms: int = 10_000) -> list[float]:
    """Return how many milliseconds after a consumer left the two others held all that it had had, for each round."""
    endpoints, names = prepare(cluster, "measured", session_ms)
    directory.mkdir(parents=True, exist_ok=True)
    guard = Guard(directory / "guard")
    slots = [Slot(number) for number in range(3)]
    leaver, others = slots[0], slots[1:]
    share = RESOURCES // len(slots)
    found = []
    try:
        for slot in slots:
            slot.join(endpoints, directory, guard, group="measured", is_busy=False)
        for _ in range(rounds):
            until(lambda: all(len(slot.held) == share for slot in slots), "all is shared out evenly")
            gone = leaver.held
            at_us = now_us()
            leaver.leave()
            until(lambda: _held_by(others) == names, "the others hold all")
            told = history.read(history.Notes(slot.logs[-1]) for slot in others)
            times = [told_us for resource, told_us, _ in told.held if resource in gone and told_us >= at_us]
            found.append((max(times) - at_us) / 1_000)
            leaver.join(endpoints, directory, guard, group="measured", is_busy=False)
    finally:
        _end(slots)
    return found
