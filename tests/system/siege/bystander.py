"""A client that does nothing extreme while others do: it sends, receives and deletes a message at each member.

python -m tests.system.siege.bystander CONFIG runs until its standard input is closed. Then it empties its queue and
prints one JSON object: how long its slow calls took, and what was lost or came twice.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from elasticq.checks.history import Delete, Event, HandedOut, Receive, Send, SentMessage
from elasticq.checks.queue import check
from tests.system.siege.client import Connection, Keys, call

EACH_S: Final = 0.05
SLOW_S: Final = 0.1
"""Calls that take longer are reported one by one."""
AGAIN_S: Final = 0.02
GIVE_UP_S: Final = 60.0
VISIBILITY_S: Final = 30
DRAIN_S: Final = 2.0 * VISIBILITY_S
QUEUE: Final = "bystander"


class Config(Struct):
    """ports: of the members' SQS, by name; account and secrets: see client.Keys."""

    ports: dict[str, int]
    account: str
    secrets: dict[str, str]
    run: str


class Slow(Struct):
    """A call that took longer than SLOW_S, in monotonic seconds."""

    member: str
    action: str
    began_s: float
    took_s: float


class Report(Struct):
    """calls: that were answered; repeated: attempts that were answered 5xx or not at all; findings: broken rules."""

    calls: int
    repeated: int
    slow: list[Slow]
    findings: list[str]


class Cycle:
    """The thread for one member."""

    def __init__(self, config: Config, member: str) -> None:
        self.config, self.member = config, member
        self.connection = Connection(config.ports[member], Keys(config.secrets, ""))
        self.history: list[Event] = []
        self.slow: list[Slow] = []
        self.findings: list[str] = []
        self.calls = self.repeated = self._number = 0

    def run(self, over: threading.Event) -> None:
        next_s = time.monotonic()
        while not over.is_set():
            self.send()
            self.take()
            next_s = max(next_s + EACH_S, time.monotonic())
            over.wait(next_s - time.monotonic())

    def send(self) -> None:
        event = Send(**self._common(), messages=[SentMessage(body=f"{self.member}-{self._number}")])
        answer = self._perform(event, "SendMessage", MessageBody=event.messages[0].body)
        if event.outcome == "ok":
            event.messages[0].message_ids.append(answer["MessageId"])

    def take(self) -> int:
        """Receive messages and delete them; return how many came."""
        event = Receive(**self._common(), visibility_ms=VISIBILITY_S * 1_000)
        answer = self._perform(event, "ReceiveMessage", MaxNumberOfMessages=10, VisibilityTimeout=VISIBILITY_S)
        event.messages = [
            HandedOut(each["MessageId"], each["ReceiptHandle"], each["Body"]) for each in answer.get("Messages", ())
        ]
        for each in event.messages:
            delete = Delete(**self._common(), message_id=each.message_id, receipt_handle=each.receipt_handle)
            self._perform(delete, "DeleteMessage", ReceiptHandle=each.receipt_handle)
        return len(event.messages)

    def drain(self) -> None:
        """Take messages until the queue is empty."""
        until_s = time.monotonic() + DRAIN_S
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        while time.monotonic() < until_s:
            if not self.take():
                answer = call(
                    self.connection, self.config.account, "GetQueueAttributes", QueueUrl=QUEUE, AttributeNames=names
                )
                counts = json.loads(answer.body)["Attributes"] if answer.status == 200 else {"": "1"}
                if not any(map(int, counts.values())):
                    return
                time.sleep(AGAIN_S)
        self.findings.append(f"the queue was not empty after {DRAIN_S:g} s")

    def _common(self) -> dict[str, Any]:
        self._number += 1
        guid = f"{self.config.run}-{self.member}-{self._number}"
        return {"client": self.member, "queue": QUEUE, "invoke_us": time.monotonic_ns() // 1_000, "guid": guid}

    def _perform(self, event: Send | Receive | Delete, action: str, **members: Any) -> dict[str, Any]:
        """Repeat a call until it is answered by something other than 5xx; its time is that of all attempts."""
        began_s = time.monotonic()
        while True:
            answer = call(self.connection, self.config.account, action, event.guid, QueueUrl=QUEUE, **members)
            ended_s = time.monotonic()
            if 0 < answer.status < 500 or ended_s - began_s > GIVE_UP_S:
                break
            self.repeated += 1
            time.sleep(AGAIN_S)
            if isinstance(event, Receive):
                event.attempted_us = time.monotonic_ns() // 1_000
        self.calls += 1
        if ended_s - began_s > SLOW_S:
            self.slow.append(Slow(self.member, action, began_s, ended_s - began_s))
        self.history.append(event)
        if answer.status == 200:
            event.outcome, event.complete_us = "ok", time.monotonic_ns() // 1_000
            return dict(json.loads(answer.body or b"{}"))
        if 0 < answer.status < 500:
            self.findings.append(f"{action} at {self.member}: {answer.status} {answer.body[:200]!r}")
        return {}


def report(cycles: list[Cycle], drain_us: int) -> Report:
    """Judge the history of all members' cycles."""
    history = [event for cycle in cycles for event in cycle.history]
    found = [f"{finding.name}: {finding.evidence}" for finding in check(history, drain_us=drain_us)]
    found += [finding for cycle in cycles for finding in cycle.findings]
    slow = [each for cycle in cycles for each in cycle.slow]
    return Report(sum(each.calls for each in cycles), sum(each.repeated for each in cycles), slow, found)


def main() -> None:
    config = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Config)
    cycles = [Cycle(config, member) for member in config.ports]
    while call(cycles[0].connection, config.account, "CreateQueue", QueueName=QUEUE).status != 200:
        time.sleep(AGAIN_S)
    over = threading.Event()
    threads = [threading.Thread(target=cycle.run, args=(over,)) for cycle in cycles]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join()
    drain_us = time.monotonic_ns() // 1_000
    cycles[0].drain()
    print(msgspec.json.encode(report(cycles, drain_us)).decode())


if __name__ == "__main__":
    main()
