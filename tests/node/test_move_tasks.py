"""Dead letters and move tasks in a node: who is woken, what is on disk only, what a new master goes on with."""

import json

import pytest

from elasticq.engine.views.digest import state_digest
from elasticq.model import commands as c
from elasticq.model.results import MoveTask, ReceivedMessage, ReceiveMessageResult
from tests.node.cluster import Cluster, Solo
from tests.node.test_content_cache import Deep

PREFIX = "arn:aws:sqs:us-east-1:000000000000:"
POLICY = json.dumps({"deadLetterTargetArn": f"{PREFIX}dlq", "maxReceiveCount": 1})
TASKS = c.ListMessageMoveTasks(f"{PREFIX}dlq", 10)


def redrive(solo: Solo) -> None:
    solo.create("dlq")
    solo.do(c.SetQueueAttributes("jobs", {"RedrivePolicy": POLICY}))


@pytest.fixture
def solo() -> Solo:
    made = Solo()
    made.create()
    redrive(made)
    return made


def poll(solo: Solo, url: str, limit: int = 10) -> int:
    return solo.start_call(c.ReceiveMessage(url, max_number_of_messages=limit, wait_time_seconds=20))


def bodies(solo: Solo, ticket: int) -> list[str] | None:
    """None while it waits."""
    answers = solo.answers(ticket)
    if not answers:
        return None
    (outcome,) = answers
    assert isinstance(outcome, ReceiveMessageResult)
    return [message.body for message in outcome.messages]


def task(solo: Solo) -> MoveTask:
    return solo.do(TASKS).results[0]


# --- dead letters ----------------------------------------------------------------------


def test_dead_letter_wakes_who_waits_at_its_queue(solo: Solo) -> None:
    waiting = poll(solo, "dlq")
    solo.send("bad")
    solo.receive(visibility_s=0)
    assert bodies(solo, waiting) is None
    assert solo.receive() == []
    assert bodies(solo, waiting) == ["bad"]


def test_dead_letter_that_a_waiting_receive_meets_wakes_the_next(solo: Solo) -> None:
    solo.send("bad")
    solo.receive(visibility_s=2)
    dead, alive = poll(solo, "dlq"), poll(solo, "jobs")
    solo.advance(2_000)
    assert bodies(solo, dead) == ["bad"]
    assert bodies(solo, alive) is None
    solo.send("good")
    assert bodies(solo, alive) == ["good"]


def test_receive_that_meets_dead_letters_only_waits_on(solo: Solo) -> None:
    for _ in range(25):
        solo.send("bad")
    while solo.receive(10, visibility_s=1):
        pass
    solo.advance(1_500)
    waiting = poll(solo, "jobs")
    assert bodies(solo, waiting) is None
    assert solo.node.state.queue("000000000000", "dlq").count == 25
    solo.advance(20_000)
    assert bodies(solo, waiting) == []


def test_queue_of_dead_letters_is_looked_behind_in_one_receive(solo: Solo) -> None:
    policy = {"deadLetterTargetArn": f"{PREFIX}dlq", "maxReceiveCount": 2}
    solo.do(c.SetQueueAttributes("jobs", {"RedrivePolicy": json.dumps(policy)}))

    def receive_all() -> list[ReceivedMessage]:
        return [message for batch in iter(lambda: solo.receive(10, visibility_s=1), []) for message in batch]

    for _ in range(25):
        solo.send("bad")
    receive_all()
    solo.advance(1_500)
    solo.send("good")
    (good,) = (message for message in receive_all() if message.body == "good")
    solo.do(c.ChangeMessageVisibility("jobs", good.receipt_handle, 2))  # so it returns behind the dead letters
    solo.advance(2_500)
    assert [message.body for message in solo.receive(1)] == ["good"]
    assert solo.node.state.queue("000000000000", "jobs").count == 1


def test_two_queues_that_are_each_others_dead_letter_queues_come_to_rest(solo: Solo) -> None:
    solo.do(c.SetQueueAttributes("dlq", {"RedrivePolicy": POLICY.replace("dlq", "jobs")}))
    solo.send("ball")
    for _ in range(5):
        assert len(solo.receive(visibility_s=0)) == 1
        waiting = poll(solo, "dlq")
        assert solo.receive() == []
        assert bodies(solo, waiting) == ["ball"]
        solo.advance(30_000)
        waiting = poll(solo, "jobs")
        assert solo.do(c.ReceiveMessage("dlq")) == ReceiveMessageResult()
        assert bodies(solo, waiting) == ["ball"]
        solo.advance(30_000)
        waiting = poll(solo, "dlq")
        assert solo.receive() == []
        assert bodies(solo, waiting) == ["ball"]
        solo.advance(30_000)
        solo.do(c.ReceiveMessage("dlq"))


