"""Message move tasks: replicated background work in bounded steps, driven by the master's tick.

    RUNNING ──the cursor is at the end──> COMPLETED
       │  └──a message has no place to go──> FAILED
       └──CancelMessageMoveTask──> CANCELLING ──next step──> CANCELLED

Each ``MoveTaskSet`` contains the whole task. It is in the same entry as the moves that it counts. So a new master
continues after the last committed step. A task goes through its source once, by sequence, up to the newest message at
its start. A message that is in flight or delayed when the cursor passes it stays in the source.
"""

from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from elasticq.engine.deduplication import deduplication_key
from elasticq.engine.ordering.leases import ENDED_AT_ONCE_MAX
from elasticq.engine.priorities import kept
from elasticq.engine.state import Queue, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.contents import stored_bytes
from elasticq.engine.stored.identity import next_sequence
from elasticq.model import limits
from elasticq.model.names import parse_queue_arn

MESSAGES_A_STEP: Final = 100
BYTES_A_STEP: Final = 1_048_576
LOOKED_AT_A_STEP: Final = 20_000
CONTENTS_AHEAD: Final = 512
STEP_MS: Final = 10
BURST_MS: Final = 200  # a task may catch up with at most this time of its rate

GONE_QUEUE: Final = "AWS.SimpleQueueService.NonExistentQueue"
UNKNOWN_SOURCE: Final = "CouldNotDetermineMessageSource"
TOO_LONG: Final = "TaskTimedOut"  # our own; the reason that AWS gives is unknown


class Step(Struct):
    """The outcome of a step.

    mutations: to be proposed by the master. missing: (queue id, sequences) of contents to load from disk first.
    wait_ms: the time until the next step.
    """

    mutations: list[m.Mutation] = field(default_factory=list)
    missing: list[tuple[int, list[int]]] = field(default_factory=list)
    wait_ms: int = 1_000


