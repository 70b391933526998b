"""Message move tasks from their start to each of their ends, step by step."""

import json
from base64 import b64decode, b64encode

import pytest

from elasticq.engine.apply import apply
from elasticq.engine.ordering.contract import ContentsMissing
from elasticq.engine.redrive.mover import MESSAGES_A_STEP, Mover
from elasticq.engine.residency import evict
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.dump import dump
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue, MissingParameter, OverLimit, ResourceNotFound
from elasticq.model.limits import MOVE_TASKS_LISTED_MAX
from elasticq.model.results import MoveTask
from tests.engine.desk import HOUR_S, START_MS, Desk
from tests.engine.driver import digest

PREFIX = "arn:aws:sqs:us-east-1:000000000000:"
POLICY = json.dumps({"deadLetterTargetArn": f"{PREFIX}dlq", "maxReceiveCount": 1})


class Bureau(Desk):
    """A desk with a dead-letter queue, two sources of it and a mover."""

    def __init__(self) -> None:
        super().__init__()
        self.mover = Mover()
        self.create("dlq")
        self.create("jobs", RedrivePolicy=POLICY)
        self.create("other", RedrivePolicy=POLICY)

    def die(self, count: int, url: str = "jobs") -> list[str]:
        """That many messages of ``url`` become dead letters; their MessageIds."""
        sent = [self.send(f"{url} {at}", url=url) for at in range(count)]
        for _ in range(2):
            while self.receive(10, url=url, visibility_s=1):
                pass
            self.wait(1)
        return sent

    def start(self, to: str | None = None, rate: int | None = None, source: str = "dlq") -> str:
        command = c.StartMessageMoveTask(PREFIX + source, PREFIX + to if to else None, rate)
        return self.do(command).task_handle

    def step(self, undo: Undo | None = None) -> list[m.Mutation]:
        found = self.mover.step(self.state, self.context.now_ms, self.context.term)
        self.write(found.mutations, undo)
        return found.mutations

    def finish(self) -> None:
        while self.state.moving:
            self.step()
            self.wait(0.01)

    def tasks(self, count: int | None = 10, source: str = "dlq") -> list[MoveTask]:
        return self.do(c.ListMessageMoveTasks(PREFIX + source, count)).results


@pytest.fixture
def bureau() -> Bureau:
    return Bureau()


def test_messages_arrive_as_new_ones_oldest_first(bureau: Bureau) -> None:
    old_ids = bureau.die(3)
    bureau.create("target")
    bureau.start("target")
    bureau.finish()
    assert (bureau.counts("dlq"), bureau.counts("target")) == ((0, 0, 0), (3, 0, 0))
    messages = bureau.receive(10, url="target")
    assert [message.body for message in messages] == ["jobs 0", "jobs 1", "jobs 2"]
    assert not {message.message_id for message in messages} & set(old_ids)
    for message in messages:
        assert message.attributes["ApproximateReceiveCount"] == "1"
        assert int(message.attributes["SentTimestamp"]) > START_MS + 1_000
        assert "DeadLetterQueueSourceArn" not in message.attributes


def test_without_a_destination_each_message_goes_back_to_its_source(bureau: Bureau) -> None:
    bureau.die(2)
    bureau.die(3, "other")
    bureau.start()
    bureau.finish()
    assert (bureau.counts("jobs"), bureau.counts("other"), bureau.counts("dlq")) == ((2, 0, 0), (3, 0, 0), (0, 0, 0))
    assert bureau.tasks()[0].status == "COMPLETED"


def test_list_shows_the_members_that_aws_shows(bureau: Bureau) -> None:
    bureau.die(2)
    handle = bureau.start("jobs", 5)
    started_ms = bureau.context.now_ms
    assert bureau.tasks() == [MoveTask(handle, "RUNNING", PREFIX + "dlq", PREFIX + "jobs", 5, 0, 2, None, started_ms)]
    bureau.finish()
    assert bureau.tasks() == [MoveTask(None, "COMPLETED", PREFIX + "dlq", PREFIX + "jobs", 5, 2, 2, None, started_ms)]
    bureau.start()
    bureau.finish()
    assert bureau.tasks(None) == [
        MoveTask(None, "COMPLETED", PREFIX + "dlq", None, None, 0, 0, None, bureau.tasks()[0].started_timestamp)
    ]
    assert [task.max_number_of_messages_per_second for task in bureau.tasks(10)] == [None, 5]


def test_handle_tells_task_and_source(bureau: Bureau) -> None:
    told = json.loads(b64decode(bureau.start()))
    assert sorted(told) == ["sourceArn", "taskId"]
    assert told["sourceArn"] == PREFIX + "dlq"
    (task,) = bureau.state.move_tasks.values()
    assert told["taskId"] == task.task_id


