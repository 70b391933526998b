"""The simulated client that changes priorities of messages, also of deleted and moved ones."""

from __future__ import annotations

from typing import Final

from elasticq.checks.history import ChangePriority, Send
from elasticq.engine.ordering.priority import PRIORITY
from elasticq.model.commands import MessageAttributes, MessageAttributeValue
from elasticq.model.extensions import ElasticqChangePriority
from elasticq.model.results import PrioritiesChangedResult, Result
from elasticq.sim.client import Client
from elasticq.sim.cluster import Cluster
from elasticq.sim.queues import LoadQueue
from elasticq.sim.workload import Workload

PRIORITIES: Final = (None, None, -(1 << 63), -1, 2, 9, (1 << 63) - 1)
"""The priorities of messages. None: the message has no priority attribute and gets the queue's default."""
PAUSE_US: Final = (300_000, 3_000_000)
RECENT_SENDS: Final = 20
IDS_MAX: Final = 5


class Prioritiser(Client):
    def __init__(self, cluster: Cluster, workload: Workload, name: str, queues: list[LoadQueue]) -> None:
        super().__init__(cluster, workload, name)
        self.queues = queues

    def start(self) -> None:
        self.scheduler.schedule(self.random.randint(*PAUSE_US), self._change)

    def _change(self) -> None:
        if self.workload.is_draining:
            return
        queue = self.random.choice(self.queues)
        sends = [event for event in self.workload.history if isinstance(event, Send) and event.queue == queue.name]
        known = [each for send in sends[-RECENT_SENDS:] for sent in send.messages for each in sent.message_ids]
        if not known:
            self.start()
            return
        ids = self.random.sample(known, min(len(known), self.random.randint(1, IDS_MAX)))
        priority = self.random.choice([each for each in PRIORITIES if each is not None])
        now_us = self.scheduler.now_us
        event = ChangePriority(client=self.name, queue=queue.name, invoke_us=now_us, message_ids=ids, priority=priority)

        def done(result: Result | None) -> None:
            if isinstance(result, PrioritiesChangedResult):
                event.changed = result.changed
            self.start()

        self.begin(ElasticqChangePriority(queue.url, ids, priority), event, done)


def named(priority: int | None) -> MessageAttributes | None:
    """Return the message attributes for a priority, None for the queue's default."""
    return None if priority is None else {PRIORITY: MessageAttributeValue("Number", str(priority))}