class Mover:
    """The move tasks' steps, and the pace of each task.

    The pace is not replicated: under a new master, each task may move one message at once.
    """

    def __init__(self) -> None:
        # By task number: the time of the last update, and the allowance in thousandths of a message.
        self._paces: dict[int, tuple[int, int]] = {}

    def step(self, state: State, now_ms: int, term: int) -> Step:
        """Return the next step of all tasks. It changes only the pace, not the state."""
        step = Step()
        arrivals = _Arrivals(state, now_ms, term)
        for number in [number for number in self._paces if number not in state.moving]:
            del self._paces[number]
        for task in state.moving.values():
            if arrivals.is_full:
                step.wait_ms = STEP_MS
                break
            allowed = self._allowed(task, now_ms)
            moved = _step_of(state, task, allowed, arrivals, step)
            self._spend(task, moved)
            step.wait_ms = min(step.wait_ms, self._wait_ms(task))
        return step

    def advanced(self, state: State, by_ms: int, now_ms: int) -> None:
        """Add the allowance of a time that a test skipped. BURST_MS does not limit it.

        by_ms: how far the clock was advanced; now_ms: the time after that.
        """
        for task in state.moving.values():
            if task.rate:
                updated_ms, thousandths = self._paces.get(task.number, (now_ms - by_ms, 1_000))
                self._paces[task.number] = (updated_ms + by_ms, thousandths + task.rate * by_ms)

    def _allowed(self, task: m.MoveTaskSet, now_ms: int) -> int:
        """Return how many messages the task may move in this step."""
        if not task.rate:
            return MESSAGES_A_STEP
        updated_ms, thousandths = self._paces.get(task.number, (now_ms, 1_000))
        earned = thousandths + task.rate * max(now_ms - updated_ms, 0)
        self._paces[task.number] = (now_ms, min(earned, max(1_000 + task.rate * BURST_MS, thousandths)))
        return min(self._paces[task.number][1] // 1_000, MESSAGES_A_STEP)

    def _spend(self, task: m.MoveTaskSet, moved: int) -> None:
        if task.rate:
            updated_ms, thousandths = self._paces[task.number]
            self._paces[task.number] = (updated_ms, thousandths - moved * 1_000)

    def _wait_ms(self, task: m.MoveTaskSet) -> int:
        """Return the time until the task may move its next message."""
        if not task.rate:
            return STEP_MS
        lacking = 1_000 - self._paces[task.number][1]
        return max(-(-lacking // task.rate), STEP_MS)


class _Arrivals:
    """The messages that one step of all tasks stores in their new queues."""

    def __init__(self, state: State, now_ms: int, term: int) -> None:
        self.state = state
        self.now_ms = now_ms
        self.term = term
        self._last: dict[int, int] = {}
        self._keys: set[bytes] = set()
        self._messages = self._bytes = 0

    @property
    def is_full(self) -> bool:
        return self._messages >= limits.MUTATION_ROWS_MAX or self._bytes >= BYTES_A_STEP

    def of(self, target: Queue, content: m.MessageStored) -> list[m.Mutation]:
        """Return the mutations that store the message in ``target``; none if its deduplication id is taken there."""
        self._messages += 1
        key = deduplication_key(target, content)
        if key:
            if key in self._keys or self.state.invocations.get(key, self.now_ms) is not None:
                return []
            self._keys.add(key)
        self._bytes += stored_bytes(content)
        last = self._last.get(target.id, target.last_sequence)
        sequence = self._last[target.id] = next_sequence(last, self.term)
        stored = self._stored(target, content, sequence)
        return [stored, m.InvocationRecorded(key, self.now_ms, target.id, sequence)] if key else [stored]

    def _stored(self, target: Queue, content: m.MessageStored, sequence: int) -> m.MessageStored:
        return replace(
            content,
            queue_id=target.id,
            sequence=sequence,
            sent_ms=self.now_ms,
            visible_at_ms=target.delayed_until_ms(self.now_ms),
            origin=None,
            dead_letter=None,
        )


def _step_of(state: State, task: m.MoveTaskSet, allowed: int, arrivals: _Arrivals, step: Step) -> int:
    """Add the mutations of one task to ``step``; return how many messages it moves. allowed: the maximum."""
    source = state.queues.get(task.source_queue_id)
    if task.status == m.CANCELLING:
        step.mutations.append(replace(task, status=m.CANCELLED))
    elif source is None:
        step.mutations.append(_failed(task, GONE_QUEUE))
    elif arrivals.now_ms >= task.started_ms + limits.MOVE_TASK_MS_MAX:
        step.mutations.append(_failed(task, TOO_LONG))
    else:
        return _move(state, source, task, allowed, arrivals, step)
    return 0


def _failed(task: m.MoveTaskSet, reason: str) -> m.MoveTaskSet:
    return replace(task, status=m.FAILED, failure_reason=reason)


def _move(state: State, source: Queue, task: m.MoveTaskSet, allowed: int, arrivals: _Arrivals, step: Step) -> int:
    """Add the next moves of a running task to ``step``; return how many messages it moves."""
    over = state.leases.expirations(source.id, state.grace, arrivals.now_ms)
    step.mutations += over
    if len(over) == ENDED_AT_ONCE_MAX:
        return 0  # move nothing before all expired leases are recorded
    moved: list[int] = []
    cursor, status, reason = task.cursor, m.COMPLETED, ""
    gone_before_ms = source.expired_before_ms(arrivals.now_ms)
    for looked_at, sequence in enumerate(source.issued.between(task.cursor + 1, task.last)):
        row = source.row(sequence)
        if row is not None and state.grace.deadline(row) <= arrivals.now_ms:
            if len(moved) >= allowed or arrivals.is_full:
                status = m.RUNNING
                break
            content = source.contents.get(sequence)
            if content is None:
                status = m.RUNNING
                step.missing.append((source.id, _cold(source, sequence, task.last)))
                break
            if content.sent_ms > gone_before_ms:
                target = _target(state, task, content)
                if target is None:
                    status, reason = m.FAILED, _failure(task, content)
                    break
                arrived = arrivals.of(target, content)
                step.mutations += arrived
                step.mutations += [each for stored in arrived[:1] for each in kept(source, sequence, target, stored)]
                moved.append(sequence)
        if looked_at >= LOOKED_AT_A_STEP:
            cursor, status = sequence, m.RUNNING
            break
        if row is not None:  # members may differ in the deleted sequences that ``issued`` contains
            cursor = sequence
    if moved:
        step.mutations.append(m.MessagesRemoved(source.id, moved))
    after = replace(task, cursor=cursor, moved=task.moved + len(moved), status=status, failure_reason=reason)
    if after != task:
        step.mutations.append(after)
    return len(moved)


def _cold(source: Queue, first: int, last: int) -> list[int]:
    """Return the next messages whose contents are not in memory, at most CONTENTS_AHEAD."""
    found: list[int] = []
    for looked_at, sequence in enumerate(source.issued.between(first, last)):
        if sequence not in source.contents and source.row(sequence) is not None:
            found.append(sequence)
        if len(found) >= CONTENTS_AHEAD or looked_at >= LOOKED_AT_A_STEP:
            break
    return found


def _target(state: State, task: m.MoveTaskSet, content: m.MessageStored) -> Queue | None:
    """Return the task's destination, or the queue that the message came from; None if it does not exist.

    Both are in the region of the task's source.
    """
    arn = task.destination_arn or (content.dead_letter.source_arn if content.dead_letter is not None else "")
    key = parse_queue_arn(arn, task.account)
    return state.names.get(key) if key is not None else None


def _failure(task: m.MoveTaskSet, content: m.MessageStored) -> str:
    return GONE_QUEUE if task.destination_arn or content.dead_letter is not None else UNKNOWN_SOURCE
