"""Retries: a call with the invocation id of an executed one gets its answer again and changes nothing."""

import pytest
from msgspec.structs import asdict

from elasticq.engine import execute, retry_answers
from elasticq.engine.retry_answers import FORGOTTEN, Retry
from elasticq.engine.stored import invocations
from elasticq.engine.stored.invocations import GENERATION_MS
from elasticq.model import commands as c
from elasticq.model import topic_commands as t
from elasticq.model.errors import InvalidParameterValue, QueueDoesNotExist, RequestThrottled
from elasticq.model.limits import INVOCATION_FAILURES_BYTES_MAX, INVOCATION_WINDOW_MS
from elasticq.model.results import EmptyResult, Result
from tests.engine.desk import Desk


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.create()
    return made


GUID = b"g" * 16


def test_two_sends_with_one_invocation_id_are_one_message(desk: Desk) -> None:
    first = desk.send("once", invocation=GUID)
    desk.wait(10)
    written = len(desk.log)
    assert desk.send("once", invocation=GUID) == first
    assert len(desk.log) == written
    assert desk.counts() == (1, 0, 0)
    assert desk.send("once", invocation=b"h" * 16) != first


def test_a_retried_send_is_known_after_delete_and_purge(desk: Desk) -> None:
    first = desk.send(invocation=GUID)
    desk.do(c.DeleteMessage(queue_url="jobs", receipt_handle=desk.receive_one().receipt_handle))
    desk.do(c.PurgeQueue(queue_url="jobs"))
    assert desk.send(invocation=GUID) == first
    assert desk.counts() == (0, 0, 0)


def test_a_guid_is_forgotten_after_its_window(desk: Desk) -> None:
    first = desk.send(invocation=GUID)
    desk.wait(INVOCATION_WINDOW_MS / 1_000 - 0.001)
    assert desk.send(invocation=GUID) == first
    desk.wait(0.001)
    assert desk.send(invocation=GUID) != first


def test_a_retried_batch_gets_the_same_answer_failures_too(desk: Desk) -> None:
    entries = [
        c.SendMessageBatchEntry(id="a", message_body="one"),
        c.SendMessageBatchEntry(id="b", message_body="\x00"),
        c.SendMessageBatchEntry(id="c", message_body="three"),
    ]
    command = c.SendMessageBatch(queue_url="jobs", entries=entries)
    first = desk.do(command, invocation=GUID)
    assert desk.do(command, invocation=GUID) == first
    assert [(x.id, x.position) for x in first.successful] == [("a", 0), ("c", 2)]
    assert desk.counts() == (2, 0, 0)


def test_retried_deletes_and_changes_get_the_same_answer(desk: Desk) -> None:
    for _ in range(2):
        desk.send()
    one, two = (x.receipt_handle for x in desk.receive(2))
    change = c.ChangeMessageVisibilityBatch(
        queue_url="jobs",
        entries=[
            c.ChangeMessageVisibilityBatchEntry(id="a", receipt_handle=one, visibility_timeout=9),
            c.ChangeMessageVisibilityBatchEntry(id="b", receipt_handle="bad", visibility_timeout=9),
        ],
    )
    delete = c.DeleteMessageBatch(
        queue_url="jobs",
        entries=[
            c.DeleteMessageBatchEntry(id="a", receipt_handle=two),
            c.DeleteMessageBatchEntry(id="b", receipt_handle="bad"),
        ],
    )
    for guid, command in ((b"c" * 16, change), (b"d" * 16, delete)):
        first = desk.do(command, invocation=guid)
        written = len(desk.log)
        assert desk.do(command, invocation=guid) == first
        assert len(desk.log) == written


def test_a_retried_change_is_not_made_again(desk: Desk) -> None:
    desk.send()
    handle = desk.receive_one().receipt_handle
    command = c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=handle, visibility_timeout=10)
    desk.do(command, invocation=GUID)
    desk.wait(5)
    desk.do(command, invocation=GUID)
    desk.wait(5)
    assert desk.counts() == (1, 0, 0)


def test_a_command_that_changed_nothing_leaves_no_row(desk: Desk) -> None:
    desk.receive(1, invocation=GUID)
    with pytest.raises(Exception, match="MessageBody"):
        desk.send("", invocation=b"h" * 16)
    desk.do(c.GetQueueAttributes(queue_url="jobs", attribute_names=["All"]), invocation=b"i" * 16)
    assert desk.state.invocations.count == 0
    desk.send()
    assert len(desk.receive(1, invocation=GUID)) == 1


def in_flight(desk: Desk) -> str:
    """The handle of a message whose visibility has ended by now."""
    desk.send()
    handle = desk.receive_one(visibility_s=1).receipt_handle
    desk.wait(2)
    return handle


@pytest.mark.parametrize("is_batch", [False, True])
def test_change_of_a_visibility_that_had_ended_is_a_success_at_its_retry_too(desk: Desk, is_batch: bool) -> None:
    handle = in_flight(desk)
    command: c.Command = c.ChangeMessageVisibility("jobs", handle, 30)
    if is_batch:
        entries = [c.ChangeMessageVisibilityBatchEntry(id="a", receipt_handle=handle, visibility_timeout=30)]
        command = c.ChangeMessageVisibilityBatch("jobs", entries=entries)
    first = desk.do(command, invocation=GUID)
    assert len(desk.receive(1, visibility_s=30)) == 1, "it had no effect"
    desk.do(c.DeleteMessage("jobs", handle))
    desk.do(c.PurgeQueue("jobs"))
    assert desk.do(command, invocation=GUID) == first
    with pytest.raises(InvalidParameterValue):
        desk.do(c.ChangeMessageVisibility("jobs", handle, 30), invocation=b"other call......")