def test_dead_letter_on_disk_is_fetched_to_be_moved() -> None:
    deep = Deep()
    redrive(deep)
    deep.send("bad")
    deep.receive(visibility_s=0)
    deep.store()
    deep.restart()
    deep.advance(15_000)  # the grace after a takeover
    assert deep.deep_do(c.ReceiveMessage("jobs", wait_time_seconds=0)) == ReceiveMessageResult()
    deep.store()
    deep.restart()
    result = deep.deep_do(c.ReceiveMessage("dlq", message_system_attribute_names=["All"]))
    (message,) = result.messages
    assert (message.body, message.attributes["DeadLetterQueueSourceArn"]) == ("bad", PREFIX + "jobs")
    assert message.attributes["ApproximateReceiveCount"] == "2"


# --- move tasks --------------------------------------------------------------------------


def fill(solo: Solo, count: int) -> None:
    for at in range(count):
        solo.do(c.SendMessage("dlq", str(at)))


def test_task_runs_by_itself_and_ends(solo: Solo) -> None:
    fill(solo, 250)
    solo.do(c.StartMessageMoveTask(f"{PREFIX}dlq", f"{PREFIX}jobs"))
    assert task(solo).status == "RUNNING"
    solo.advance(500)
    assert (task(solo).status, task(solo).approximate_number_of_messages_moved) == ("COMPLETED", 250)
    assert solo.node.state.queue("000000000000", "jobs").count == 250


def test_moved_message_wakes_who_waits_at_its_destination(solo: Solo) -> None:
    fill(solo, 1)
    waiting = poll(solo, "jobs")
    solo.do(c.StartMessageMoveTask(f"{PREFIX}dlq", f"{PREFIX}jobs"))
    solo.advance(100)
    assert bodies(solo, waiting) == ["0"]


def test_pace_is_kept_by_ticks(solo: Solo) -> None:
    fill(solo, 60)
    solo.do(c.StartMessageMoveTask(f"{PREFIX}dlq", f"{PREFIX}jobs", 10))
    solo.advance(3_000)
    assert 29 <= task(solo).approximate_number_of_messages_moved <= 33
    solo.advance(4_000)
    assert task(solo).status == "COMPLETED"


def test_task_goes_on_after_a_restart_with_contents_on_disk() -> None:
    deep = Deep()
    redrive(deep)
    fill(deep, 600)
    deep.do(c.StartMessageMoveTask(f"{PREFIX}dlq", f"{PREFIX}jobs"))
    deep.advance(15)
    assert 0 < task(deep).approximate_number_of_messages_moved < 600
    deep.store()
    deep.restart()
    for _ in range(200):
        deep.advance(10)
        deep.answer_all()
        if task(deep).status != "RUNNING":
            break
    assert (task(deep).status, task(deep).approximate_number_of_messages_moved) == ("COMPLETED", 600)
    deep.store()
    found = []
    while len(found) < 600:
        found += deep.deep_do(c.ReceiveMessage("jobs", max_number_of_messages=10)).messages
    assert [message.body for message in found] == [str(at) for at in range(600)]


def test_new_master_goes_on_and_nothing_moves_twice() -> None:
    cluster = Cluster()
    first = cluster.elect()
    cluster.do(first, c.CreateQueue("dlq"))
    cluster.do(first, c.CreateQueue("jobs", {"RedrivePolicy": POLICY}))
    for at in range(40):
        cluster.do(first, c.SendMessage("dlq", str(at)))
    cluster.do(first, c.StartMessageMoveTask(f"{PREFIX}dlq", f"{PREFIX}jobs", 20))
    cluster.advance(400)
    moved = cluster.do(first, TASKS).results[0].approximate_number_of_messages_moved
    assert 0 < moved < 40
    cluster.crash(first)
    second = cluster.elect()
    assert second != first
    cluster.advance(6_000)
    (shown,) = cluster.do(second, TASKS).results
    assert (shown.status, shown.approximate_number_of_messages_moved) == ("COMPLETED", 40)
    found = [
        message.body
        for _ in range(4)
        for message in cluster.do(second, c.ReceiveMessage("jobs", max_number_of_messages=10)).messages
    ]
    assert found == [str(at) for at in range(40)]
    cluster.advance(300)
    assert len({state_digest(member.node.state) for member in cluster.members.values()}) == 1
