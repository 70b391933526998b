"""Scheduled messages against a naive model: what is due, what waits and what is gone follows from a list of facts.

Whatever was sent, rescheduled, cancelled, received, deleted, purged and taken back, and however a member came to know
it: from the log, from another one's snapshot, or from rows on its disk, written after any entry.
"""

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.apply import apply
from elasticq.engine.ordering.counts import Counts
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model.extensions import ElasticqCancelScheduled, ElasticqReschedule
from elasticq.model.results import PrioritiesChangedResult
from elasticq.node.outputs import Committed
from elasticq.storage.rows import schema
from elasticq.storage.rows.rows import Rows
from tests.engine.desk import Desk, replayed
from tests.engine.views.test_dump import dumped, made_from

Step = tuple[str, int, int]
ACTIONS = ("send", "send", "send", "plain", "move", "move", "cancel", "receive", "delete", "lose", "wait", "wait")
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 99), st.integers(-5, 60)), max_size=40)
KINDS = {
    "standard": {},
    "priority": {"ElasticqOrder": "priority"},
    "shared": {"ElasticqFairness": "round_robin"},
    "for years": {"ElasticqSchedule": "true"},
}
HISTORIES = settings(max_examples=60, deadline=None)
every_kind = pytest.mark.parametrize("kind", KINDS)


class Naive:
    """Each message with the time before which it does not come, and what has it in flight; 0: nobody received it."""

    def __init__(self) -> None:
        self.due_ms: dict[str, int] = {}
        self.handles: dict[str, str] = {}

    def waiting(self, now_ms: int) -> list[str]:
        return [each for each, due_ms in self.due_ms.items() if due_ms > now_ms and each not in self.handles]


class History:
    """Does each step to a real queue and to the model, and compares what both say."""

    def __init__(self, kind: str) -> None:
        self.desk = Desk()
        self.desk.create(**KINDS[kind])
        self.naive = Naive()
        self.number = 0

    @property
    def now_ms(self) -> int:
        return self.desk.context.now_ms

    def run(self, steps: list[Step]) -> None:
        for step, number, seconds in steps:
            getattr(self, f"_{step}")(number, seconds)
            self.check()

    def _send(self, number: int, seconds: int) -> None:
        self._sent(number, self.now_ms + seconds * 1_000)

    def _plain(self, number: int, seconds: int) -> None:
        self._sent(number, None)

    def _sent(self, number: int, due_ms: int | None) -> None:
        self.number += 1
        attributes = {}
        if due_ms is not None:
            attributes["ElasticqDeliverAt"] = c.MessageAttributeValue("Number", str(due_ms))
        group = f"g{number % 3}" if number % 3 else None
        sent = self.desk.do(
            c.SendMessage("jobs", str(self.number), message_attributes=attributes or None, message_group_id=group)
        )
        self.naive.due_ms[sent.message_id] = due_ms or 0  # type: ignore[attr-defined]

    def _some(self, number: int) -> list[str]:
        """Ids of up to three messages, or of one that there is not."""
        known = list(self.naive.due_ms)
        return known[number % len(known) :][:3] if known else ["00000000-0000-4000-8000-000000000000"]

    def _changed(self, command: ElasticqReschedule | ElasticqCancelScheduled, undo: Undo | None = None) -> list[str]:
        waiting = set(self.naive.waiting(self.now_ms))
        result = self.desk.do(command, undo=undo)
        assert isinstance(result, PrioritiesChangedResult)
        assert set(result.changed) == waiting & set(command.message_ids)
        return result.changed

    def _move(self, number: int, seconds: int) -> None:
        until_ms = self.now_ms + seconds * 1_000
        for each in self._changed(ElasticqReschedule("jobs", self._some(number), until_ms)):
            self.naive.due_ms[each] = max(until_ms, self.now_ms)

    def _cancel(self, number: int, seconds: int) -> None:
        for each in self._changed(ElasticqCancelScheduled("jobs", self._some(number))):
            del self.naive.due_ms[each]

    def _receive(self, number: int, seconds: int) -> None:
        for message in self.desk.receive(1 + number % 3, visibility_s=3_600):
            assert self.naive.due_ms[message.message_id] <= self.now_ms, "not before its time"
            assert message.message_id not in self.naive.handles, "not twice"
            self.naive.handles[message.message_id] = message.receipt_handle

    def _delete(self, number: int, seconds: int) -> None:
        if self.naive.handles:
            message_id = sorted(self.naive.handles)[number % len(self.naive.handles)]
            self.desk.do(c.DeleteMessage("jobs", self.naive.handles.pop(message_id)))
            del self.naive.due_ms[message_id]

    def _lose(self, number: int, seconds: int) -> None:
        """A master does something that is rolled back, as nobody else heard of it."""
        before, place = self.digest(), len(self.desk.log)
        undo: Undo = []
        if number % 3 == 0:
            self._changed(ElasticqReschedule("jobs", self._some(number), self.now_ms + seconds * 1_000), undo)
        elif number % 3 == 1:
            self._changed(ElasticqCancelScheduled("jobs", self._some(number)), undo)
        else:
            self.desk.receive(10, undo=undo)
        roll_back(undo)
        del self.desk.log[place:]
        assert self.digest() == before

    def _wait(self, number: int, seconds: int) -> None:
        self.desk.wait(abs(seconds) / 3)

    def digest(self) -> bytes:
        return state_digest(self.desk.state, self.now_ms)

    def check(self) -> None:
        order, naive = self.desk.queue().order, self.naive
        waiting, in_flight = len(naive.waiting(self.now_ms)), len(naive.handles)
        counts = Counts(len(naive.due_ms) - waiting - in_flight, in_flight, waiting)
        assert order.counts(self.now_ms) == counts
        next_ms = order.next_due_ms()
        due = [naive.due_ms[each] for each in naive.waiting(self.now_ms)]
        assert not due or (next_ms is not None and next_ms <= min(due)), "nobody is woken too late"


