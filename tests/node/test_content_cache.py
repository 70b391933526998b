"""Contents leave memory when the rows on disk hold them, and are there again when they are needed."""

import sqlite3
from itertools import pairwise

import pytest

from elasticq.model import commands as c
from elasticq.model.errors import ServiceUnavailable
from elasticq.model.results import ReceiveMessageResult, Result
from elasticq.node import content_cache
from elasticq.node.node import Node
from elasticq.node.outputs import Fetch
from elasticq.replication.records import Base, Durable, Vote
from elasticq.storage.rows import schema
from elasticq.storage.rows.rows import Rows
from tests.node.cluster import WALL_MS, Member, Solo


class Deep(Solo):
    """A durable cluster of one with real rows in SQLite's memory, written and read when the test says so."""

    def __init__(self, memory_bytes: int = 0) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        schema.prepare(self.connection)
        self.rows = Rows()
        assert list(self.rows.load(self.connection)[1]) == []
        super().__init__(volatile=False, memory_bytes=memory_bytes)
        self.create()

    def store(self) -> None:
        """The rows take all that is committed."""
        for committed in self.node.effects.committed:
            self.rows.take(committed)
        self.node.effects.committed.clear()
        batch = self.rows.begin()
        assert batch is not None
        self.connection.execute("BEGIN")
        for sql, parameters in batch.statements:
            self.connection.executemany(sql, parameters)
        self.connection.execute("COMMIT")
        self.node.stored(self.rows.done(), self.now_ms)
        self._settle()

    def take_fetches(self) -> list[Fetch]:
        fetches = list(self.node.effects.fetches)
        self.node.effects.fetches.clear()
        return fetches

    def answer(self, fetch: Fetch) -> None:
        found = []
        for sql, parameters in self.rows.fetch(fetch.queue_id, fetch.sequences):
            found += self.connection.execute(sql, parameters).fetchall()
        self.node.fetched(fetch, self.rows.decode(found), self.now_ms)
        self._settle()

    def answer_all(self) -> None:
        for fetch in self.take_fetches():
            self.answer(fetch)

    def deep_do(self, command: c.Command) -> Result:
        """The answer, after as many fetches as it takes."""
        ticket = self.start_call(command)
        while not self.answers(ticket):
            fetches = self.take_fetches()
            assert fetches, "nobody answers, and nothing is asked for"
            for fetch in fetches:
                self.answer(fetch)
        (outcome,) = self.answers(ticket)
        assert isinstance(outcome, Result)
        return outcome

    def restart(self) -> None:
        """A new life on what the rows hold, and no log behind them."""
        self.rows = Rows()
        base, rows = self.rows.load(self.connection)
        assert isinstance(base, Base)
        durable = Durable(Vote(self.node.replica.term, None), [], base, base.index)
        self.member = Member(self.member.settings, durable, b"e" * 32)
        self.member.node = Node(self.member.settings, durable, b"e" * 32, rows)
        self.node.start(self.now_ms, WALL_MS + self.now_ms)
        self._settle()

    def fill(self, count: int) -> None:
        for first in range(0, count, 10):
            entries = [
                c.SendMessageBatchEntry(id=str(at), message_body=f"m{at}")
                for at in range(first, min(first + 10, count))
            ]
            self.do(c.SendMessageBatch(queue_url="jobs", entries=entries))

    @property
    def resident(self) -> int:
        return sum(len(queue.contents) for queue in self.node.state.queues.values())

    def bodies(self, count: int) -> list[str]:
        command = c.ReceiveMessage(queue_url="jobs", max_number_of_messages=count)
        result = self.deep_do(command)
        assert isinstance(result, ReceiveMessageResult)
        return [message.body for message in result.messages]


RECEIVE = c.ReceiveMessage(queue_url="jobs", max_number_of_messages=10)


def test_contents_stay_until_the_rows_hold_them() -> None:
    deep = Deep()
    deep.fill(20)
    assert deep.resident == 20
    deep.store()
    assert deep.resident == 0
    assert deep.node.state.contents_bytes == 0


def test_contents_that_fit_stay_in_memory() -> None:
    deep = Deep(memory_bytes=1_048_576)
    deep.fill(20)
    deep.store()
    assert deep.resident == 20
    assert deep.bodies(2) == ["m0", "m1"]
    assert not deep.take_fetches()


