"""The sending of batches to a queue, at a bounded rate and with retries.

Each message is sent or rejected, or the task fails. Rejected messages are written to a file, with the reason. A batch
begins when the previous batch has ended, which keeps the order of a FIFO group. If the server does not answer, or
answers 503, the client itself retries for retrySeconds before it raises an error.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from elasticq.client.errors import SqsError, Unreachable
from elasticq.spark.entries import Outgoing
from elasticq.spark.pages import batching

BACKOFF_S_MIN = 0.1
BACKOFF_S_MAX = 5.0
# Errors of one entry: the other entries of the batch can be sent. Every other error that is the sender's fault (a
# missing queue, a missing right) is the same for all messages.
ENTRY_FAULTS = frozenset(
    ["InvalidParameterValue", "InvalidParameterCombination", "MissingParameter", "InvalidMessageContents",
     "InvalidAttributeValue", "BatchRequestTooLong", "UnsupportedOperation", "ValidationError", "InvalidParameter"]
)  # fmt: skip
THROTTLING = ("Throttl", "TooManyRequests", "OverLimit", "SlowDown")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call or an entry failed. is_final: whether a retry is pointless."""

    code: str
    message: str
    is_final: bool

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class Failed(RuntimeError):
    """The error of a task that cannot send its messages."""


class _BadEntry(Exception):
    """The error of a call that the server refused as a whole because of one entry."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Clock(Protocol):
    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


@dataclass(slots=True)
class Backoff:
    """The waits between attempts, each about twice as long as the one before.

    They end ``retry_s`` seconds after the first failure.
    """

    retry_s: float
    clock: Clock = time
    _deadline_s: float | None = None
    _next_s: float = BACKOFF_S_MIN

    def wait(self) -> bool:
        """Sleep before the next attempt and return True. Return False at once if the time for retries is over."""
        now_s = self.clock.monotonic()
        if self._deadline_s is None:
            self._deadline_s = now_s + self.retry_s
        if now_s >= self._deadline_s:
            return False
        # The random part spreads the retries of tasks that failed together.
        pause_s = self._next_s * random.uniform(0.5, 1.0)
        self.clock.sleep(min(pause_s, self._deadline_s - now_s))
        self._next_s = min(2 * self._next_s, BACKOFF_S_MAX)
        return True


@dataclass(slots=True)
class Pace:
    """The rate limit of a task, in messages a second (0: no limit). It allows no burst after a pause."""

    per_second: float
    clock: Clock = time
    _free_at_s: float = 0.0

    def wait(self, messages: int) -> None:
        if not self.per_second:
            return
        now_s = self.clock.monotonic()
        if self._free_at_s > now_s:
            self.clock.sleep(self._free_at_s - now_s)
        self._free_at_s = max(self._free_at_s, now_s) + messages / self.per_second


@dataclass(slots=True)
class Counts:
    """The counts of a task. resent: entries that were sent again; calls: SendMessageBatch calls."""

    sent: int = 0
    rejected: int = 0
    resent: int = 0
    calls: int = 0


@dataclass(slots=True)
class Sender:
    """The sender of one task to one queue.

    reject: gets the messages that can never be sent; None: such a message fails the task.
    """

    sqs: Any
    queue_url: str
    retry_s: float
    pace: Pace
    counts: Counts = field(default_factory=Counts)
    reject: Callable[[Outgoing, Failure], None] | None = None
    clock: Clock = time

    def send(self, batch: list[Outgoing]) -> None:
        """Send a batch, and return once each message is sent or rejected.

        Raise Failed if a message is neither after retries for ``retry_s`` seconds, or if no message can be sent.
        """
        self.pace.wait(len(batch))
        self._send(batch, Backoff(self.retry_s, self.clock))

    def _send(self, batch: list[Outgoing], backoff: Backoff) -> None:
        waiting = batch
        while waiting:
            try:
                failed = self._call(waiting)
            except _BadEntry as error:
                if half := len(waiting) // 2:  # find the bad entry by halving the batch, in order
                    self._send(waiting[:half], backoff)
                    self._send(waiting[half:], backoff)
                    return
                failed = [(waiting[0], error.failure)]
            for message, failure in failed:
                if failure.is_final:
                    self._rejected(message, failure)
            waiting = [message for message, failure in failed if not failure.is_final]
            if waiting and not backoff.wait():
                last = failed[-1][1]
                raise Failed(f"{len(waiting)} messages to {self.queue_url} failed for {self.retry_s} s: {last}")
            self.counts.resent += len(waiting)

    def _call(self, batch: list[Outgoing]) -> list[tuple[Outgoing, Failure]]:
        """Make one SendMessageBatch call. Return the messages that failed, in their order, with the reasons.

        Raise _BadEntry if one entry makes the server refuse the call, and Failed for any other error.
        """
        entries = [{"Id": str(number), **message.entry} for number, message in enumerate(batch)]
        self.counts.calls += 1
        try:
            size = batching(len(entries))
            answer = self.sqs.send_message_batch(QueueUrl=self.queue_url, Entries=entries, **size)
        except SqsError as error:
            failure = Failure(error.code, error.message, is_final=True)
            if error.code.rpartition(".")[2] in ENTRY_FAULTS or error.type in ENTRY_FAULTS:
                raise _BadEntry(failure) from error
            raise Failed(f"sending to {self.queue_url}: {failure}") from error
        except Unreachable as error:
            raise Failed(f"sending to {self.queue_url}: {error}") from error
        self.counts.sent += len(answer.get("Successful", ()))
        failed = sorted(answer.get("Failed", ()), key=lambda entry: int(entry["Id"]))
        return [(batch[int(entry["Id"])], failure_of_entry(entry)) for entry in failed]

    def _rejected(self, message: Outgoing, failure: Failure) -> None:
        if self.reject is None:
            raise Failed(f"a message to {self.queue_url} cannot be sent: {failure}")
        self.reject(message, failure)
        self.counts.rejected += 1


def failure_of_entry(entry: dict[str, Any]) -> Failure:
    """Return why an entry failed. entry: one of an answer's ``Failed``.

    Throttling is not final, although AWS marks it as the sender's fault.
    """
    code = str(entry.get("Code"))
    is_throttled = any(word in code for word in THROTTLING)
    return Failure(code, str(entry.get("Message", "")), bool(entry.get("SenderFault")) and not is_throttled)
