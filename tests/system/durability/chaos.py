"""Kills a server under load again and again, and judges by what the clients saw.

Clients are threads that send, receive, delete and change visibility, one
request at a time. An operation keeps its GUID over all its attempts; some
operations give up after a broken attempt (their outcome stays unknown). Choices
come from the seed; the interleaving does not, so a seed repeats a load, not a run.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from msgspec import Struct

from elasticq.checks.history import ChangeVisibility, Delete, Event, HandedOut, Receive, Send, SentMessage
from elasticq.checks.queue import check
from elasticq.checks.queue_history import Jump
from tests.system.durability.connection import Broken, Connection
from tests.system.durability.server import Server
from tests.system.durability.verdict import Judged

CLIENTS = 8
QUEUES = 2
ACKNOWLEDGED_MIN = 100  # operations between two kills
ACKNOWLEDGED_SPREAD = 200
MOMENT_S = 0.01  # the kill comes up to this long after the operation that made it due
PROGRESS_S = 60  # without an acknowledged operation for so long, the run fails
GIVE_UP = 0.15  # of the operations with a broken attempt are not tried again
HELD_MAX = 60
DRAIN_VISIBILITY_S = 120
CLOCK_BOUND_MS = 50  # a restarted node goes by its wall clock, which is slewed and rounded to ms
RETRIED = (500, 502, 503, 504)


def now_us() -> int:
    return time.monotonic_ns() // 1_000


class Plan(Struct, frozen=True, kw_only=True):
    """What to do."""

    seed: int
    kills: int
    visibility_s: tuple[int, int] = (2, 30)
    clients: int = CLIENTS


class Verdict(Judged, kw_only=True):
    """What came of it."""

    kills: int
    kills_in_flight: int
    acknowledged_between_min: int

    def line(self) -> str:
        share = self.kills_in_flight / max(1, self.kills)
        return (
            f"seed {self.seed}: {self.kills} kills, {self.kills_in_flight} with requests in flight ({share:.0%}), "
            f"{self.acknowledged} acknowledged operations, at least {self.acknowledged_between_min} between two kills; "
            f"{self.found()}"
        )


class Scene:
    """What the clients and the killer share."""

    def __init__(self, server: Server, queues: list[str], plan: Plan) -> None:
        self.server = server
        self.queues = queues
        self.plan = plan
        self.up = threading.Event()
        self.over = threading.Event()
        self.changed = threading.Condition()
        self.acknowledged = 0
        self.broken = 0  # attempts, other than empty long polls, that a kill cut off
        self.failures: list[BaseException] = []
        self.jumps: list[Jump] = []

    def acknowledge(self) -> None:
        with self.changed:
            self.acknowledged += 1
            self.changed.notify_all()

    def cut_off(self) -> None:
        with self.changed:
            self.broken += 1

    def fail(self, failure: BaseException) -> None:
        with self.changed:
            self.failures.append(failure)
            self.changed.notify_all()

    def wait_for(self, acknowledged: int) -> None:
        """Until so many operations in all were acknowledged."""
        with self.changed:
            while self.acknowledged < acknowledged:
                notified = self.changed.wait(PROGRESS_S)
                if self.failures:
                    raise self.failures[0]
                if not notified:
                    raise TimeoutError(f"no operation was acknowledged for {PROGRESS_S} s")


class Held(Struct):
    """A message in a client's hand."""

    queue: str
    message: HandedOut