def test_receive_waits_for_contents_like_a_long_poll_though_it_asked_for_none() -> None:
    deep = Deep()
    deep.fill(3)
    deep.store()
    ticket = deep.start_call(RECEIVE)
    assert deep.answers(ticket) == []
    (fetch,) = deep.take_fetches()
    deep.answer(fetch)
    (result,) = deep.answers(ticket)
    assert isinstance(result, ReceiveMessageResult)
    assert [message.body for message in result.messages] == ["m0", "m1", "m2"]


def test_receives_that_wait_for_the_same_contents_cost_one_fetch_and_share_nothing() -> None:
    deep = Deep()
    deep.fill(20)
    deep.store()
    tickets = [deep.start_call(RECEIVE) for _ in range(2)]
    (fetch,) = deep.take_fetches()
    deep.answer(fetch)
    results = [deep.answers(ticket)[0] for ticket in tickets]
    assert all(isinstance(result, ReceiveMessageResult) for result in results)
    bodies = [message.body for result in results for message in getattr(result, "messages", ())]
    assert bodies == [f"m{at}" for at in range(20)]


def test_client_that_left_while_contents_were_fetched_takes_no_message() -> None:
    deep = Deep()
    deep.fill(3)
    deep.store()
    ticket = deep.start_call(RECEIVE)
    deep.node.cancel(ticket, deep.now_ms)
    deep.answer_all()
    assert deep.answers(ticket) == []
    assert deep.bodies(10) == ["m0", "m1", "m2"]


def test_purge_while_contents_are_fetched_leaves_nothing_to_receive() -> None:
    deep = Deep()
    deep.fill(3)
    deep.store()
    ticket = deep.start_call(RECEIVE)
    (fetch,) = deep.take_fetches()
    deep.do(c.PurgeQueue(queue_url="jobs"))
    deep.answer(fetch)
    assert deep.answers(ticket) == [ReceiveMessageResult()]
    assert deep.resident == 0


def test_deep_queue_drains_in_order_and_is_fetched_ahead() -> None:
    deep = Deep()
    deep.fill(3_000)
    deep.store()
    got: list[str] = []
    waited = 0
    while len(got) < 3_000:
        ticket = deep.start_call(RECEIVE)
        if not deep.answers(ticket):
            waited += 1
            deep.answer_all()
        (result,) = deep.answers(ticket)
        assert isinstance(result, ReceiveMessageResult)
        got += [message.body for message in result.messages]
        for message in result.messages:
            deep.do(c.DeleteMessage(queue_url="jobs", receipt_handle=message.receipt_handle))
        deep.answer_all()
    assert got == [f"m{at}" for at in range(3_000)]
    assert waited <= 2, "only the first receive has to wait"
    assert deep.node.state.contents_bytes == 0


def test_message_in_flight_needs_no_content_to_be_deleted_or_hidden_longer() -> None:
    deep = Deep()
    deep.fill(2)
    deep.store()
    deep.deep_do(RECEIVE)
    (queue,) = deep.node.state.queues.values()
    for sequence in list(queue.contents):
        content_cache.residency.evict(deep.node.state, queue.id, sequence)
    (result, *_) = [
        outcome
        for outcomes in deep.member.replies.values()
        for outcome in outcomes
        if isinstance(outcome, ReceiveMessageResult)
    ]
    first, second = result.messages
    deep.do(c.DeleteMessage(queue_url="jobs", receipt_handle=first.receipt_handle))
    deep.do(c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=second.receipt_handle, visibility_timeout=0))
    assert deep.bodies(10) == ["m1"]


def test_retry_of_a_receive_gets_the_same_handles_though_the_contents_had_left() -> None:
    deep = Deep()
    deep.fill(2)
    deep.store()
    guid = b"g" * 16
    ticket = deep.start_call(RECEIVE, guid)
    deep.answer_all()
    (first,) = deep.answers(ticket)
    (queue,) = deep.node.state.queues.values()
    for sequence in list(queue.contents):
        content_cache.residency.evict(deep.node.state, queue.id, sequence)
    again = deep.start_call(RECEIVE, guid)
    deep.answer_all()
    (second,) = deep.answers(again)
    assert isinstance(first, ReceiveMessageResult)
    assert isinstance(second, ReceiveMessageResult)
    assert [x.receipt_handle for x in first.messages] == [x.receipt_handle for x in second.messages]
    assert [x.body for x in second.messages] == ["m0", "m1"]


