"""``apply``: twice is once, a log may be replayed from anywhere, roll-back is as good as reload."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.apply import apply
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model.limits import MUTATION_ROWS_MAX
from tests.engine.desk import Desk, replayed
from tests.engine.driver import STEPS, Driver, Step, check_indexes, digest
from tests.node.cluster import Solo
from tests.node.workload import scripted_workload

ROOT = Path(__file__).resolve().parents[2]


def check_roll_back(driver: Driver, before: list[Step], lost: list[Step], after: list[Step]) -> None:
    """What was lost leaves no trace, and the rest goes on as in a member that never had it."""
    driver.run(before)
    kept = len(driver.desk.log)
    driver.undo = []
    driver.run(lost)
    roll_back(driver.undo)
    del driver.desk.log[kept:]
    # As of now: ids may have left their window meanwhile, and time does not go back.
    assert digest(driver.desk) == state_digest(replayed(driver.desk.log), driver.desk.context.now_ms)
    check_indexes(driver.desk.state, driver.desk.context.now_ms)
    driver.undo = None
    driver.run(after)
    assert digest(driver.desk) == state_digest(replayed(driver.desk.log), driver.desk.context.now_ms)
    check_indexes(driver.desk.state, driver.desk.context.now_ms)


# --- laws -------------------------------------------------------------------------


@settings(max_examples=80)
@given(STEPS)
def test_each_mutation_applied_twice_is_applied_once(steps: list[Step]) -> None:
    driver = Driver()
    driver.run(steps)
    now_ms = driver.desk.context.now_ms
    twice = replayed(driver.desk.log, times=2)
    assert state_digest(twice, now_ms) == digest(driver.desk)
    check_indexes(twice, now_ms)


@settings(max_examples=80)
@given(STEPS, st.integers(0, 200))
def test_prefix_replayed_twice_and_suffix_thrice_give_the_same_rows(steps: list[Step], cut: int) -> None:
    driver = Driver()
    driver.run(steps)
    log, now_ms = driver.desk.log, driver.desk.context.now_ms
    prefix, suffix = log[: cut % len(log)], log[cut % len(log) :]
    state = replayed([*prefix, *prefix, *suffix, *suffix, *suffix])
    assert state_digest(state, now_ms) == digest(driver.desk)
    check_indexes(state, now_ms)


@settings(max_examples=120)
@given(before=STEPS, lost=STEPS, after=STEPS)
def test_rolled_back_state_is_the_state_before(before: list[Step], lost: list[Step], after: list[Step]) -> None:
    check_roll_back(Driver(), before, lost, after)


@settings(max_examples=60)
@given(STEPS)
def test_indexes_always_say_what_the_rows_say(steps: list[Step]) -> None:
    driver = Driver()
    for step in steps:
        driver.run([step])
        check_indexes(driver.desk.state, driver.desk.context.now_ms)


@settings(max_examples=40)
@given(STEPS)
def test_no_mutation_touches_more_rows_than_allowed_and_all_are_absolute(steps: list[Step]) -> None:
    driver = Driver()
    driver.run(steps)
    for mutation in driver.desk.log:
        assert len(getattr(mutation, "sequences", ())) <= MUTATION_ROWS_MAX
    assert m.decode(m.encode(driver.desk.log)) == driver.desk.log


# --- roll-back, case by case -------------------------------------------------------------


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.create()
    for number in range(4):
        made.send(str(number))
    made.send("delayed", delay_s=5)
    return made


def bodies(desk: Desk) -> list[str]:
    """What choose would hand out, longest available first."""
    queue = desk.queue()
    return [queue.contents[x].body for x in queue.order.choose(desk.context.now_ms, 100, -1)]


@pytest.mark.parametrize(
    "command",
    [
        c.SendMessage(queue_url="jobs", message_body="lost"),
        c.SendMessage(queue_url="jobs", message_body="lost", delay_seconds=3),
        c.ReceiveMessage(queue_url="jobs", max_number_of_messages=3),
        c.PurgeQueue(queue_url="jobs"),
        c.DeleteQueue(queue_url="jobs"),
        c.SetQueueAttributes(queue_url="jobs", attributes={"DelaySeconds": "9"}),
        c.CreateQueue(queue_name="other"),
    ],
    ids=lambda command: type(command).__name__,
)
@pytest.mark.parametrize("invocation", [b"", b"i" * 16])
def test_roll_back_of_one_command(desk: Desk, command: c.Command, invocation: bytes) -> None:
    undo: Undo = []
    rows, chosen, counts = digest(desk), bodies(desk), desk.counts()
    desk.do(command, invocation=invocation, undo=undo)
    assert digest(desk) != rows
    roll_back(undo)
    assert (digest(desk), bodies(desk), desk.counts()) == (rows, chosen, counts)
    assert not undo


def test_roll_back_of_a_receive_keeps_who_goes_first(desk: Desk) -> None:
    """What had come back longest ago goes first again, also after its receive was taken back."""
    for wait_s in (1, 2):
        desk.receive_one(visibility_s=wait_s)
    desk.receive(2)
    desk.wait(3)
    assert bodies(desk) == ["0", "1"]
    undo: Undo = []
    desk.receive_one(undo=undo)
    roll_back(undo)
    assert bodies(desk) == ["0", "1"]


def test_roll_back_of_purge_and_sends_above_it(desk: Desk) -> None:
    undo: Undo = []
    rows = digest(desk)
    desk.receive(1, undo=undo)
    desk.do(c.PurgeQueue(queue_url="jobs"), undo=undo)
    desk.do(c.SendMessage(queue_url="jobs", message_body="above"), undo=undo)
    desk.do(c.DeleteQueue(queue_url="jobs"), undo=undo)
    desk.do(c.CreateQueue(queue_name="jobs"), undo=undo)
    roll_back(undo)
    assert digest(desk) == rows
    assert bodies(desk) == ["0", "1", "2", "3"]


# --- single writers -------------------------------------------------------------------


def test_mutations_of_unknown_queues_and_rows_change_nothing() -> None:
    desk = Desk()
    desk.create()
    before = digest(desk)
    known = desk.queue().id
    for queue_id in (known, 99):
        for mutation in (
            m.MessagesReceived(queue_id, 1, 2, [5], [1], [1], [1]),
            m.VisibilityChanged(queue_id, [5], [9]),
            m.MessagesRemoved(queue_id, [5]),
            m.ReceiveReturned(queue_id, [5], [1], [0], [0], 3, b""),
        ):
            apply(desk.state, mutation)
    for mutation in (
        m.QueueDeleted(99, 1),
        m.QueueReclaimed(99),
        m.QueuePurged(99, 5, 1),
        m.QueueAttributesSet(99, {}, 1),
    ):
        apply(desk.state, mutation)
    assert digest(desk) == before


# --- other processes --------------------------------------------------------------------


def replay_in_process(log: bytes, hash_seed: str, clock_s: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.replay", clock_s],
        input=log,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_log_replayed_under_other_hash_seeds_and_clocks_gives_the_same_rows() -> None:
    solo = Solo(volatile=False)
    scripted_workload(solo)
    log = msgspec.msgpack.encode(solo.entries)
    assert len(solo.entries) > 200
    outputs = {replay_in_process(log, seed, clock) for seed, clock in (("1", "0"), ("2", "4000000000"))}
    assert outputs == {state_digest(solo.node.state).hex() + "\n"}
