"""The simulated readers of batches under leases, such as a Spark source, and a client that repeats their calls.

A reader reads the partitions of a batch with several calls each. Some calls it repeats, like a retried task, and
sometimes it renews the leases. In the end it commits, returns or forgets the batch. It may then repeat calls of leases
that have ended. It commits only a batch whose calls were all answered; otherwise it drops the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Literal

from elasticq.checks.history import HandedOut, LeaseChange, Receive
from elasticq.model.commands import ChangeMessageVisibility, Command, DeleteMessage, ReceiveMessage
from elasticq.model.results import ReceivedMessage, ReceiveMessageResult, Result
from elasticq.sim.client import Client, Done, Periodic
from elasticq.sim.cluster import Cluster
from elasticq.sim.workload import LeasedCall, Workload

PAUSE_US: Final = (20_000, 900_000)
SHADOW_PAUSE_US: Final = (200_000, 2_500_000)
LEASES_S: Final = (2, 4, 8)
CALLS_MAX: Final = 4
AGAIN_SHARE, RENEW_SHARE, COMMIT_SHARE, GIVE_BACK_SHARE, LATE_SHARE = 0.3, 0.2, 0.65, 0.15, 0.5
SYSTEM_ATTRIBUTES: Final = [
    "MessageGroupId",
    "SequenceNumber",
    "ApproximateReceiveCount",
    "DeadLetterQueueSourceArn",
]
Action = Literal["commit", "renew", "give_back"]


class LeaseClient(Client):
    """A client that makes leased calls."""

    def ask(self, call: LeasedCall, wait_s: int, done: Callable[[Receive], None]) -> None:
        event = Receive(
            client=self.name,
            queue=call.queue.name,
            invoke_us=self.scheduler.now_us,
            visibility_ms=1_000 * call.lease_s,
            attempt_id=f"{call.lease}/{call.number}",
            lease=call.lease,
            partition=call.partition,
        )
        command = ReceiveMessage(
            queue_url=call.queue.url,
            message_system_attribute_names=SYSTEM_ATTRIBUTES,
            max_number_of_messages=call.count,
            visibility_timeout=call.lease_s,
            wait_time_seconds=wait_s,
            receive_request_attempt_id=event.attempt_id,
            elasticq_partition=call.partition,
        )
        self.begin(command, event, partial(self._answered, event, done), wait_us=wait_s * 1_000_000)

    def _answered(self, event: Receive, done: Callable[[Receive], None], result: Result | None) -> None:
        if isinstance(result, ReceiveMessageResult) and result.messages:
            event.messages = [handed_out(message) for message in result.messages]
            self.workload.last_message_us = self.scheduler.now_us
        done(event)


class Reader(LeaseClient):
    """A reader of one batch after the other, each from a random queue."""

    def __init__(self, cluster: Cluster, workload: Workload, name: str) -> None:
        super().__init__(cluster, workload, name)
        self.batch = 0

    def start(self) -> None:
        if self.workload.is_draining:
            return  # its messages become visible again when the leases end
        random = self.random
        self.batch += 1
        self.queue = random.choice(self.workload.sources)
        self.lease_s, self.count = random.choice(LEASES_S), random.choice((1, 2, 5))
        self.calls: list[LeasedCall] = []
        self.received: list[HandedOut] = []
        partitions = range(random.randint(1, 2))
        self.asked = [self.queue.any_partition(random) for _ in partitions]
        self.steps: list[Callable[[], None]] = [partial(self._read, partition, 0) for partition in partitions]
        self._pause()

    def _pause(self) -> None:
        self.scheduler.schedule(self.random.randint(*PAUSE_US), self._step)

    def _step(self) -> None:
        if self.workload.is_draining:
            return
        (self.steps.pop(0) if self.steps else self._end)()

    # --- reading --------------------------------------------------------------------

    def _read(self, partition: int, number: int) -> None:
        lease = f"{self.name}/{self.batch}/{partition}"
        call = LeasedCall(self.queue, lease, number, self.lease_s, self.count, self.asked[partition])
        self.workload.leased = call
        self.ask(call, self.random.choice((0, 0, 1)), partial(self._read_done, call, partition))

    def _read_done(self, call: LeasedCall, partition: int, event: Receive) -> None:
        if event.outcome != "ok":
            self._drop_batch()
            return
        self.calls.append(call)
        self.received += event.messages
        if event.messages and call.number + 1 < CALLS_MAX:
            self.steps.insert(0, partial(self._read, partition, call.number + 1))
        if self.random.random() < AGAIN_SHARE:
            again = [each for each in self.calls if each.lease == call.lease]
            self.steps[:0] = [partial(self._read_again, each) for each in again]
        if self.random.random() < RENEW_SHARE:
            self.steps.insert(0, partial(self._change, "renew", self._pause_or_drop))
        self._pause()

    def _read_again(self, call: LeasedCall) -> None:
        self.ask(call, 0, lambda event: self._pause_or_drop(event.outcome == "ok"))

    def _pause_or_drop(self, is_ok: bool) -> None:
        if is_ok:
            self._pause()
        else:
            self._drop_batch()

    # --- the end ----------------------------------------------------------------------

    def _end(self) -> None:
        chance = self.random.random()
        if chance < COMMIT_SHARE:
            self._change("commit", self._over)
        elif chance < COMMIT_SHARE + GIVE_BACK_SHARE:
            self._change("give_back", self._over)
        else:
            self.scheduler.schedule(self.random.randint(0, 1_500_000 * self.lease_s), self._drop_batch)

    def _change(self, action: Action, done: Callable[[bool], None]) -> None:
        """Commit, renew or end the leases of the whole batch."""
        lease = f"{self.name}/{self.batch}/"
        received = self.received
        event = LeaseChange(
            client=self.name,
            queue=self.queue.name,
            invoke_us=self.scheduler.now_us,
            lease=lease,
            action=action,
            visibility_ms=1_000 * self.lease_s if action == "renew" else 0,
            messages=list(received) if action == "commit" else [],
        )
        command: Command
        if action == "commit":
            command = DeleteMessage(queue_url=self.queue.url, receipt_handle=f"lease:{lease}")
            for message in received:
                self.workload.deleting(message.body)
        else:
            seconds = event.visibility_ms // 1_000
            command = ChangeMessageVisibility(self.queue.url, f"lease:{lease}", seconds)
        finish: Done = lambda _: done(event.outcome == "ok")  # noqa: E731
        self.begin(command, event, finish)

    def _over(self, is_ok: bool) -> None:
        self._drop_batch()

    def _drop_batch(self) -> None:
        """Forget the batch. Sometimes first repeat all its calls: either all leases have ended, or none."""
        self.late = list(self.calls) if self.random.random() < LATE_SHARE else []
        self._ask_late()

    def _ask_late(self) -> None:
        if self.late and not self.workload.is_draining:
            self.ask(self.late.pop(0), 0, lambda event: self._ask_late())
        else:
            self.scheduler.schedule(self.random.randint(*PAUSE_US), self.start)


class Shadow(Periodic, LeaseClient):
    """A client that repeats the newest call of a reader, like a task that runs twice."""

    pause_us = SHADOW_PAUSE_US

    def act(self) -> None:
        if self.workload.leased is None:
            self.start()
        else:
            self.ask(self.workload.leased, self.random.choice((0, 1, 2)), lambda event: self.start())


def handed_out(message: ReceivedMessage) -> HandedOut:
    attributes = message.attributes or {}
    return HandedOut(
        message.message_id,
        message.receipt_handle,
        message.body,
        group=attributes.get("MessageGroupId", ""),
        sequence_number=attributes.get("SequenceNumber", ""),
        receive_count=int(attributes.get("ApproximateReceiveCount", 0)),
        is_dead_letter="DeadLetterQueueSourceArn" in attributes,
    )
