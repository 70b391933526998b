"""Programs with a plain boto3 client at its defaults, through one member: what they see of faults elsewhere.

Producers send numbered messages, consumers receive and delete; nothing of elasticq is in them, and exceptions are
caught to be counted only. ``judge`` receives what is left and counts what was lost, what came back after its delete,
what was sent twice, as one body under two MessageIds, and what came out of order in a group of a FIFO queue.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self

from tests.system.cluster.cluster import PATIENCE_S, Cluster, until

PRODUCERS, CONSUMERS = 3, 2
PAUSE_S = 0.01
MESSAGES_A_CALL = (4 * 1 + 1 * 3) / 5  # every fifth send is a batch
VISIBILITY_S = 30


class Target(Protocol):
    """Where the programs connect to."""

    def boto3(self) -> Any:
        """An SDK client with the SDK's own settings."""

    def call(self, action: str, **parameters: Any) -> dict[str, Any]:
        """One call that has to succeed."""


class Answered(NamedTuple):
    """A call; ``ended_s`` is monotonic."""

    ended_s: float
    took_s: float
    action: str


class Verdict(NamedTuple):
    """How many; the lists name bodies."""

    calls: int
    sent: int
    exceptions: int
    lost: list[str]
    twice: list[str]
    back: list[str]
    disordered: list[str]

    @property
    def is_unnoticed(self) -> bool:
        return not (self.exceptions or self.lost or self.twice or self.back or self.disordered)

    def assert_unnoticed(self) -> None:
        assert self.is_unnoticed, self


