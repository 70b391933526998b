"""Histories on fair queues: applied, taken back, dumped, who goes first always is what the rows say."""

import pytest
from hypothesis import HealthCheck, example, given, settings

from elasticq.engine.ordering import fair
from elasticq.engine.views.digest import state_digest
from tests.engine.desk import replayed
from tests.engine.driver import STEPS, FairDriver, Step, check_indexes, digest
from tests.engine.test_apply import check_roll_back
from tests.engine.views.test_dump import dumped, made_from

HISTORIES = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


# Without its bound of 1 or 2 the histories have no noisy group.
pytestmark = pytest.mark.pure


@pytest.fixture(params=[1, 2], autouse=True)
def noisy_min(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few messages in flight are many here."""
    monkeypatch.setattr(fair, "NOISY_MIN", request.param)


@HISTORIES
@example([("delayed", 0, 5), ("wait", 0, 4), ("delayed", 0, 0)])
@given(STEPS)
def test_choice_is_fair_by_the_rows(steps: list[Step]) -> None:
    driver = FairDriver()
    for step in steps:
        driver.run([step])
        check_indexes(driver.desk.state, driver.desk.context.now_ms)


# One of two messages of a group whose delays ended together is received, and that is rolled back: it is first again.
@HISTORIES
@example(before=[("attributes", 1, 1), ("batch", 1, 1)], lost=[("wait", 0, 2), ("again", 1, 1)], after=[])
@given(before=STEPS, lost=STEPS, after=STEPS)
def test_rolled_back_queue_is_as_fair_as_before(before: list[Step], lost: list[Step], after: list[Step]) -> None:
    check_roll_back(FairDriver(), before, lost, after)


@HISTORIES
@given(STEPS)
def test_followers_and_joiners_are_as_fair_as_the_master(steps: list[Step]) -> None:
    driver = FairDriver()
    driver.run(steps)
    for state in (replayed(driver.desk.log, times=2), made_from(dumped(driver.desk.state))):
        assert state_digest(state, driver.desk.context.now_ms) == digest(driver.desk)
        check_indexes(state, driver.desk.context.now_ms)
