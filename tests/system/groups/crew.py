"""Consumers that are real processes, which are paused, killed and told to leave; none outlives its test."""

import heapq
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from elasticq.checks.group_history import Held, Rest
from elasticq.checks.groups import check
from elasticq.checks.queue_history import Finding
from elasticq.client import Sqs
from tests.system.cluster.cluster import ROOT, until
from tests.system.durability.server import pause
from tests.system.groups import consumer, history
from tests.system.groups.guard import Guard

GROUP = "crew"
SESSION_MS = 2_000
PAUSES_S = ((0.05, 0.3), (1.0, 1.6), (2.2, 3.5))
"""Shorter than anything; around the end of the hold; longer than the session."""
BETWEEN_S = (0.2, 1.0)


class Verdict(NamedTuple):
    """refused: acts of consumers that had lost their resource and did not know it."""

    findings: list[Finding]
    stale: list[str]
    pauses: int
    kills: int
    accepted: int
    refused: int

    def line(self) -> str:
        """Return it as one line."""
        return (
            f"{self.pauses} pauses, {self.kills} kills: {len(self.stale)} stale writes accepted; "
            f"{self.accepted} acts accepted, {self.refused} refused; findings: {len(self.findings)}"
        )


class Crew:
    """The consumers of one group."""

    def __init__(self, directory: Path, endpoints: list[str], resources: int = 6) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.endpoints = endpoints
        self.guard = Guard(directory / "guard")
        self.sqs = Sqs(endpoints[0], "us-east-1", ("x", "x"))
        self.resources = [f"crew-{number}" for number in range(resources)]
        for name in self.resources:
            self.sqs.create_queue(QueueName=name)
        self.sqs.set_group(GroupName=GROUP, QueueNames=self.resources, SessionTimeoutMs=SESSION_MS)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.notes: dict[Path, history.Notes] = {}
        self._logs: dict[str, Path] = {}

    def start(self, name: str) -> None:
        """Start one; returns at once."""
        log = self._logs[name] = self.directory / f"{name}-{len(self.notes)}.log"
        self.notes[log] = history.Notes(log)
        command = [sys.executable, "-m", consumer.__name__, "--endpoints", ",".join(self.endpoints), "--group", GROUP]
        command += ["--name", name, "--log", str(log), "--guard", str(self.directory / "guard")]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
        with (self.directory / f"{name}.err").open("ab") as said:
            self.processes[name] = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=said)

    def kill9(self, name: str) -> int:
        """Kill one, and return when that was, in microseconds of the clock that all share."""
        process, log = self.processes.pop(name), self._logs[name]
        process.kill()
        process.wait()
        at_us = consumer.now_us()
        self.notes[log] = history.Notes(log, at_us)
        return at_us

    def leave(self, name: str) -> None:
        """Let one end by itself."""
        process = self.processes.pop(name)
        process.terminate()
        assert process.wait(60) == 0, (self.directory / f"{name}.err").read_text()

    def end(self) -> None:
        """Kill those that are left."""
        for name in list(self.processes):
            self.kill9(name)
        self.sqs.close()

    def described(self) -> dict[str, Any]:
        """Return the group as the server tells of it."""
        return dict(self.sqs.describe_groups(GroupNames=[GROUP])["Groups"][0])

    def is_even(self) -> bool:
        """Return whether all is held, evenly, by those that run."""
        group = self.described()
        holders = [each.get("ConsumerId") for each in group["Resources"] if each["State"] == "held"]
        counts = [holders.count(each["ConsumerId"]) for each in group["Consumers"]]
        is_whole = len(holders) == len(self.resources) and len(counts) == len(self.processes)
        return is_whole and max(counts) - min(counts) <= 1

    def settle(self) -> None:
        """Wait until all is even, and the consumers know what the server tells, which is a little earlier."""
        until(self.is_even, "all is held, evenly")
        until(lambda: self._noted() >= self._tokens(), "consumers hold what the server tells")

    def torment(self, pauses: int, seed: int, kill_each: int = 20) -> tuple[int, int]:
        """Pause and kill those that run, each by itself; returns how many pauses and kills there were."""
        chance, done, kills = random.Random(seed), 0, 0
        plan = [(time.monotonic() + chance.uniform(*BETWEEN_S), name, False) for name in sorted(self.processes)]
        heapq.heapify(plan)
        while plan:
            at_s, name, is_paused = heapq.heappop(plan)
            while (left_s := at_s - time.monotonic()) > 0:
                pause(min(left_s, 0.05))
            if is_paused:
                self.processes[name].send_signal(signal.SIGCONT)
            elif done < pauses:
                done += 1
                if done % kill_each == 0:
                    self.kill9(name)
                    self.start(name)
                    kills += 1
                else:
                    self.processes[name].send_signal(signal.SIGSTOP)
                    is_long = chance.uniform(*chance.choice(PAUSES_S))
                    heapq.heappush(plan, (time.monotonic() + is_long, name, True))
                    continue
            else:
                continue
            heapq.heappush(plan, (time.monotonic() + chance.uniform(*BETWEEN_S), name, False))
        return done - kills, kills

    def judged(self, pauses: int, kills: int) -> Verdict:
        """Wait until all is even, let everybody leave, and judge what was noted."""
        self.settle()
        group = self.described()
        rest = Rest(
            consumer.now_us(), {each["ConsumerId"]: each["Weight"] for each in group["Consumers"]}, self.resources
        )
        for name in list(self.processes):
            self.leave(name)
        told = history.read(self.notes.values())
        findings = check(told.events, SESSION_MS * 1_000, rest=rest)
        return Verdict(findings, self.guard.stale(), pauses, kills, told.acts_with("ok"), told.acts_with("fail"))

    def killing_takes(self) -> float:
        """Kill one; return how many milliseconds later others held all that it had, and start it anew."""
        self.settle()
        name = min(self.processes)
        log = self._logs[name]
        at_us = self.kill9(name)
        last = history.read([self.notes[log]]).events
        mine = {event.resource for event in last if isinstance(event, Held) and event.until_us == at_us}
        assert mine, f"{name} held nothing"
        until(lambda: mine <= {event.resource for event in self._held() if event.from_us > at_us}, "others hold all")
        times = [
            min(event.from_us for event in self._held() if event.resource == each and event.from_us > at_us)
            for each in mine
        ]
        self.start(name)
        return (max(times) - at_us) / 1_000

    def _held(self) -> list[Held]:
        """Return all that was ever held, as the consumers noted it by now."""
        return [event for event in history.read(self.notes.values()).events if isinstance(event, Held)]

    def _tokens(self) -> set[int]:
        return {each["Token"] for each in self.described()["Resources"]}

    def _noted(self) -> set[int]:
        return {event.token for event in self._held()}
