"""The simulated client that starts message move tasks of dead-letter queues, and cancels some."""

from __future__ import annotations

from elasticq.checks.history import StartMove
from elasticq.model.commands import CancelMessageMoveTask, StartMessageMoveTask
from elasticq.model.results import MoveTaskStartedResult, Result
from elasticq.sim.client import Client
from elasticq.sim.cluster import Cluster
from elasticq.sim.queues import LoadQueue, arn
from elasticq.sim.workload import Workload

PAUSE_US = (2_000_000, 6_000_000)
RATES = (None, None, 5, 50)
CANCEL_SHARE = 0.2


class Redriver(Client):
    def __init__(self, cluster: Cluster, workload: Workload, name: str, queues: list[LoadQueue]) -> None:
        super().__init__(cluster, workload, name)
        self.queues = queues

    def start(self) -> None:
        self.scheduler.schedule(self.random.randint(*PAUSE_US), self._move)

    def _move(self) -> None:
        if self.workload.is_draining:
            return
        queue = self.random.choice(self.queues)
        destination = self.random.choice(("", queue.source))
        event = StartMove(client=self.name, queue=queue.name, invoke_us=self.scheduler.now_us, destination=destination)
        command = StartMessageMoveTask(
            source_arn=arn(queue.name),
            destination_arn=arn(destination) if destination else None,
            max_number_of_messages_per_second=self.random.choice(RATES),
        )
        self.begin(command, event, self._moved)

    def _moved(self, result: Result | None) -> None:
        if isinstance(result, MoveTaskStartedResult) and self.random.random() < CANCEL_SHARE:
            self.begin(CancelMessageMoveTask(task_handle=result.task_handle), None, lambda _: self.start())
        else:
            self.start()
