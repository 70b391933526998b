"""A consumer that notes what it believed to hold and what it did, in a process of its own or in a thread.

It checks that it holds a resource, works for a while, and then writes to the guarded file without checking again: what
comes between is where pauses do harm. It claims a resource by a first write before it says that it holds it.
"""

import argparse
import itertools
import json
import os
import signal
import sys
import threading
from pathlib import Path
from time import monotonic_ns
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from elasticq.client import Group, Held, SqsError, Unreachable
from elasticq.client.fencing import is_not_holder
from tests.system.durability.server import pause
from tests.system.groups.guard import Guard

WORK_S = 0.02
IDLE_S = 0.01
RECEIVE_EVERY = 5


def now_us() -> int:
    """Return the time of the clock that all processes of this machine share."""
    return monotonic_ns() // 1_000


class Worker:
    """One consumer, whose notes are lines of JSON in ``log``."""

    def __init__(self, endpoints: list[str], group: str, name: str, log: Path, guard: Guard) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._guard = guard
        self._consumers: dict[int, str] = {}
        self._noted: tuple[str, int] = ("", 0)
        self._turns = itertools.count()
        self.stop = threading.Event()
        self.group = Group(
            endpoints[0],
            group,
            on_assigned=self._assigned,
            on_revoked=self._revoked,
            consumer_name=name,
            endpoints=endpoints[1:],
        )

    def run(self, *, is_busy: bool = True) -> None:
        """Consume until ``stop`` is set, then leave."""
        with self.group:
            while not self.stop.is_set():
                self._note_hold()
                for held in list(self.group.held.values()) if is_busy else ():
                    if held.is_held() and not self.stop.is_set():
                        pause(WORK_S)
                        self._act(held)
                if is_busy:
                    pause(IDLE_S)
                else:
                    self.stop.wait(0.2)
            self._note(leaving=now_us())
        self._note(left=now_us())
        os.close(self._log)

    def _act(self, held: Held) -> None:
        invoke_us = now_us()
        if next(self._turns) % RECEIVE_EVERY:
            is_taken = self._guard.write(held.resource, held.token, self._consumers[held.token])
            self._note_act(held, invoke_us, "ok" if is_taken else "fail", "write")
            return
        try:
            held.client.receive_message(WaitTimeSeconds=0)
        except (SqsError, Unreachable) as failure:
            self._note_act(held, invoke_us, "fail" if is_not_holder(failure) else "unknown", "receive")
        else:
            self._note_act(held, invoke_us, "ok", "receive")

    def _note_act(self, held: Held, invoke_us: int, outcome: str, kind: str) -> None:
        times = {"invoke_us": invoke_us, "complete_us": now_us()}
        self._note(act=[self._consumers[held.token], held.resource, held.token], outcome=outcome, kind=kind, **times)

    def _assigned(self, held: Held) -> None:
        told_us, consumer = now_us(), self.group.consumer_id
        self._consumers[held.token] = consumer
        self._guard.write(held.resource, held.token, "claim")
        self._note_hold()
        if held.is_held() and self.group.consumer_id == consumer:  # else it was another session's, and is over
            self._note(held=[consumer, held.resource, held.token], told_us=told_us, from_us=now_us())

    def _revoked(self, held: Held) -> None:
        self._note(stopped=held.token, at_us=now_us())

    def _note_hold(self) -> None:
        """Note how long the consumer may act without a further answer, if that has changed."""
        consumer, until_us = self.group.consumer_id, int(self.group.hold_until_s * 1_000_000)
        if consumer != self._noted[0] or abs(until_us - self._noted[1]) > 1_000:  # less is how two clocks are read
            self._noted = consumer, until_us
            self._note(consumer=consumer, hold_until_us=until_us)

    def _note(self, **event: Any) -> None:
        os.write(self._log, json.dumps(event).encode() + b"\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--guard", type=Path, required=True)
    options = parser.parse_args()
    endpoints = options.endpoints.split(",")
    worker = Worker(endpoints, options.group, options.name, options.log, Guard(options.guard))
    signal.signal(signal.SIGTERM, lambda *_: worker.stop.set())
    worker.run()


if __name__ == "__main__":
    main()