class Client:
    """One thread's connection, choices, hand and history."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene = scene
        self.name = name
        self.random = Random(f"{scene.plan.seed}/{name}")
        self.connection: Connection | None = None
        self.held: list[Held] = []
        self.history: list[Event] = []
        self.numbers = 0

    def run(self) -> None:
        """Until the scene is over."""
        actions = (self.send, self.send_ten, self.receive, self.wait, self.delete, self.delete_some, self.change)
        weights = (30, 10, 20, 4, 20, 6, 10)
        try:
            while not self.scene.over.is_set():
                self.random.choices(actions, weights)[0]()
        except BaseException as failure:
            self.scene.fail(failure)
        finally:
            self.hang_up()

    def hang_up(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def number(self) -> str:
        self.numbers += 1
        return f"{self.name}-{self.numbers}"

    def common(self) -> dict[str, Any]:
        return {
            "client": self.name,
            "queue": self.random.choice(self.scene.queues),
            "invoke_us": now_us(),
            "guid": f"{self.scene.plan.seed}-{self.number()}",
        }

    # What a client does.

    def send(self) -> None:
        event = Send(**self.common(), messages=[SentMessage(body=self.body())])
        answer = self.perform(event, "SendMessage", MessageBody=event.messages[0].body)
        if event.outcome == "ok":
            event.messages[0].message_ids.append(answer["MessageId"])

    def send_ten(self) -> None:
        event = Send(**self.common(), messages=[SentMessage(body=self.body()) for _ in range(10)])
        entries = [{"Id": f"e{at}", "MessageBody": message.body} for at, message in enumerate(event.messages)]
        answer = self.perform(event, "SendMessageBatch", Entries=entries)
        for entry in answer.get("Successful", ()):
            event.messages[int(entry["Id"][1:])].message_ids.append(entry["MessageId"])

    def body(self) -> str:
        return f"{self.number()} " + "x" * self.random.choice((0, 50, 250, 2_000))

    def receive(self) -> None:
        self.take(0)

    def wait(self) -> None:
        self.take(1)

    def take(self, wait_s: int, visibility_s: int | None = None, queue: str = "") -> list[Held]:
        visibility_s = visibility_s or self.random.randint(*self.scene.plan.visibility_s)
        event = Receive(**self.common(), visibility_ms=visibility_s * 1_000)
        event.queue = queue or event.queue
        answer = self.perform(
            event,
            "ReceiveMessage",
            MaxNumberOfMessages=self.random.randint(1, 10) if not queue else 10,
            VisibilityTimeout=visibility_s,
            WaitTimeSeconds=wait_s,
        )
        event.messages = [
            HandedOut(message["MessageId"], message["ReceiptHandle"], message["Body"])
            for message in answer.get("Messages") or ()
        ]
        taken = [Held(event.queue, message) for message in event.messages]
        if not queue:
            self.held = (self.held + taken)[-HELD_MAX:]
        return taken

    def delete(self) -> None:
        if not self.held:
            return self.receive()
        held = self.drop()
        event = Delete(
            **self.common() | {"queue": held.queue},
            message_id=held.message.message_id,
            receipt_handle=held.message.receipt_handle,
        )
        self.perform(event, "DeleteMessage", ReceiptHandle=event.receipt_handle)
        return None

    def delete_some(self) -> None:
        if not self.held:
            return self.receive()
        queue = self.held[-1].queue
        some = [held for held in self.held if held.queue == queue][: self.random.randint(1, 10)]
        self.held = [held for held in self.held if held not in some]
        return self.delete_all(some)

    def drain(self, queues: Iterable[str], is_empty: Callable[[str], bool], patience_us: int) -> None:
        """Receive and delete until all queues are empty, then hang up. Raises TimeoutError where one never gets so."""
        try:
            for queue in queues:
                moved_us = now_us()
                while (taken := self.take(1, DRAIN_VISIBILITY_S, queue)) or not is_empty(queue):
                    if taken:
                        self.delete_all(taken)
                        moved_us = now_us()
                    if now_us() - moved_us > patience_us:
                        raise TimeoutError(f"{queue} neither gives a message nor gets empty")
        finally:
            self.hang_up()

    def delete_all(self, some: list[Held]) -> None:
        """A batch of one queue is an event for each message."""
        common = self.common() | {"queue": some[0].queue}
        handles = [held.message.receipt_handle for held in some]
        events = [
            Delete(**common, message_id=held.message.message_id, receipt_handle=held.message.receipt_handle)
            for held in some
        ]
        entries = [{"Id": f"e{at}", "ReceiptHandle": handle} for at, handle in enumerate(handles)]
        answer = self.perform(events[0], "DeleteMessageBatch", Entries=entries)
        done = {int(entry["Id"][1:]) for entry in answer.get("Successful", ())}
        common_outcome, complete_us = events[0].outcome, events[0].complete_us
        for at, event in enumerate(events):
            event.complete_us = complete_us
            event.outcome = common_outcome if common_outcome != "ok" or at in done else "fail"
        self.history += events[1:]

    def change(self) -> None:
        if not self.held:
            return self.receive()
        held = self.random.choice(self.held)
        visibility_s = self.random.choice((0, *self.scene.plan.visibility_s))
        event = ChangeVisibility(
            **self.common() | {"queue": held.queue},
            message_id=held.message.message_id,
            receipt_handle=held.message.receipt_handle,
            visibility_ms=visibility_s * 1_000,
        )
        handle = event.receipt_handle
        self.perform(event, "ChangeMessageVisibility", ReceiptHandle=handle, VisibilityTimeout=visibility_s)
        return None

    def drop(self) -> Held:
        return self.held.pop(self.random.randrange(len(self.held)))

    # How it is done.

    def perform(self, event: Event, action: str, **parameters: Any) -> dict[str, Any]:
        """All attempts of one operation; fills the event's outcome. The answer is empty unless that is ok."""
        self.history.append(event)
        parameters["QueueUrl"] = event.queue
        attempts = 0
        while attempts == 0 or self.random.random() > GIVE_UP:
            attempts += 1
            try:
                status, body = self.attempt(action, parameters, event.guid)
            except Broken:
                if not parameters.get("WaitTimeSeconds"):
                    self.scene.cut_off()
                self.hang_up()
                continue
            event.complete_us = now_us()
            if status == 200:
                event.outcome = "ok"
                self.scene.acknowledge()
                return dict(json.loads(body or b"{}"))
            if status not in RETRIED:
                # A refused repetition says nothing about the attempts before it.
                event.outcome = "fail" if attempts == 1 else "unknown"
                return {}
        return {}

    def attempt(self, action: str, parameters: dict[str, Any], guid: str) -> tuple[int, bytes]:
        if self.connection is None:
            if not self.scene.up.wait(PROGRESS_S):
                raise TimeoutError(f"the server was not up again for {PROGRESS_S} s")
            self.connection = self.scene.server.connect()
        return self.connection.call(action, parameters, guid)


