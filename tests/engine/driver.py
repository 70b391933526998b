"""Drives a Desk by lists of plain steps, so that hypothesis can make histories of every mutation."""

from collections.abc import Sequence
from hashlib import blake2b

from hypothesis import strategies as st

from elasticq.engine import mutations as m
from elasticq.engine.actions.receive import returned
from elasticq.engine.apply import Undo
from elasticq.engine.digest import state_digest
from elasticq.engine.ordering.standard import Counts
from elasticq.engine.residency import weight
from elasticq.engine.state import Queue, State
from elasticq.engine.sweep import Sweeper
from elasticq.model import commands as c
from elasticq.model.commands import MessageAttributeValue
from elasticq.model.errors import SqsError
from elasticq.model.results import ReceiveMessageResult
from tests.engine.desk import Desk

Step = tuple[str, int, int]
NAMES = ("red", "blue")
ACTIONS = (
    "create",
    "send",
    "send",
    "delayed",
    "batch",
    "receive",
    "receive",
    "retry",
    "delete",
    "change",
    "purge",
    "drop",
    "attributes",
    "return",
    "sweep",
    "wait",
    "wait",
    "takeover",
)
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 7), st.integers(0, 7)), max_size=40)
WAITS_S = (0.001, 0.5, 1, 2, 5, 10, 61, 130)


class Driver:
    """Both queues exist from the start; every error of AWS's is an answer like any other."""

    def __init__(self) -> None:
        self.desk = Desk()
        self.handles: list[str] = []
        self.received: list[ReceiveMessageResult] = []
        self.guids = 0
        self.undo: Undo | None = None
        self.sweeper = Sweeper()
        for name in NAMES:
            self.desk.create(name, MessageRetentionPeriod="120")

    def run(self, steps: Sequence[Step]) -> None:
        for action, a, b in steps:
            getattr(self, f"_{action}")(NAMES[a % 2], a // 2, b)

    def _do(self, command: c.Command, attempt_of: int = 0) -> None:
        """``attempt_of``: the SDK call's number, 0 for a client that sends no id."""
        invocation = b""
        if attempt_of:
            invocation = blake2b(b"%d %r" % (attempt_of, repr(command).encode()), digest_size=16).digest()
        try:
            result = self.desk.do(command, invocation=invocation, undo=self.undo)
        except SqsError:
            return
        if isinstance(result, ReceiveMessageResult) and result.messages:
            self.received.append(result)
            self.handles += [message.receipt_handle for message in result.messages]

    def _guid(self, b: int) -> int:
        """None, a fresh one, or the newest again."""
        if b % 3 == 0:
            return 0
        self.guids += b % 3 == 1
        return self.guids

    def _create(self, name: str, a: int, b: int) -> None:
        self._do(c.CreateQueue(queue_name=name, attributes={"MessageRetentionPeriod": "120"}), self._guid(b))

    def _send(self, name: str, a: int, b: int) -> None:
        attributes = {"n": MessageAttributeValue("Number", string_value=str(b))} if a else None
        self._do(
            c.SendMessage(queue_url=name, message_body="x" * (b + 1), message_attributes=attributes), self._guid(b)
        )

    def _delayed(self, name: str, a: int, b: int) -> None:
        self._do(c.SendMessage(queue_url=name, message_body="later", delay_seconds=b), self._guid(b))

    def _batch(self, name: str, a: int, b: int) -> None:
        entries = [c.SendMessageBatchEntry(id=str(at), message_body="x" * at) for at in range(a, a + b % 4 + 1)]
        self._do(c.SendMessageBatch(queue_url=name, entries=entries), self._guid(b))

    def _receive(self, name: str, a: int, b: int) -> None:
        self._do(
            c.ReceiveMessage(queue_url=name, max_number_of_messages=a + 1, visibility_timeout=b), self._guid(a + b)
        )

    def _retry(self, name: str, a: int, b: int) -> None:
        self._do(c.SendMessage(queue_url=name, message_body="again"), b % 3 + 1)

    def _handle(self, a: int) -> str:
        return self.handles[-1 - a % len(self.handles)] if self.handles else "none"

    def _delete(self, name: str, a: int, b: int) -> None:
        self._do(c.DeleteMessage(queue_url=name, receipt_handle=self._handle(b)), self._guid(a))

    def _change(self, name: str, a: int, b: int) -> None:
        command = c.ChangeMessageVisibility(queue_url=name, receipt_handle=self._handle(b), visibility_timeout=a * 3)
        self._do(command, self._guid(b))

    def _purge(self, name: str, a: int, b: int) -> None:
        if b < 3:
            self._do(c.PurgeQueue(queue_url=name))

    def _drop(self, name: str, a: int, b: int) -> None:
        if b < 3:
            self._do(c.DeleteQueue(queue_url=name), self._guid(b))

    def _attributes(self, name: str, a: int, b: int) -> None:
        self._do(c.SetQueueAttributes(queue_url=name, attributes={"DelaySeconds": str(b % 2)}))

    def _return(self, name: str, a: int, b: int) -> None:
        if self.received:
            result = self.received[-1 - b % len(self.received)]
            self.desk.write(returned(self.desk.state, result, self.desk.turn.now_ms), self.undo)

    def _sweep(self, name: str, a: int, b: int) -> None:
        self.desk.write(self.sweeper.step(self.desk.state, self.desk.turn.now_ms)[0], self.undo)

    def _wait(self, name: str, a: int, b: int) -> None:
        self.desk.wait(WAITS_S[b])

    def _takeover(self, name: str, a: int, b: int) -> None:
        turn = self.desk.turn
        if self.undo is None:  # a master's own takeover is committed before it serves
            turn.term += 1
            self.desk.write([m.TookOver(turn.term, "a", turn.now_ms - a * 500, turn.now_ms + b * 500)])


# --- what must hold of any state ------------------------------------------------------


def digest(desk: Desk) -> bytes:
    return state_digest(desk.state, desk.turn.now_ms)


def availability(queue: Queue, state: State, now_ms: int) -> tuple[dict[int, int], Counts]:
    """From the rows alone: since when each available message is, and the counts."""
    since_ms: dict[int, int] = {}
    counts = Counts(0, 0, 0)
    for sequence in queue.issued:
        row = queue.row(sequence)
        if row is None:
            continue
        if state.grace.deadline(row) <= now_ms:
            since_ms[sequence] = state.grace.deadline(row) or queue.contents[sequence].sent_ms
        elif row.hand_out:
            counts.in_flight += 1
        else:
            counts.delayed += 1
    counts.visible = len(since_ms)
    return since_ms, counts


def check_indexes(state: State, now_ms: int) -> None:
    """Every queue's index says what its rows say."""
    for queue in state.queues.values():
        since_ms, counts = availability(queue, state, now_ms)
        assert queue.order.counts(now_ms) == counts
        chosen = queue.order.choose(now_ms, 1_000, -1)
        assert sorted(chosen) == sorted(since_ms)
        times = [since_ms[sequence] for sequence in chosen]
        assert times == sorted(times), "longest available first"
        assert set(queue.contents) <= set(queue.issued)
        assert (set(queue.contents), queue.is_cold) == ({x for x in queue.issued if queue.row(x) is not None}, False)
        assert queue.messages.bytes == sum(map(weight, queue.contents.values()))
    assert not any(queue.contents or queue.rows or queue.count for queue in state.doomed.values())
    assert state.contents_bytes == sum(queue.messages.bytes for queue in state.queues.values())