class Threads:
    """Programs that run beside a test: ``_threads`` begin with the context, and end after ``over`` was set."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()


class Plain(Threads):
    """``exceptions`` by action and error; ``calls``: those that were answered.

    producers, consumers: threads, each of which has one call under way at a time.
    groups: of a FIFO queue, shared out to the producers; 0: a standard queue.
    rate_per_s: of messages sent, held also where calls take long, as producers catch up. 0: they pause after a call.
    """

    def __init__(
        self,
        member: Target,
        queue: str,
        *,
        producers: int = PRODUCERS,
        consumers: int = CONSUMERS,
        rate_per_s: float = 0,
        groups: int = 0,
    ) -> None:
        super().__init__()
        self.member = member
        self.groups_each = groups // producers
        self.each_s = producers * MESSAGES_A_CALL / rate_per_s if rate_per_s else 0.0
        self.exceptions: Counter[str] = Counter()
        self.calls: list[Answered] = []
        self.sent: set[str] = set()
        self.ids: defaultdict[str, set[str]] = defaultdict(set)
        self.received: set[str] = set()
        self.deleted_s: dict[str, float] = {}
        self.back: list[str] = []
        self.disordered: list[str] = []
        self._newest: dict[str, list[int]] = {}  # by group: numbers of the message that came last
        self._lock = threading.Lock()
        attributes = {"VisibilityTimeout": str(VISIBILITY_S)} | ({"FifoQueue": "true"} if groups else {})
        name = f"{queue}.fifo" if groups else queue
        self.url = str(member.call("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"])
        works: list[Callable[[int], None]] = [self._produce] * producers + [self._consume] * consumers
        self._threads = [threading.Thread(target=work, args=(at,)) for at, work in enumerate(works)]

    # --- what a user writes ---

    def _produce(self, number: int) -> None:
        sqs, count = self.member.boto3(), 0
        began_s = time.monotonic()

        def pause_s() -> float:
            return max(0.0, began_s + count * self.each_s - time.monotonic()) if self.each_s else PAUSE_S

        while not self.over.wait(pause_s()):
            count += 1
            if count % 5:
                self._send(sqs, f"{number}-{count}")
            else:
                self._send_batch(sqs, [f"{number}-{count}-{at}" for at in range(3)])

    def _send(self, sqs: Any, body: str) -> None:
        answer = self._call("SendMessage", lambda: sqs.send_message(QueueUrl=self.url, **self._message(body)))
        self._note([body], [answer["MessageId"]] if answer else [])

    def _send_batch(self, sqs: Any, bodies: list[str]) -> None:
        entries = [{"Id": str(at), **self._message(body)} for at, body in enumerate(bodies)]
        answer = self._call("SendMessageBatch", lambda: sqs.send_message_batch(QueueUrl=self.url, Entries=entries))
        self._note(bodies, [each["MessageId"] for each in answer["Successful"]] if answer else [])

    def _message(self, body: str) -> dict[str, str]:
        if not self.groups_each:
            return {"MessageBody": body}
        return {"MessageBody": body, "MessageGroupId": self._group(body), "MessageDeduplicationId": body}

    def _group(self, body: str) -> str:
        producer, count, *_ = body.split("-")
        return f"{producer}-{int(count) % self.groups_each}"

    def _note(self, bodies: list[str], ids: list[str]) -> None:
        with self._lock:
            if len(ids) != len(bodies):
                return  # an exception, which is counted
            self.sent.update(bodies)
            for body, message_id in zip(bodies, ids, strict=True):
                self.ids[body].add(message_id)

    def _consume(self, number: int) -> None:
        sqs = self.member.boto3()
        while not self.over.is_set():
            self._work_off(sqs, number % 3, in_batches=number % 2 == 1)

    def _work_off(self, sqs: Any, wait_s: int, *, in_batches: bool) -> int:
        """Receive and delete once; how many messages came."""
        began_s = time.monotonic()
        answer = self._call(
            "ReceiveMessage",
            lambda: sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=wait_s),
        )
        messages = (answer or {}).get("Messages", [])
        with self._lock:
            for message in messages:
                body = message["Body"]
                self._note_order(body)
                self.received.add(body)
                self.ids[body].add(message["MessageId"])
                if self.deleted_s.get(body, began_s) < began_s:
                    self.back.append(body)
        if in_batches and messages:
            entries = [{"Id": str(at), "ReceiptHandle": each["ReceiptHandle"]} for at, each in enumerate(messages)]
            answer = self._call(
                "DeleteMessageBatch", lambda: sqs.delete_message_batch(QueueUrl=self.url, Entries=entries)
            )
            self._note_deleted([messages[int(each["Id"])]["Body"] for each in (answer or {}).get("Successful", ())])
            return len(messages)
        for message in messages:
            handle = message["ReceiptHandle"]
            call = partial(sqs.delete_message, QueueUrl=self.url, ReceiptHandle=handle)
            if self._call("DeleteMessage", call):
                self._note_deleted([message["Body"]])
        return len(messages)

    def _note_order(self, body: str) -> None:
        """A group's next message comes when those before it are deleted, so whoever received them has noted them."""
        if not self.groups_each or body in self.received:
            return
        group, numbers = self._group(body), [int(part) for part in body.split("-")]
        if numbers < self._newest.get(group, []):
            self.disordered.append(body)
        self._newest[group] = max(numbers, self._newest.get(group, []))

    def _note_deleted(self, bodies: list[str]) -> None:
        with self._lock:
            self.deleted_s |= dict.fromkeys(bodies, time.monotonic())

    def _call(self, action: str, call: Callable[[], Any]) -> Any:
        began_s = time.monotonic()
        try:
            answer = call()
        except Exception as error:  # what a program would die of
            with self._lock:
                self.exceptions[f"{action}: {type(error).__name__} {str(error)[:120]}"] += 1
            return None
        ended_s = time.monotonic()
        with self._lock:
            self.calls.append(Answered(ended_s, ended_s - began_s, action))
        return answer

    # --- what is seen ---

    def under_way(self, at_s: float) -> int:
        """Calls that had no answer yet at this monotonic time, without receives: those mostly wait for a message."""
        with self._lock:
            return sum(
                call.ended_s - call.took_s <= at_s < call.ended_s
                for call in self.calls
                if call.action != "ReceiveMessage"
            )

    def wait_for(self, calls: int) -> None:
        """So many more calls are answered."""
        wanted = len(self.calls) + calls
        until(lambda: len(self.calls) >= wanted, f"{calls} more calls are answered; {dict(self.exceptions)}")

    def longest_s(self, since_s: float) -> float:
        """Of the calls that ended after ``since_s`` (monotonic); of receives their wait is part."""
        with self._lock:
            return max((call.took_s for call in self.calls if call.ended_s >= since_s), default=0.0)

    def gap_s(self, since_s: float) -> float:
        """The longest time without an answered call that ends after ``since_s``."""
        with self._lock:
            ends = sorted(call.ended_s for call in self.calls)
        return max((b - a for a, b in pairwise(ends) if b >= since_s), default=0.0)

    def judge(self) -> Verdict:
        """Stop, and receive until nothing is left."""
        self.stop()
        sqs = self.member.boto3()
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]

        def is_empty() -> bool:
            if self._work_off(sqs, 1, in_batches=True):
                return False
            counts = sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
            return not any(int(counts[name]) for name in names)

        until(is_empty, "the queue is empty", VISIBILITY_S + PATIENCE_S)
        return Verdict(
            len(self.calls),
            len(self.sent),
            sum(self.exceptions.values()),
            sorted(self.sent - self.received),
            sorted(body for body, ids in self.ids.items() if len(ids) > 1),
            self.back,
            self.disordered,
        )


def move_master_off(cluster: Cluster, name: str) -> str:
    """The master, which is not ``name`` any more."""
    if cluster.master() == name:
        cluster.operate("transfer")
    return cluster.master(other_than=name)


def kill_masters(cluster: Cluster, plain: Plain, kills: int, find_master: Callable[[], str]) -> list[float]:
    """The longest time in seconds without an answered call at each kill -9 of the master."""
    gaps_s = []
    for _ in range(kills):
        master = find_master()
        plain.wait_for(100)
        began_s = time.monotonic()
        cluster.kill9(master)
        plain.wait_for(100)
        gaps_s.append(plain.gap_s(began_s))
        cluster.restart(master)
        cluster.wait_ready()
    return gaps_s
