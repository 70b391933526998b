"""Histories on queues whose groups share: applied, taken back, dumped, whose turn it is is what a naive order says."""

from hypothesis import given, settings

from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from tests.engine.desk import replayed
from tests.engine.driver import STEPS, SharedDriver, Step, check_indexes, digest
from tests.engine.test_apply import check_roll_back
from tests.engine.views.test_dump import dumped, made_from

HISTORIES = settings(max_examples=100, deadline=None)


@HISTORIES
@given(STEPS)
def test_choice_is_that_of_a_naive_order(steps: list[Step]) -> None:
    driver = SharedDriver()
    for step in steps:
        driver.run([step])
        check_indexes(driver.desk.state, driver.desk.context.now_ms)


@HISTORIES
@given(before=STEPS, lost=STEPS, after=STEPS)
def test_rolled_back_queue_has_the_turns_of_before(before: list[Step], lost: list[Step], after: list[Step]) -> None:
    check_roll_back(SharedDriver(), before, lost, after)


@HISTORIES
@given(STEPS)
def test_followers_and_joiners_give_the_turns_of_the_master(steps: list[Step]) -> None:
    driver = SharedDriver()
    driver.run(steps)
    for state in (replayed(driver.desk.log, times=2), made_from(dumped(driver.desk.state))):
        assert state_digest(state, driver.desk.context.now_ms) == digest(driver.desk)
        check_indexes(state, driver.desk.context.now_ms)
        for queue in driver.desk.state.queues.values():
            now_ms = driver.desk.context.now_ms
            chosen = [state.queues[queue.id].contents[each].group_id for each in queue.order.choose(now_ms, 100, -1)]
            others = state.queues[queue.id].order.choose(now_ms, 100, -1)
            assert [state.queues[queue.id].contents[each].group_id for each in others] == chosen


def test_snapshot_that_lost_turns_is_another_state() -> None:
    driver = SharedDriver()
    driver.run([("batch", 2, 7), ("receive", 2, 7)])
    whole = dumped(driver.desk.state)
    without = [mutation for mutation in whole if not isinstance(mutation, m.TurnsSet)]
    assert len(without) < len(whole)
    assert state_digest(made_from(whole), driver.desk.context.now_ms) == digest(driver.desk)
    assert state_digest(made_from(without), driver.desk.context.now_ms) != digest(driver.desk)
