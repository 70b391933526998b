"""Histories on FIFO queues: applied, taken back, dumped, they always are what the log says."""

from hypothesis import example, given, settings

from elasticq.engine.apply import apply
from elasticq.engine.state import State
from elasticq.engine.views.digest import state_digest
from elasticq.engine.writers.contract import roll_back
from tests.engine.driver import STEPS, FifoDriver, Step, check_indexes, digest
from tests.engine.test_apply import check_roll_back
from tests.engine.views.test_dump import dumped, made_from


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_index_always_says_what_the_rows_say(steps: list[Step]) -> None:
    driver = FifoDriver()
    for step in steps:
        driver.run([step])
        check_indexes(driver.desk.state, driver.desk.context.now_ms)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_each_mutation_applied_twice_is_applied_once(steps: list[Step]) -> None:
    driver = FifoDriver()
    driver.run(steps)
    state = State()
    for mutation in driver.desk.log:
        apply(state, mutation)
        apply(state, mutation)
    assert state_digest(state, driver.desk.context.now_ms) == digest(driver.desk)
    check_indexes(state, driver.desk.context.now_ms)


@settings(max_examples=150, deadline=None)
@given(before=STEPS, lost=STEPS, after=STEPS)
def test_rolled_back_state_is_the_state_before(before: list[Step], lost: list[Step], after: list[Step]) -> None:
    check_roll_back(FifoDriver(), before, lost, after)


def test_numbers_given_anew_after_a_roll_back_have_their_own_delay() -> None:
    driver = FifoDriver()
    driver.undo = []
    driver.run([("batch", 4, 2)])
    roll_back(driver.undo)
    driver.undo = None
    driver.run([("delayed", 4, 5), ("wait", 1, 6), ("batch", 0, 3)])
    check_indexes(driver.desk.state, driver.desk.context.now_ms)


def going_on(driver: FifoDriver, state: State) -> FifoDriver:
    """Another driver over ``state`` that knows what the clients of the first one know."""
    other = FifoDriver()
    other.desk.state = state
    other.desk.context.now_ms, other.desk.context.term = driver.desk.context.now_ms, driver.desk.context.term
    other.handles, other.received = list(driver.handles), list(driver.received)
    other.guids, other.tasks = driver.guids, list(driver.tasks)
    other.desk.log = list(driver.desk.log)
    return other


@settings(max_examples=200, deadline=None)
@given(before=STEPS, after=STEPS)
@example(  # a task fails behind a message that has expired
    before=[("send", 0, 0), ("wait", 0, 7), ("send", 0, 1), ("sweep", 0, 0), ("start_moving", 0, 4)],
    after=[("move", 0, 0)],
)
def test_dump_goes_on_as_a_follower_does(before: list[Step], after: list[Step]) -> None:
    driver = FifoDriver()
    driver.run(before)
    follower = going_on(driver, made_from(driver.desk.log))
    joiner = going_on(driver, made_from(dumped(driver.desk.state)))
    assert digest(follower.desk) == digest(joiner.desk) == digest(driver.desk)
    check_indexes(joiner.desk.state, joiner.desk.context.now_ms)
    for step in after:
        follower.run([step])
        joiner.run([step])
        assert joiner.desk.log == follower.desk.log
        assert joiner.received == follower.received
    assert digest(joiner.desk) == digest(follower.desk)
