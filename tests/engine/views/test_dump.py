"""A state that was dumped and applied again is the same, and answers the same from then on."""

from copy import deepcopy

import pytest
from hypothesis import given, settings

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.engine.views.dump import CHUNK_ROWS, dump
from elasticq.model.limits import MUTATION_ROWS_MAX
from tests.engine.desk import Desk
from tests.engine.driver import STEPS, Driver, Step, check_indexes, digest


def made_from(mutations: list[m.Mutation]) -> State:
    state = State()
    for mutation in mutations:
        apply(state, mutation)
    return state


def dumped(state: State) -> list[m.Mutation]:
    return [mutation for chunk in dump(state) for mutation in chunk]


def going_on(driver: Driver, state: State) -> Driver:
    """Another driver over ``state`` that knows what the clients of the first one know."""
    other = Driver()
    other.desk.state = state
    other.desk.context.now_ms, other.desk.context.term = driver.desk.context.now_ms, driver.desk.context.term
    other.desk.log.clear()
    other.handles, other.received = list(driver.handles), list(driver.received)
    other.guids, other.tasks = driver.guids, list(driver.tasks)
    other.mover = deepcopy(driver.mover)
    return other


@settings(max_examples=300, deadline=None)
@given(before=STEPS, after=STEPS)
def test_dump_is_the_state_and_goes_on_as_a_follower_does(before: list[Step], after: list[Step]) -> None:
    driver = Driver()
    driver.run(before)
    wanted = digest(driver.desk)
    follower = going_on(driver, made_from(driver.desk.log))
    joiner = going_on(driver, made_from(dumped(driver.desk.state)))
    assert digest(follower.desk) == wanted
    assert digest(joiner.desk) == wanted
    check_indexes(joiner.desk.state, joiner.desk.context.now_ms)
    for step in after:
        follower.run([step])
        joiner.run([step])
        assert joiner.desk.log == follower.desk.log
        assert joiner.received == follower.received
    assert digest(joiner.desk) == digest(follower.desk)


@settings(max_examples=100, deadline=None)
@given(steps=STEPS)
def test_dump_of_a_dump_is_the_same(steps: list[Step]) -> None:
    driver = Driver()
    driver.run(steps)
    first = dumped(driver.desk.state)
    assert dumped(made_from(first)) == first


def test_dump_of_nothing_is_nothing() -> None:
    assert list(dump(State())) == []


def test_id_of_a_reclaimed_queue_is_not_given_again() -> None:
    desk = Desk()
    desk.create()
    newest = desk.queue().id
    desk.write([m.QueueDeleted(newest, 1), m.QueueReclaimed(newest)])
    again = made_from(dumped(desk.state))
    assert (again.last_queue_id, again.queues, again.deleted_queues, again.names, again.deleted_names) == (
        (newest, {}, {}, {}, {})
    )


@pytest.mark.parametrize("is_purged", [True, False])
def test_sequence_of_a_message_that_is_gone_is_not_given_again(is_purged: bool) -> None:
    desk = Desk()
    desk.create()
    desk.send("stays")
    desk.send("goes")
    queue = desk.queue()
    newest = queue.last_sequence
    desk.write([m.QueuePurged(queue.id, newest + 1, 9)] if is_purged else [m.MessagesRemoved(queue.id, [newest])])
    again = made_from(dumped(desk.state))
    assert again.queues[queue.id].last_sequence == newest
    assert again.queues[queue.id].count == (0 if is_purged else 1)
    assert state_digest(again) == state_digest(desk.state)


def test_grace_of_several_takeovers_is_kept() -> None:
    desk = Desk()
    desk.create()
    desk.send()
    desk.receive(visibility_s=10)
    now_ms = desk.context.now_ms
    spans = [(now_ms + 9_000, now_ms + 12_000), (now_ms + 11_000, now_ms + 15_000)]
    desk.write([m.TookOver(term, "b", *span) for term, span in zip((5, 6), spans, strict=True)])
    again = made_from(dumped(desk.state))
    assert (again.takeover_term, again.grace.spans) == (6, spans)
    (queue,) = again.queues.values()
    assert queue.order.in_flight(now_ms + 14_999) == 1
    assert queue.order.in_flight(now_ms + 15_000) == 0


def test_chunks_and_mutations_are_bounded() -> None:
    desk = Desk()
    desk.create()
    queue = desk.queue()
    desk.write([m.MessageStored(queue.id, sequence, "x", 1, "s") for sequence in range(1, 10_001)])
    sequences = list(range(1, 5_001))
    ones = [1] * 5_000
    desk.write([m.MessagesReceived(queue.id, 5, 900, sequences, ones, ones, [5] * 5_000)])
    chunks = list(dump(desk.state))
    assert len(chunks) > 1
    assert all(len(chunk) <= CHUNK_ROWS for chunk in chunks)
    received = [x for chunk in chunks for x in chunk if isinstance(x, m.MessagesReceived)]
    assert [len(x.sequences) for x in received] == [MUTATION_ROWS_MAX] * 5
    assert state_digest(made_from(dumped(desk.state))) == state_digest(desk.state)
