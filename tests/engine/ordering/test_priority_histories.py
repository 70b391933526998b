"""Histories on priority queues: applied, taken back, dumped, the next message always is what the log says."""

from hypothesis import given, settings

from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from tests.engine.desk import replayed
from tests.engine.driver import STEPS, PriorityDriver, Step, check_indexes, check_priorities, digest
from tests.engine.test_apply import check_roll_back
from tests.engine.views.test_dump import dumped, made_from

HISTORIES = settings(max_examples=150, deadline=None)


@HISTORIES
@given(STEPS)
def test_choice_is_by_priority_then_arrival(steps: list[Step]) -> None:
    driver = PriorityDriver()
    for step in steps:
        driver.run([step])
        check_indexes(driver.desk.state, driver.desk.context.now_ms)
        check_priorities(driver.desk)


@HISTORIES
@given(before=STEPS, lost=STEPS, after=STEPS)
def test_rolled_back_queue_has_the_priorities_of_before(
    before: list[Step], lost: list[Step], after: list[Step]
) -> None:
    check_roll_back(PriorityDriver(), before, lost, after)


@HISTORIES
@given(STEPS)
def test_followers_and_joiners_know_the_priorities_of_the_master(steps: list[Step]) -> None:
    driver = PriorityDriver()
    driver.run(steps)
    for state in (replayed(driver.desk.log, times=2), made_from(dumped(driver.desk.state))):
        assert state_digest(state, driver.desk.context.now_ms) == digest(driver.desk)
        check_indexes(state, driver.desk.context.now_ms)


def test_snapshot_that_lost_changed_priorities_is_another_state() -> None:
    driver = PriorityDriver()
    driver.run([("send", 4, 0), ("tag", 0, 0), ("tag", 0, 1), ("tag", 0, 2)])
    whole = dumped(driver.desk.state)
    without = [mutation for mutation in whole if not isinstance(mutation, m.PrioritiesSet)]
    assert len(without) < len(whole)
    assert state_digest(made_from(whole), driver.desk.context.now_ms) == digest(driver.desk)
    assert state_digest(made_from(without), driver.desk.context.now_ms) != digest(driver.desk)
