"""Clients on all members of a cluster while faults happen, what they saw, and the longest time without a write.

The clients are those of tests.system.durability.chaos (one thread, one request at a time, choices by seed). Each
has a home member; when that answers 5xx, breaks off or is silent it asks the next one, with the same
invocation id, so a repetition is exact. An operation that finds nobody for GIVE_UP_S stays unknown. A few
more clients are boto3 with its own settings: its retries, its exceptions.
"""

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from elasticq.checks.history import Event
from elasticq.checks.queue import check
from tests.system.cluster.cluster import Cluster, Member, until
from tests.system.durability.chaos import RETRIED, Client, Plan, now_us
from tests.system.durability.connection import Broken, Connection
from tests.system.durability.server import pause
from tests.system.durability.verdict import Judged

ANSWER_S = 5  # a member waits up to 3 s for a master before it refuses a read
GIVE_UP_S = 30
PAUSE_S = (0.02, 0.2)  # between two attempts: first and longest
PACE_S = 0.03  # between two operations of a client; with eight about 200 operations a second
HOME_AGAIN_S = 2
PROGRESS_S = 60
WRITES = ("SendMessage", "SendMessageBatch", "DeleteMessage", "DeleteMessageBatch", "ChangeMessageVisibility")


class Brief(Connection):
    """Gives up on a member that is silent (paused, cut off) as an SDK does, only sooner."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._socket.settimeout(ANSWER_S)


class Acknowledged(Struct, frozen=True):
    """A write was answered with 200. ``began_us``: of the attempt that was."""

    at_us: int
    began_us: int
    member: str
    action: str


class Verdict(Judged, kw_only=True):
    """What came of it. ``exceptions``: of boto3, by their text."""

    refused: int
    broken: int
    exceptions: list[str]

    def line(self) -> str:
        return (
            f"seed {self.seed}: {self.acknowledged} acknowledged operations, {self.refused} attempts refused, "
            f"{self.broken} broken, {len(self.exceptions)} boto3 exceptions; {self.found()}"
        )


class Load:
    """Started once, judged once; a context manager, so that its threads end with the test."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        seed: int = 1,
        clients: int = 8,
        boto3_clients: int = 1,
        queues: int = 2,
        visibility_s: tuple[int, int] = (1, 2),  # short, as the drain has to wait for the last of them
        pace_s: float = PACE_S,
    ) -> None:
        self.cluster = cluster
        self.plan = Plan(seed=seed, kills=0, visibility_s=visibility_s, clients=clients)
        self.pace_s = pace_s
        names = cluster.names()
        self.queues = [self._create(f"load-{seed}-{number}") for number in range(queues)]
        self.over = threading.Event()
        self.is_abandoned = False
        self.changed = threading.Condition()
        self.acknowledged = 0
        self.refused = 0
        self.broken = 0
        self.failures: list[BaseException] = []
        self.exceptions: list[str] = []
        self.writes: list[Acknowledged] = []
        self.clients: list[Client] = [
            Roamer(self, f"client{number}", names[number % len(names)]) for number in range(clients)
        ]
        self.clients += [
            Boto3(self, f"boto{number}", names[-1 - number % len(names)]) for number in range(boto3_clients)
        ]
        self._threads: list[threading.Thread] = []

    def _create(self, name: str) -> str:
        """A fresh cluster may change its mind about its master; creating is idempotent."""

        def created() -> Any:
            reply = self.cluster.running()[0].ask("CreateQueue", QueueName=name)
            return reply.body["QueueUrl"] if reply.status == 200 else ""

        return str(until(created, f"queue {name} is created"))

    # Running.

    def __enter__(self) -> "Load":
        # Daemons: a failed test does not wait for a client that waits for a member.
        self._threads = [threading.Thread(target=each.run, name=each.name, daemon=True) for each in self.clients]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.stop()
        else:
            self.over.set()
            self.is_abandoned = True

    def stop(self) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def note(self, action: str, member: str, began_us: int) -> None:
        with self.changed:
            self.acknowledged += 1
            if action in WRITES:
                self.writes.append(Acknowledged(now_us(), began_us, member, action))
            self.changed.notify_all()

    def note_failed(self, *, refused: int = 0, broken: int = 0) -> None:
        with self.changed:
            self.refused += refused
            self.broken += broken

    def fail(self, failure: BaseException) -> None:
        with self.changed:
            self.failures.append(failure)
            self.changed.notify_all()

    # What chaos.Client asks of its scene.

    def acknowledge(self) -> None:
        """Counted where the member is known: see ``note``."""

    def cut_off(self) -> None:
        self.note_failed(broken=1)

    # Waiting.

    def wait_for(self, more: int, *, since_us: int = 0, by: str = "", patience_s: float = PROGRESS_S) -> None:
        """Until so many writes that began after ``since_us`` (now) were acknowledged, all ``by`` that member if named.

        Writes begun before an event may be acknowledged after it by an answer that was on its way.
        """
        since_us = since_us or now_us()

        def enough() -> bool:
            if self.failures:
                raise self.failures[0]
            return len(self.after(since_us, by)) >= more

        until(enough, f"{more} acknowledged writes {by and 'by ' + by}; {self.cluster.tell()}", patience_s)

    def after(self, since_us: int, by: str = "") -> list[Acknowledged]:
        """Writes that began after ``since_us``, in the order of their answers."""
        with self.changed:
            writes = list(reversed(self.writes))
        found = []
        for write in writes:
            if write.at_us < since_us:
                break
            if write.began_us >= since_us and by in ("", write.member):
                found.append(write)
        return found[::-1]

    # Figures.

    def gap_ms(self, since_us: int, until_us: int = 0) -> float:
        """The longest time without an acknowledged write that touches the span from ``since_us`` (to now)."""
        until_us = until_us or now_us()
        with self.changed:
            times = sorted(write.at_us for write in self.writes if write.at_us <= until_us)
        before = [time for time in times if time <= since_us][-1:]
        inside = [*before, *(time for time in times if time > since_us), until_us]
        return max((b - a for a, b in itertools.pairwise(inside)), default=0) / 1_000

    def p99_ms(self, since_us: int = 0, until_us: int = 0) -> float:
        """Of the answered attempts of sends."""
        until_us = until_us or now_us()
        with self.changed:
            took = sorted(
                write.at_us - write.began_us
                for write in self.writes
                if write.action.startswith("Send") and since_us <= write.at_us <= until_us
            )
        return took[int(0.99 * (len(took) - 1))] / 1_000 if took else 0.0

    # Judging.

    def judge(self) -> Verdict:
        """Stop, receive and delete until nothing is there, compare. Every member that shall answer is up by now."""
        self.stop()
        self.raise_failure()
        self.cluster.wait_ready()
        drain_us = now_us()
        self._drain()
        self.raise_failure()
        history = [event for client in self.clients for event in client.history]
        return Verdict(
            seed=self.plan.seed,
            acknowledged=self.acknowledged,
            refused=self.refused,
            broken=self.broken,
            exceptions=self.exceptions,
            findings=check(history, jumps=self.cluster.jumps, drift=self.cluster.drift, drain_us=drain_us),
            history=history,
        )

    def assert_clean(self) -> Verdict:
        """Nothing lost, doubled, back from the dead, early or unknown; the evidence is kept beside the logs."""
        verdict = self.judge()
        print(verdict.line())
        if verdict.findings:
            verdict.keep(self.cluster.directory / "history.jsonl")
        assert verdict.findings == [], verdict.evidence()
        return verdict

    def raise_failure(self) -> None:
        if self.failures:
            raise self.failures[0]

    def _drain(self) -> None:
        roamers = [client for client in self.clients if isinstance(client, Roamer)]
        threads = [threading.Thread(target=self._drain_by, args=(client,)) for client in roamers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _drain_by(self, client: "Roamer") -> None:
        try:
            client.drain(self.queues, self.is_empty, (self.plan.visibility_s[1] + PROGRESS_S) * 1_000_000)
        except BaseException as failure:
            self.fail(failure)

    def is_empty(self, queue: str) -> bool:
        """By a member that knows: a stale answer is none."""
        for member in self.cluster.running():
            try:
                reply = member.ask("GetQueueAttributes", QueueUrl=queue, AttributeNames=["All"])
            except OSError:
                continue
            if reply.status == 200 and "x-elasticq-stale" not in reply.headers:
                counts = reply.body["Attributes"].items()
                return not any(int(value) for name, value in counts if name.startswith("ApproximateNumberOfMessages"))
        return False


class Roamer(Client):
    """Asks its home member, and the others when that does not serve."""

    def __init__(self, load: Load, name: str, home: str) -> None:
        super().__init__(load, name)  # type: ignore[arg-type]
        self.load = load
        self.home = self.where = home
        self.away_since_us = 0

    def common(self) -> dict[str, Any]:
        """Each operation begins with it, so the pace is kept here."""
        self.load.over.wait(self.load.pace_s)
        return super().common()

    def perform(self, event: Event, action: str, **parameters: Any) -> dict[str, Any]:
        self.history.append(event)
        parameters["QueueUrl"] = event.queue
        attempts = 0
        for _ in self.attempts():
            attempts += 1
            began_us = now_us()
            try:
                status, body = self.attempt(action, parameters, event.guid)
            except Broken:
                self.load.note_failed(broken=1)
                self.move()
                continue
            event.complete_us = now_us()
            if status == 200:
                event.outcome = "ok"
                self.load.note(action, self.where, began_us)
                return dict(json.loads(body or b"{}"))
            if status not in RETRIED:
                # A refused repetition says nothing about the attempts before it.
                event.outcome = "fail" if attempts == 1 else "unknown"
                return {}
            self.load.note_failed(refused=1)
            self.move()
        return {}

    def attempts(self) -> Iterator[None]:
        """One for each try; pauses between them, and ends when nobody served for long."""
        until_us = now_us() + GIVE_UP_S * 1_000_000
        pause_s, longest_s = PAUSE_S
        while True:
            yield
            if now_us() > until_us or self.load.is_abandoned:
                return
            pause(pause_s * self.random.uniform(0.5, 1))
            pause_s = min(longest_s, pause_s * 2)

    def attempt(self, action: str, parameters: dict[str, Any], guid: str) -> tuple[int, bytes]:
        if self.where != self.home and now_us() - self.away_since_us > HOME_AGAIN_S * 1_000_000:
            self.hang_up()
            self.where = self.home
        if self.connection is None:
            member = self.load.cluster.members.get(self.where)
            if member is None:
                raise Broken(f"{self.where} has left")
            self.connection = Brief(member.port)
        return self.connection.call(action, parameters, guid)

    def move(self) -> None:
        """To the next member, alive or not: a client does not know."""
        self.hang_up()
        names = self.load.cluster.names()
        if self.home not in names:
            self.home = names[0]
        at = names.index(self.where) if self.where in names else -1
        self.where = names[(at + 1) % len(names)]
        self.away_since_us = now_us()


class Boto3(Client):
    """The SDK with its own settings, on one member: sends, receives and deletes; its exceptions are counted."""

    def __init__(self, load: Load, name: str, home: str) -> None:
        super().__init__(load, name)  # type: ignore[arg-type]
        self.load = load
        self.member: Member = load.cluster[home]
        self.sdk: Any = None

    def run(self) -> None:
        self.sdk = self.member.boto3()
        with closing(self.sdk):
            super().run()

    def common(self) -> dict[str, Any]:
        self.load.over.wait(self.load.pace_s)
        return super().common()

    def perform(self, event: Event, action: str, **parameters: Any) -> dict[str, Any]:
        self.history.append(event)
        method = "".join("_" + letter.lower() if letter.isupper() else letter for letter in action)[1:]
        began_us = now_us()
        try:
            answer = getattr(self.sdk, method)(QueueUrl=event.queue, **parameters)
        except (BotoCoreError, ClientError) as error:
            with self.load.changed:
                self.load.exceptions.append(str(error))
            return {}
        event.complete_us, event.outcome = now_us(), "ok"
        self.load.note(action, self.member.name, began_us)
        return dict(answer)


def fill(cluster: Cluster, url: str, messages: int, *, threads: int = 6, body: str = "x" * 100) -> None:
    """That many messages, in tens, through all members. They are in no history: bodies are ``fill-...``."""
    failures: list[BaseException] = []

    def send(number: int) -> None:
        member = cluster.running()[number % len(cluster.running())]
        try:
            with closing(member.connect()) as connection:
                for first in range(number * 10, messages, threads * 10):
                    ids = range(first, min(first + 10, messages))
                    entries = [{"Id": str(at), "MessageBody": f"fill-{at} {body}"} for at in ids]
                    answer = connection.call("SendMessageBatch", {"QueueUrl": url, "Entries": entries}, f"fill-{first}")
                    assert answer.status == 200, answer
        except BaseException as failure:
            failures.append(failure)

    workers = [threading.Thread(target=send, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
