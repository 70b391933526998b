"""The background task that keeps the admin port's figures up to date: history, clients, and the watch over queues.

It runs with or without an admin port, because other members ask for these figures, too.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop
from itertools import chain
from time import perf_counter, thread_time
from typing import Final

from elasticq.admin.history import PERIOD_S
from elasticq.admin.pauses import Pause
from elasticq.server.view import View

LOAD_MAX: Final = 0.03
"""The part of a processor that the watch may use. With many queues its rounds come less often."""
STEP_S: Final = 0.001
"""The time that it runs before it checks whether a pause is due."""

_log = logging.getLogger(__name__)


class Watcher:
    """The task of one process."""

    def __init__(self, view: View, loop: AbstractEventLoop) -> None:
        self._view = view
        self._loop = loop
        self._task: asyncio.Task[None] | None = None
        self._has_failed = False

    def start(self) -> None:
        self._task = self._loop.create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        next_round_s, at_s = 0.0, self._loop.time()
        while True:
            if self._loop.time() >= next_round_s:
                next_round_s = self._loop.time() + await self._look() / LOAD_MAX
            self._view.count()
            at_s += PERIOD_S
            await asyncio.sleep(at_s - self._loop.time())  # a late one follows at once, so the history has all periods

    async def _look(self) -> float:
        """Look at all queues and subscriptions. Return how many seconds of processor time that took."""
        try:
            return await look(self._view)
        except Exception as failure:
            if not self._has_failed:  # the next rounds will fail in the same way
                self._has_failed = True
                _log.error("watch_failed", exc_info=failure)
            return 0.0


async def look(view: View) -> float:
    """Let the view's watch make one round. Return its processor time in seconds, without the pauses."""
    status, watch, pause, ran_s, cpu_s = view.status(), view.watch, Pause(), 0.0, thread_time()
    watch.begin(status.time_ms, is_master=status.role == "master")
    began_s = perf_counter()
    for _ in chain(map(watch.look, view.conditions()), map(watch.look_at_subscription, view.subscriptions())):
        if perf_counter() - began_s > STEP_S:
            ran_s += thread_time() - cpu_s
            await pause()
            began_s, cpu_s = perf_counter(), thread_time()
    watch.end(status.queues)
    return ran_s + thread_time() - cpu_s