def test_step_is_bounded_and_goes_on_behind_its_cursor(bureau: Bureau) -> None:
    bureau.create("target")
    count = 2 * MESSAGES_A_STEP + 50
    for at in range(count):
        bureau.send(str(at), url="dlq")
    bureau.start("target")
    moved = [len(bureau.step()) - 2 for _ in range(3)]
    assert moved == [100, 100, 50]
    assert [task.status for task in bureau.tasks()] == ["COMPLETED"]
    assert bureau.counts("target") == (count, 0, 0)


def test_task_leaves_what_is_hidden_and_what_came_after_its_start(bureau: Bureau) -> None:
    bureau.die(2)
    bureau.receive(1, url="dlq")
    bureau.start("jobs")
    bureau.send("later", url="dlq")
    bureau.finish()
    assert (bureau.tasks()[0].approximate_number_of_messages_moved, bureau.counts("dlq")) == (1, (1, 1, 0))
    assert bureau.tasks()[0].approximate_number_of_messages_to_move == 1


def test_expired_messages_stay_behind(bureau: Bureau) -> None:
    bureau.die(1)
    bureau.do(c.SetQueueAttributes("dlq", {"MessageRetentionPeriod": "60"}))
    bureau.wait(120)
    bureau.send("young", url="dlq")
    bureau.start("jobs")
    bureau.finish()
    assert bureau.receive_one(url="jobs").body == "young"


def test_rate_is_kept_over_time_and_steps(bureau: Bureau) -> None:
    bureau.die(20)
    bureau.start("other", 5)
    for _ in range(200):
        bureau.step()
        bureau.wait(0.01)
    assert 9 <= bureau.tasks()[0].approximate_number_of_messages_moved <= 12
    bureau.wait(60)  # nobody ticked for a minute: no flood after it
    bureau.step()
    assert bureau.tasks()[0].approximate_number_of_messages_moved <= 14


def test_wait_of_a_step_is_until_its_slowest_pace_allows_the_next(bureau: Bureau) -> None:
    assert bureau.mover.step(bureau.state, START_MS, 1).wait_ms == 1_000
    bureau.die(5)
    bureau.start("other", 5)
    bureau.step()
    assert bureau.mover.step(bureau.state, bureau.context.now_ms, 1).wait_ms == 200


def test_destination_delay_counts_as_for_a_send(bureau: Bureau) -> None:
    bureau.create("late", DelaySeconds="30")
    bureau.die(1)
    bureau.start("late")
    bureau.finish()
    assert bureau.counts("late") == (0, 0, 1)


# --- other ends ------------------------------------------------------------------------


def test_cancelled_task_keeps_what_it_moved(bureau: Bureau) -> None:
    bureau.die(5)
    handle = bureau.start("other", 1)
    bureau.step()
    cancelled = bureau.do(c.CancelMessageMoveTask(handle))
    assert cancelled.moved == 1
    assert (bureau.tasks()[0].status, bureau.tasks()[0].task_handle) == ("CANCELLING", None)
    bureau.step()
    assert bureau.tasks()[0].status == "CANCELLED"
    assert (bureau.counts("dlq")[0], bureau.counts("other")[0]) == (4, 1)
    with pytest.raises(ResourceNotFound, match=r"Task does not exist\."):
        bureau.do(c.CancelMessageMoveTask(handle))
    bureau.start()


def test_deleted_destination_fails_the_task(bureau: Bureau) -> None:
    bureau.create("target")
    bureau.die(1)
    bureau.start("target")
    bureau.do(c.DeleteQueue("target"))
    bureau.step()
    assert bureau.tasks()[0].failure_reason == "AWS.SimpleQueueService.NonExistentQueue"
    assert (bureau.tasks()[0].status, bureau.counts("dlq")[0]) == ("FAILED", 1)


def test_deleted_own_source_fails_the_task(bureau: Bureau) -> None:
    bureau.die(1)
    bureau.do(c.DeleteQueue("jobs"))
    bureau.start()
    bureau.step()
    assert bureau.tasks()[0].failure_reason == "AWS.SimpleQueueService.NonExistentQueue"


def test_message_that_came_by_no_redrive_fails_a_task_without_destination(bureau: Bureau) -> None:
    bureau.die(1)
    bureau.send("sent here", url="dlq")
    bureau.start()
    bureau.step()
    (task,) = bureau.tasks()
    assert (task.status, task.failure_reason) == ("FAILED", "CouldNotDetermineMessageSource")
    assert (task.approximate_number_of_messages_moved, bureau.counts("dlq")[0]) == (1, 1)


