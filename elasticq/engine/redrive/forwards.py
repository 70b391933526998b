"""The forwarding of sent messages: copyTo (to a second queue as well) and moveTo (to another queue instead).

Source: ElasticMQ. moveTo applies first: size, delay and deduplication follow the queue in which the message is stored.
A target that does not exist, or is of the other type, is ignored.
"""

from msgspec.structs import replace

from elasticq.engine.context import ExecutionContext
from elasticq.engine.deduplication import deduplication_key
from elasticq.engine.ordering.schedule import is_scheduled
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.identity import next_sequence


def route(state: State, queue: Queue) -> tuple[Queue, list[Queue]]:
    """Return the queue that stores a message sent to ``queue``, and the queues that get a copy because of copyTo.

    No queue occurs twice.
    """
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
    """Return the queue at the end of the moveTo links from ``queue``; in a circle, the last one before it closes."""
    passed = {queue.id}
    while (after := _target(state, queue, queue.move_to)) is not None and after.id not in passed:
        passed.add(after.id)
        queue = after
    return queue


def _target(state: State, queue: Queue, name: str) -> Queue | None:
    """Return the queue of this name in the account of ``queue``; None if it is missing or of the other type."""
    target = state.names.get((queue.account, name)) if name else None
    return target if target is not None and target.kind.exchanges_with(queue.kind) else None


def goes_in_a_circle(state: State, account: str, name: str, copy_to: str, move_to: str) -> bool:
    """Return whether a message sent to ``name`` would return to it if it had these targets."""
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
    """The copies that copyTo makes of the messages of one send, one in each of the queues ``targets``.

    They are stored in the same entry as the messages.
    """

    def __init__(self, state: State, targets: list[Queue], context: ExecutionContext) -> None:
        self._state = state
        self._targets = targets
        self._context = context
        self._lasts: dict[int, int] = {}
        self._keys: set[bytes] = set()
        self.mutations: list[m.Mutation] = []

    def add(self, stored: m.MessageStored, delay_seconds: int | None) -> None:
        """Add the mutations that store copies of one sent message in the target queues.

        A queue that remembers the message's deduplication id gets no copy.
        delay_seconds: the delay of the message; None: each copy gets the delay of its queue.
        """
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
        """Return the message as it is stored in ``target``, with the same MessageId."""
        last = self._lasts.get(target.id, target.last_sequence)
        sequence = self._lasts[target.id] = next_sequence(last, self._context.term)
        visible_at_ms = stored.visible_at_ms
        if delay_seconds is None and not is_scheduled(stored):
            visible_at_ms = target.delayed_until_ms(self._context.now_ms)
        origin = (stored.queue_id, stored.sequence)
        return replace(stored, queue_id=target.id, sequence=sequence, visible_at_ms=visible_at_ms, origin=origin)