def test_restart_from_rows_alone_keeps_everything() -> None:
    deep = Deep()
    deep.fill(30)
    assert deep.bodies(5) == [f"m{at}" for at in range(5)]
    deep.store()
    deep.restart()
    (queue,) = deep.node.state.queues.values()
    assert (queue.count, len(queue.contents), queue.order.in_flight(deep.time_ms)) == (30, 0, 5)
    assert deep.bodies(10) == [f"m{at}" for at in range(5, 15)]
    deep.advance(40_000)
    by_turns = [f"m{at}" for both in zip(range(15), range(15, 30), strict=True) for at in both]
    assert deep.bodies(10) == by_turns[:10], "what came back takes every second place"
    assert deep.bodies(10) == by_turns[10:20]


def test_ids_of_a_new_life_are_new_though_the_log_is_gone() -> None:
    deep = Deep()
    deep.fill(3)
    deep.store()
    (queue,) = deep.node.state.queues.values()
    before = queue.last_sequence
    deep.restart()
    deep.fill(3)
    (queue,) = deep.node.state.queues.values()
    assert queue.last_sequence > before + (1 << 39), "another term"


def test_log_in_memory_is_dropped_as_the_rows_follow() -> None:
    deep = Deep()
    deep.fill(100)
    log = deep.node.replica.log
    assert len(log) > 10
    deep.store()
    assert len(log) == 0
    assert deep.node.effects.log_floor == log.last_index


@pytest.mark.pure
def test_senders_wait_while_too_much_is_not_in_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_cache, "PINNED_BYTES_MAX", 5_000)
    deep = Deep()
    send = c.SendMessage(queue_url="jobs", message_body="x" * 100)
    tickets = [deep.start_call(send) for _ in range(20)]
    answered = [bool(deep.answers(ticket)) for ticket in tickets]
    assert answered[0]
    assert not answered[-1]
    assert all(one >= other for one, other in pairwise(answered)), "in their order"
    while not all(deep.answers(ticket) for ticket in tickets):
        deep.store()
    assert len({repr(deep.answers(ticket)) for ticket in tickets}) == 20


def test_full_disk_refuses_sends_and_nothing_else() -> None:
    deep = Deep(memory_bytes=1_048_576)
    deep.fill(3)
    deep.node.set_full("The disk is full.", deep.now_ms)
    with pytest.raises(ServiceUnavailable, match="The disk is full"):
        deep.do(c.SendMessage(queue_url="jobs", message_body="x"))
    result = deep.do(RECEIVE)
    assert isinstance(result, ReceiveMessageResult)
    for message in result.messages:
        deep.do(c.DeleteMessage(queue_url="jobs", receipt_handle=message.receipt_handle))
    deep.node.set_full(None, deep.now_ms)
    deep.do(c.SendMessage(queue_url="jobs", message_body="again"))
    assert deep.bodies(10) == ["again"]


def test_full_memory_refuses_sends_until_something_was_deleted() -> None:
    solo = Solo(memory_bytes_max=2_000)
    solo.create()
    send = c.SendMessage(queue_url="jobs", message_body="x" * 500)
    solo.do(send)
    solo.do(send)
    with pytest.raises(ServiceUnavailable, match="Memory for messages is full"):
        solo.do(send)
    result = solo.do(RECEIVE)
    assert isinstance(result, ReceiveMessageResult)
    solo.do(c.DeleteMessage(queue_url="jobs", receipt_handle=result.messages[0].receipt_handle))
    solo.do(send)


def test_lost_content_stops_the_member_instead_of_looking_for_ever() -> None:
    deep = Deep()
    deep.fill(3)
    deep.store()
    deep.start_call(RECEIVE)
    (fetch,) = deep.take_fetches()
    with pytest.raises(AssertionError, match="lost a content"):
        deep.node.fetched(fetch, [], deep.now_ms)