def test_deleted_source_ends_the_task(bureau: Bureau) -> None:
    bureau.die(1)
    bureau.start("other")
    bureau.do(c.DeleteQueue("dlq"))
    bureau.step()
    assert not bureau.state.moving


def test_task_ends_after_36_hours(bureau: Bureau) -> None:
    bureau.die(5)
    bureau.start("other", 1)
    bureau.wait(36 * HOUR_S)
    bureau.step()
    assert bureau.tasks()[0].status == "FAILED"


# --- what is refused --------------------------------------------------------------------


def test_source_must_be_a_dead_letter_queue(bureau: Bureau) -> None:
    with pytest.raises(InvalidParameterValue) as caught:
        bureau.start(source="jobs")
    assert caught.value.message == "Source queue must be configured as a Dead Letter Queue."


def test_one_task_of_a_source_at_a_time(bureau: Bureau) -> None:
    bureau.start()
    with pytest.raises(InvalidParameterValue) as caught:
        bureau.start()
    assert caught.value.message == (
        "There is already a task running. Only one active task is allowed for a source queue arn at a given time."
    )


@pytest.mark.parametrize(
    ("source", "to", "parameter"), [("none", None, "SourceArn"), ("dlq", "none", "DestinationArn")]
)
def test_missing_queue_is_a_missing_resource(bureau: Bureau, source: str, to: str | None, parameter: str) -> None:
    with pytest.raises(ResourceNotFound) as caught:
        bureau.start(to, source=source)
    assert caught.value.message == f"The resource that you specified for the {parameter} parameter doesn't exist."
    assert caught.value.status == 404


def test_destination_must_be_of_the_same_type(bureau: Bureau) -> None:
    bureau.create("target.fifo", FifoQueue="true")
    with pytest.raises(InvalidParameterValue):
        bureau.start("target.fifo")


@pytest.mark.parametrize("rate", [0, 501, -1])
def test_rate_out_of_range(bureau: Bureau, rate: int) -> None:
    with pytest.raises(InvalidParameterValue):
        bureau.start("jobs", rate)


@pytest.mark.parametrize("count", [0, 11])
def test_list_size_out_of_range(bureau: Bureau, count: int) -> None:
    with pytest.raises(InvalidParameterValue):
        bureau.tasks(count)


@pytest.mark.parametrize("command", [c.StartMessageMoveTask(), c.ListMessageMoveTasks(), c.CancelMessageMoveTask()])
def test_required_members(bureau: Bureau, command: c.Command) -> None:
    with pytest.raises(MissingParameter):
        bureau.do(command)


@pytest.mark.parametrize("handle", ["x", "bm8=", b64encode(b'{"taskId": 1, "sourceArn": "a"}').decode(), "W10="])
def test_bad_handle(bureau: Bureau, handle: str) -> None:
    with pytest.raises(InvalidParameterValue) as caught:
        bureau.do(c.CancelMessageMoveTask(handle))
    assert caught.value.message == "Value for parameter TaskHandle is invalid."


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("dlq", "Task does not exist."),
        ("none", "The resource that you specified for the SourceArn parameter doesn't exist."),
    ],
)
def test_handle_of_no_task(bureau: Bureau, source: str, words: str) -> None:
    handle = b64encode(json.dumps({"taskId": "t", "sourceArn": PREFIX + source}).encode()).decode()
    with pytest.raises(ResourceNotFound) as caught:
        bureau.do(c.CancelMessageMoveTask(handle))
    assert caught.value.message == words


def test_hundred_active_tasks_are_the_most_of_an_account(bureau: Bureau) -> None:
    for at in range(101):
        bureau.create(f"dead{at}")
        bureau.create(f"from{at}", RedrivePolicy=POLICY.replace("dlq", f"dead{at}"))
    for at in range(100):
        bureau.start(source=f"dead{at}")
    with pytest.raises(OverLimit):
        bureau.start(source="dead100")


def test_ten_tasks_of_a_source_are_remembered_and_numbers_never_come_again(bureau: Bureau) -> None:
    handles = []
    for _ in range(MOVE_TASKS_LISTED_MAX + 5):
        handles.append(bureau.start())
        bureau.finish()
    assert len(bureau.tasks()) == len(bureau.state.move_tasks) == MOVE_TASKS_LISTED_MAX
    assert len(set(handles)) == len(handles)


# --- replicated ---------------------------------------------------------------------------


def test_retry_of_a_start_and_of_a_cancel_gets_the_first_answer(bureau: Bureau) -> None:
    bureau.die(1)
    start = c.StartMessageMoveTask(PREFIX + "dlq")
    first = bureau.do(start, invocation=b"s" * 16)
    assert bureau.do(start, invocation=b"s" * 16) == first
    cancel = c.CancelMessageMoveTask(first.task_handle)
    assert bureau.do(cancel, invocation=b"c" * 16) == bureau.do(cancel, invocation=b"c" * 16)