def run(server: Server, plan: Plan) -> Verdict:
    """Start, load, kill ``plan.kills`` times, drain, judge."""
    server.start()
    try:
        queues = [server.create(f"chaos-{number}") for number in range(QUEUES)]
        scene = Scene(server, queues, plan)
        clients = [Client(scene, f"client{number}") for number in range(plan.clients)]
        in_flight, between = _load(scene, clients)
        drain_us = now_us()
        _drain(scene, clients)
    finally:
        server.kill()
    history = [event for client in clients for event in client.history]
    return Verdict(
        seed=plan.seed,
        kills=plan.kills,
        kills_in_flight=in_flight,
        acknowledged=scene.acknowledged,
        acknowledged_between_min=min(between, default=0),
        findings=check(history, jumps=scene.jumps, drain_us=drain_us),
        history=history,
    )


def _load(scene: Scene, clients: list[Client]) -> tuple[int, list[int]]:
    """The kills with requests in flight, and the acknowledged operations before each kill."""
    threads = [threading.Thread(target=client.run, name=client.name) for client in clients]
    scene.up.set()
    for thread in threads:
        thread.start()
    try:
        return _kill_again_and_again(scene)
    finally:
        scene.over.set()
        scene.up.set()
        for thread in threads:
            thread.join()
        if scene.failures:
            raise scene.failures[0]


def _kill_again_and_again(scene: Scene) -> tuple[int, list[int]]:
    random = Random(scene.plan.seed)
    in_flight, between = 0, []
    for _ in range(scene.plan.kills):
        before, broken_before = scene.acknowledged, scene.broken
        scene.wait_for(before + ACKNOWLEDGED_MIN + random.randrange(ACKNOWLEDGED_SPREAD))
        scene.over.wait(random.uniform(0, MOMENT_S))
        scene.up.clear()
        between.append(scene.acknowledged - before)
        scene.server.kill()
        scene.jumps.append(Jump(now_us(), CLOCK_BOUND_MS))
        scene.server.start()
        in_flight += scene.broken > broken_before
        scene.up.set()
    scene.wait_for(scene.acknowledged + ACKNOWLEDGED_MIN)
    return in_flight, between


def _drain(scene: Scene, clients: list[Client]) -> None:
    """Receive and delete until nothing is there, not even in flight."""
    threads = [threading.Thread(target=_drain_by, args=(scene, client)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if scene.failures:
        raise scene.failures[0]


def _drain_by(scene: Scene, client: Client) -> None:
    patience_us = (scene.plan.visibility_s[1] + PROGRESS_S) * 1_000_000
    try:
        client.drain(scene.queues, lambda queue: is_empty(scene.server, queue), patience_us)
    except BaseException as failure:
        scene.fail(failure)


def is_empty(server: Server, queue: str) -> bool:
    answer = server.call("GetQueueAttributes", QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    return not any(int(value) for name, value in answer.items() if name.startswith("ApproximateNumberOfMessages"))


def actions(history: list[Event]) -> Counter[str]:
    """How often each kind of operation came to each outcome."""
    return Counter(f"{type(event).__name__} {event.outcome}" for event in history)
