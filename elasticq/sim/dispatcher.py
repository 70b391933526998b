"""The simulated client that changes or cancels the delivery time of scheduled messages."""

from __future__ import annotations

from typing import Final

from elasticq.checks.history import Delete, Send
from elasticq.model.extensions import ElasticqCancelScheduled, ElasticqReschedule
from elasticq.model.results import PrioritiesChangedResult, Result
from elasticq.sim.client import Client
from elasticq.sim.process import TRUE_EPOCH_MS
from elasticq.sim.queues import LoadQueue

PAUSE_US: Final = (100_000, 1_500_000)
RECENT_SENDS: Final = 10
AHEAD_MS: Final = (-500, 6_000)
CANCEL_SHARE: Final = 0.4


class Dispatcher(Client):
    """A client that reschedules or cancels one message at a time.

    Somebody may have received, cancelled or deleted that message before.
    """

    def start(self) -> None:
        self.scheduler.schedule(self.random.randint(*PAUSE_US), self._act)

    def _act(self) -> None:
        if self.workload.is_draining:
            return
        sends = [event for event in self.workload.history if isinstance(event, Send) and event.is_scheduled]
        known = [(send.queue, sent) for send in sends[-RECENT_SENDS:] for sent in send.messages if sent.message_ids]
        if not known:
            self.start()
            return
        name, sent = self.random.choice(known)
        queue = next(queue for queue in self.workload.queues if queue.name == name)
        if self.random.random() < CANCEL_SHARE:
            self._cancel(queue, sent.message_ids[0], sent.body)
        else:
            time_ms = TRUE_EPOCH_MS + self.scheduler.now_us // 1_000 + self.random.randint(*AHEAD_MS)
            command = ElasticqReschedule(queue.url, [sent.message_ids[0]], max(time_ms, 0))
            self.begin(command, None, lambda result: self.start())

    def _cancel(self, queue: LoadQueue, message_id: str, body: str) -> None:
        """Cancel a message; the history records it as a delete.

        If the message is not found, the outcome is unknown: an earlier attempt may have cancelled it.
        """
        now_us = self.scheduler.now_us
        event = Delete(client=self.name, queue=queue.name, invoke_us=now_us, message_id=message_id, receipt_handle="")
        self.workload.deleting(body)

        def done(result: Result | None) -> None:
            if not isinstance(result, PrioritiesChangedResult) or not result.changed:
                event.outcome = "unknown"
            self.start()

        self.begin(ElasticqCancelScheduled(queue.url, [message_id]), event, done)