def test_each_step_is_idempotent_and_is_taken_back_by_a_roll_back(bureau: Bureau) -> None:
    bureau.die(3)
    bureau.start("other", 1)
    before = digest(bureau)
    undo: Undo = []
    mutations = bureau.step(undo)
    after = digest(bureau)
    assert after != before
    bureau.write(mutations)
    assert digest(bureau) == after
    roll_back(undo)
    assert digest(bureau) == before
    bureau.write(mutations)
    assert digest(bureau) == after


def test_new_master_goes_on_where_the_last_step_ended(bureau: Bureau) -> None:
    bureau.create("target")
    for at in range(150):
        bureau.send(str(at), url="dlq")
    bureau.start("target")
    bureau.step()
    follower = State()
    for mutation in [x for chunk in dump(bureau.state) for x in chunk]:
        apply(follower, mutation)
    bureau.state, bureau.mover = follower, Mover()
    bureau.context.term += 1
    bureau.finish()
    assert (bureau.counts("dlq")[0], bureau.counts("target")[0]) == (0, 150)
    bodies = [message.body for _ in range(15) for message in bureau.receive(10, url="target")]
    assert bodies == [str(at) for at in range(150)]


def test_cold_contents_are_asked_for_and_moved_when_they_are_there(bureau: Bureau) -> None:
    bureau.die(3)
    bureau.start("other")
    queue = bureau.queue("dlq")
    contents = dict(queue.contents)
    cold = sorted(contents)[1:]
    for sequence in cold:
        evict(bureau.state, queue.id, sequence)
    first = bureau.mover.step(bureau.state, bureau.context.now_ms, 1)
    bureau.write(first.mutations)
    assert first.missing == [(queue.id, cold)]
    assert (bureau.tasks()[0].status, bureau.tasks()[0].approximate_number_of_messages_moved) == ("RUNNING", 1)
    assert bureau.mover.step(bureau.state, bureau.context.now_ms, 1).mutations == []
    for sequence in cold:
        queue.contents[sequence] = contents[sequence]
    bureau.step()
    assert bureau.tasks()[0].approximate_number_of_messages_moved == 3


def test_dead_letter_with_a_cold_content_is_asked_for(bureau: Bureau) -> None:
    bureau.send()
    bureau.receive(visibility_s=0)
    queue = bureau.queue()
    evict(bureau.state, queue.id, next(iter(queue.contents)))
    with pytest.raises(ContentsMissing):
        bureau.receive()


# --- FIFO ------------------------------------------------------------------------------------


def test_fifo_messages_keep_their_order_and_are_deduplicated_as_sends() -> None:
    bureau = Bureau()
    policy = json.dumps({"deadLetterTargetArn": f"{PREFIX}dlq.fifo", "maxReceiveCount": 1})
    bureau.create("dlq.fifo", FifoQueue="true")
    bureau.create("jobs.fifo", FifoQueue="true", RedrivePolicy=policy)
    bureau.create("target.fifo", FifoQueue="true")
    for body in ("a", "b", "c"):
        bureau.do(c.SendMessage("dlq.fifo", body, message_group_id="g", message_deduplication_id=body))
    bureau.do(c.SendMessage("target.fifo", "b before", message_group_id="g", message_deduplication_id="b"))
    bureau.start("target.fifo", source="dlq.fifo")
    bureau.finish()
    messages = bureau.receive(10, url="target.fifo")
    assert [message.body for message in messages] == ["b before", "a", "c"]
    assert bureau.tasks(source="dlq.fifo")[0].approximate_number_of_messages_moved == 3
    assert bureau.receive(url="dlq.fifo") == []


def test_fifo_message_returns_to_its_source_within_its_deduplication_time() -> None:
    bureau = Bureau()
    policy = json.dumps({"deadLetterTargetArn": f"{PREFIX}dlq.fifo", "maxReceiveCount": 1})
    bureau.create("dlq.fifo", FifoQueue="true")
    bureau.create("jobs.fifo", FifoQueue="true", RedrivePolicy=policy)
    bureau.do(c.SendMessage("jobs.fifo", "a", message_group_id="g", message_deduplication_id="a"))
    bureau.receive(url="jobs.fifo", visibility_s=0)
    assert bureau.receive(url="jobs.fifo") == []
    bureau.start(source="dlq.fifo")
    bureau.finish()
    assert bureau.receive_one(url="jobs.fifo").body == "a"