@every_kind
@HISTORIES
@given(steps=STEPS)
def test_messages_come_as_the_model_says(kind: str, steps: list[Step]) -> None:
    history = History(kind)
    history.run(steps)
    history.desk.wait(3_000)
    while messages := history.desk.receive(10):
        for message in messages:
            assert message.message_id not in history.naive.handles
            history.naive.handles[message.message_id] = message.receipt_handle
    assert history.naive.handles.keys() == history.naive.due_ms.keys(), "each that was not cancelled comes once"


@every_kind
@HISTORIES
@given(steps=STEPS, cuts=st.sets(st.integers(0, 60)))
def test_every_way_to_know_the_queue_tells_the_same(kind: str, steps: list[Step], cuts: set[int]) -> None:
    history = History(kind)
    history.run(steps)
    for state in (
        replayed(history.desk.log, times=2),
        made_from(dumped(history.desk.state)),
        from_rows(history.desk.log, cuts),
    ):
        assert state_digest(state, history.now_ms) == history.digest()
        assert state.queue("0" * 12, "jobs").order.counts(history.now_ms) == history.desk.queue().order.counts(
            history.now_ms
        )


@every_kind
@HISTORIES
@given(steps=STEPS)
def test_purged_messages_never_come(kind: str, steps: list[Step]) -> None:
    history = History(kind)
    history.run(steps)
    history.desk.do(c.PurgeQueue("jobs"))
    history.naive = Naive()
    history.check()
    history.desk.wait(3_000)
    assert history.desk.receive(10) == []
    history.run([("send", 1, 5), ("wait", 0, 60), ("receive", 2, 0)])


def from_rows(log: list[m.Mutation], cuts: set[int]) -> State:
    """What a start makes of the rows on a disk, to which a batch was written after each mutation of ``cuts``."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.prepare(connection)
    rows = Rows()
    for at, mutation in enumerate(log):
        rows.take(Committed(at + 1, 1, 1, [mutation]))
        if at in cuts or at + 1 == len(log):
            batch = rows.begin()
            assert batch is not None
            for text, parameters in batch.statements:
                connection.executemany(text, parameters)
            rows.done()
    state, loaded = State(), Rows()
    for mutation in loaded.load(connection)[1]:
        apply(state, mutation)
    for messages in loaded.read_contents(connection):
        for message in messages:
            apply(state, message)
    connection.close()
    return state
