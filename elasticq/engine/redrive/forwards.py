"""Where a message sent to a queue goes besides it, or instead: ElasticMQ's copyTo and moveTo.

A message is moved on before anything else: size, delay and deduplication are those of the queue that it
lands in. A queue that is not there, or is of the other type, is as none: the message stays.
"""

from msgspec.structs import replace

from elasticq.engine.context import ExecutionContext
from elasticq.engine.deduplication import deduplication_key
from elasticq.engine.ordering.schedule import is_scheduled
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.identity import next_sequence


def route(state: State, queue: Queue) -> tuple[Queue, list[Queue]]:
    """The queue in which a message sent to ``queue`` lands, and those that get a copy. No queue comes twice."""
    landing = _landing(state, queue)
    seen = {landing.id}
    copies: list[Queue] = []
    waiting = [queue]
    passed = set()
    while waiting:
        one: Queue | None = waiting.pop(0)
        while one is not None and one.id not in passed:
            passed.add(one.id)
            copy = _target(state, one, one.copy_to)
            if copy is not None:
                waiting.append(copy)
                end = _landing(state, copy)
                if end.id not in seen:
                    seen.add(end.id)
                    copies.append(end)
            one = _target(state, one, one.move_to)
    return landing, copies


def _landing(state: State, queue: Queue) -> Queue:
    """The queue at the end of the moveTo links from ``queue``; the last one before a circle closes."""
    passed = {queue.id}
    while (after := _target(state, queue, queue.move_to)) is not None and after.id not in passed:
        passed.add(after.id)
        queue = after
    return queue


def _target(state: State, queue: Queue, name: str) -> Queue | None:
    target = state.names.get((queue.account, name)) if name else None
    return target if target is not None and target.kind.exchanges_with(queue.kind) else None


def goes_in_a_circle(state: State, account: str, name: str, copy_to: str, move_to: str) -> bool:
    """Whether a message sent to ``name`` would come back to it, were these its targets."""
    waiting, passed = [copy_to, move_to], set()
    while waiting:
        target = waiting.pop()
        if target == name:
            return True
        queue = state.names.get((account, target)) if target else None
        if queue is not None and queue.id not in passed:
            passed.add(queue.id)
            waiting += [queue.copy_to, queue.move_to]
    return False


class Copies:
    """Makes the copies of one call's messages for each of ``targets``; they stand in the same entry as the messages."""

    __slots__ = ("_context", "_keys", "_lasts", "_state", "_targets", "mutations")

    def __init__(self, state: State, targets: list[Queue], context: ExecutionContext) -> None:
        self._state = state
        self._targets = targets
        self._context = context
        self._lasts: dict[int, int] = {}
        self._keys: set[bytes] = set()
        self.mutations: list[m.Mutation] = []

    def add(self, stored: m.MessageStored, delay_seconds: int | None) -> None:
        """Add the copies of one message. ``delay_seconds``: its own delay; without one a copy gets its queue's."""
        for target in self._targets:
            key = deduplication_key(target, stored)
            if key:
                if key in self._keys or self._state.invocations.get(key, self._context.now_ms) is not None:
                    continue
                self._keys.add(key)
            copy = self._copy(target, stored, delay_seconds)
            self.mutations.append(copy)
            if key:
                self.mutations.append(m.InvocationRecorded(key, self._context.now_ms, target.id, copy.sequence))

    def _copy(self, target: Queue, stored: m.MessageStored, delay_seconds: int | None) -> m.MessageStored:
        """The message as it is stored in ``target``, where it keeps its MessageId."""
        last = self._lasts.get(target.id, target.last_sequence)
        sequence = self._lasts[target.id] = next_sequence(last, self._context.term)
        visible_at_ms = stored.visible_at_ms
        if delay_seconds is None and not is_scheduled(stored):
            visible_at_ms = target.delayed_until_ms(self._context.now_ms)
        origin = (stored.queue_id, stored.sequence)
        return replace(stored, queue_id=target.id, sequence=sequence, visible_at_ms=visible_at_ms, origin=origin)