def test_delete_of_what_is_gone_is_a_success_at_its_retry_too(desk: Desk) -> None:
    handle = in_flight(desk)
    desk.do(c.DeleteMessage("jobs", handle))
    command = c.DeleteMessage("jobs", handle)
    desk.do(command, invocation=GUID)
    desk.do(c.DeleteQueue("jobs"))
    assert desk.do(command, invocation=GUID) == EmptyResult()
    with pytest.raises(QueueDoesNotExist):
        desk.do(command)


def test_words_of_many_failures_are_not_remembered(desk: Desk) -> None:
    bad = [c.DeleteMessageBatchEntry(id=f"b{at}", receipt_handle=f"{at}" * 250) for at in range(9)]
    desk.send()
    good = c.DeleteMessageBatchEntry(id="good", receipt_handle=desk.receive_one().receipt_handle)
    command = c.DeleteMessageBatch(queue_url="jobs", entries=[*bad, good])
    first = desk.do(command, invocation=GUID)
    again = desk.do(command, invocation=GUID)
    assert (again.successful, [(x.id, x.code) for x in again.failed]) == (
        first.successful,
        [(x.id, x.code) for x in first.failed],
    )
    assert {x.message for x in again.failed} == {FORGOTTEN}
    ((_, row),) = desk.state.invocations.rows(0)
    assert len(row.detail) < INVOCATION_FAILURES_BYTES_MAX


@pytest.mark.pure
def test_without_room_for_details_batches_wait_and_other_calls_are_not_remembered(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invocations, "INVOCATION_DETAILS_BYTES_MAX", 1_000)
    batch = c.SendMessageBatch(queue_url="jobs", entries=[c.SendMessageBatchEntry(id="a", message_body="x")])
    for number in range(4):
        desk.do(batch, invocation=bytes([number]) * 16)
    with pytest.raises(RequestThrottled):
        desk.do(batch, invocation=b"5" * 16)
    desk.send(invocation=b"6" * 16)
    desk.receive(1, invocation=b"7" * 16)
    assert [key[:1] for key, _ in desk.state.invocations.rows(0)] == [b"\0", b"\1", b"\2", b"\3", b"6"]
    desk.wait((INVOCATION_WINDOW_MS + 2 * GENERATION_MS) / 1_000)
    desk.do(batch, invocation=b"8" * 16)
    assert desk.state.invocations.count == 1


def test_every_kind_of_retry_is_that_of_a_command() -> None:
    made = {name for name, each in vars(retry_answers).items() if isinstance(each, Retry)}
    used = {each.retry for each in execute.HANDLERS.values()}
    assert {name for name in made if getattr(retry_answers, name) not in used} == set()


TOPIC = "arn:aws:sns:us-east-1:000000000000:news"
JOBS, DEAD = (f"arn:aws:sqs:us-east-1:000000000000:{name}" for name in ("jobs", "dead"))
ONCE: list[c.Command] = [
    c.CreateQueue(queue_name="more"),
    c.SetQueueAttributes(queue_url="jobs", attributes={"DelaySeconds": "1"}),
    c.SendMessageBatch(
        queue_url="jobs",
        entries=[
            c.SendMessageBatchEntry(id="a", message_body="x"),
            c.SendMessageBatchEntry(id="b", message_body="x", delay_seconds=-1),
        ],
    ),
    c.TagQueue(queue_url="jobs", tags={"a": "b"}),
    c.AddPermission(queue_url="jobs", label="l", aws_account_ids=["123456789012"], actions=["SendMessage"]),
    c.PurgeQueue(queue_url="jobs"),
    c.StartMessageMoveTask(source_arn=DEAD),
    c.DeleteQueue(queue_url="jobs"),
    t.CreateTopic(name="other"),
    t.Publish(topic_arn=TOPIC, message="x"),
    t.PublishBatch(topic_arn=TOPIC, publish_batch_request_entries=[t.PublishBatchRequestEntry(id="a", message="x")]),
    t.Subscribe(topic_arn=TOPIC, protocol="sqs", endpoint=JOBS),
    t.TagResource(resource_arn=TOPIC, tags=[t.Tag(key="a", value="b")]),
    t.SetTopicAttributes(topic_arn=TOPIC, attribute_name="DisplayName", attribute_value="n"),
    t.DeleteTopic(topic_arn=TOPIC),
]


def shown(result: Result) -> dict[str, object]:
    """Return what a client sees: counts and topic of a publish are for the metrics, which count it once."""
    return {name: value for name, value in asdict(result).items() if name not in ("counts", "topic")}


@pytest.mark.parametrize("command", ONCE, ids=lambda command: type(command).__name__)
def test_retry_gets_the_answer_of_the_first_attempt_and_changes_nothing(command: c.Command, desk: Desk) -> None:
    desk.do(c.CreateQueue(queue_name="dead"))
    policy = f'{{"deadLetterTargetArn": "{DEAD}", "maxReceiveCount": 1}}'
    desk.do(c.SetQueueAttributes(queue_url="jobs", attributes={"RedrivePolicy": policy}))
    desk.do(t.CreateTopic(name="news"))
    desk.do(t.Subscribe(topic_arn=TOPIC, protocol="sqs", endpoint=DEAD))
    first = desk.do(command, invocation=GUID)
    written = len(desk.log)
    again = desk.do(command, invocation=GUID)
    assert shown(again) == shown(first)
    assert len(desk.log) == written


def test_full_history_refuses_sends_and_publishes_only() -> None:
    refused = {kind.__name__ for kind, each in execute.HANDLERS.items() if each.retry.is_send}
    assert refused == {"SendMessage", "SendMessageBatch", "Publish", "PublishBatch"}
