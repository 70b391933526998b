"""Calls that name a consumer group act only for who holds the queue now."""

import pytest

from elasticq.model import commands as c
from elasticq.model.errors import ElasticqNotHolder, MissingParameter
from elasticq.model.group_results import GroupViewResult
from elasticq.model.results import EmptyResult, ReceiveMessageResult
from tests.engine.group_desk import GroupDesk

QUEUE = "q-00000"


@pytest.fixture
def desk() -> GroupDesk:
    made = GroupDesk()
    made.group()
    made.queues(2)
    return made


def token_of(view: GroupViewResult, queue: str = QUEUE) -> int:
    return next(each.token for each in (*view.assigned, *view.revoking) if each.resource == queue)


def receive(desk: GroupDesk, token: int | None, *, queue: str = QUEUE, group: str = "g", **more: object) -> list[str]:
    """Handles of all messages."""
    command = c.ReceiveMessage(
        queue, max_number_of_messages=10, visibility_timeout=600, elasticq_group=group, elasticq_token=token
    )
    for name, value in more.items():
        setattr(command, name, value)
    result = desk.do(command)
    assert isinstance(result, ReceiveMessageResult)
    return [message.receipt_handle for message in result.messages]


def changes(queue: str, handle: str, token: int, group: str = "g") -> list[c.Command]:
    fence = {"elasticq_group": group, "elasticq_token": token}
    return [
        c.ChangeMessageVisibility(queue, handle, 60, **fence),
        c.ChangeMessageVisibilityBatch(queue, [c.ChangeMessageVisibilityBatchEntry("1", handle, 60)], **fence),
        c.DeleteMessageBatch(queue, [c.DeleteMessageBatchEntry("1", handle)], **fence),
        c.DeleteMessage(queue, handle, **fence),
    ]


def refused(desk: GroupDesk, *commands: c.Command) -> None:
    before = len(desk.log)
    for command in commands:
        with pytest.raises(ElasticqNotHolder):
            desk.do(command)
    assert len(desk.log) == before


def test_the_holder_receives_changes_and_deletes(desk: GroupDesk) -> None:
    token = token_of(desk.join())
    desk.send(url=QUEUE)
    (handle,) = receive(desk, token)
    for command in changes(QUEUE, handle, token):
        desk.do(command)
    assert desk.queue(QUEUE).count == 0


def test_any_other_token_group_and_queue_is_refused(desk: GroupDesk) -> None:
    view = desk.join()
    token = token_of(view)
    desk.send(url=QUEUE)
    (handle,) = receive(desk, token)
    refused(desk, *changes(QUEUE, handle, token - 1), *changes(QUEUE, handle, token_of(view, "q-00001")))
    refused(desk, *changes(QUEUE, handle, token, "h"), *changes("q-00001", handle, token))
    refused(desk, c.ReceiveMessage(QUEUE, elasticq_group="g", elasticq_token=-(2**63)))
    with pytest.raises(MissingParameter, match="ElasticqToken"):
        receive(desk, None)


def test_who_was_asked_to_give_back_finishes_but_receives_nothing(desk: GroupDesk) -> None:
    first = desk.join()
    desk.send(url="q-00001")
    token = token_of(first, "q-00001")
    (handle,) = receive(desk, token, queue="q-00001")
    desk.join()
    assert [each.resource for each in desk.beat(first).revoking] == ["q-00001"]
    refused(desk, c.ReceiveMessage("q-00001", elasticq_group="g", elasticq_token=token))
    for command in changes("q-00001", handle, token):
        desk.do(command)
    desk.give_back(first)
    refused(desk, *changes("q-00001", handle, token))


def test_a_session_that_is_over_holds_nothing_even_before_anybody_noticed(desk: GroupDesk) -> None:
    token = token_of(desk.join())
    desk.send(url=QUEUE)
    (handle,) = receive(desk, token)
    desk.wait(10)
    refused(desk, *changes(QUEUE, handle, token))
    refused(desk, c.ReceiveMessage(QUEUE, elasticq_group="g", elasticq_token=token))


def test_a_queue_that_was_made_anew_is_not_the_one_of_the_token(desk: GroupDesk) -> None:
    token = token_of(desk.join())
    desk.do(c.DeleteQueue(QUEUE))
    desk.create(QUEUE)
    refused(desk, c.ReceiveMessage(QUEUE, elasticq_group="g", elasticq_token=token))
    desk.sweep_groups()
    refused(desk, c.ReceiveMessage(QUEUE, elasticq_group="g", elasticq_token=token))


def test_a_retry_of_a_receive_gets_nothing_once_the_queue_is_another_s(desk: GroupDesk) -> None:
    first = desk.join()
    desk.send(url=QUEUE)
    command = c.ReceiveMessage(QUEUE, elasticq_group="g", elasticq_token=token_of(first))
    assert len(desk.do(command, invocation=b"r" * 16).messages) == 1
    assert len(desk.do(command, invocation=b"r" * 16).messages) == 1
    desk.leave(first)
    with pytest.raises(ElasticqNotHolder):
        desk.do(command, invocation=b"r" * 16)


def test_a_delete_that_was_done_is_told_so_again(desk: GroupDesk) -> None:
    first = desk.join()
    desk.send(url=QUEUE)
    (handle,) = receive(desk, token_of(first))
    command = c.DeleteMessage(QUEUE, handle, elasticq_group="g", elasticq_token=token_of(first))
    assert desk.do(command, invocation=b"d" * 16) == EmptyResult()
    desk.leave(first)
    assert desk.do(command, invocation=b"d" * 16) == EmptyResult()


def test_leases_are_fenced_too(desk: GroupDesk) -> None:
    token = token_of(desk.join())
    desk.send(url=QUEUE)
    assert len(receive(desk, token, receive_request_attempt_id="r/1/0/0")) == 1
    with pytest.raises(ElasticqNotHolder):
        receive(desk, token + 1, receive_request_attempt_id="r/1/0/1")
    refused(desk, c.DeleteMessage(QUEUE, "lease:r/1/0", elasticq_group="g", elasticq_token=token + 1))
    refused(desk, c.ChangeMessageVisibility(QUEUE, "lease:r/1/0", 9, elasticq_group="g", elasticq_token=token + 1))
    desk.do(c.DeleteMessage(QUEUE, "lease:r/1/0", elasticq_group="g", elasticq_token=token))
    assert desk.queue(QUEUE).count == 0


def test_calls_without_a_group_work_as_ever(desk: GroupDesk) -> None:
    desk.join()
    desk.send(url=QUEUE)
    (message,) = desk.receive(url=QUEUE)
    desk.do(c.DeleteMessage(QUEUE, message.receipt_handle))
    assert desk.queue(QUEUE).count == 0


def test_a_holder_of_the_whole_queue_may_name_a_partition(desk: GroupDesk) -> None:
    desk.create("q-1.fifo", FifoQueue="true", ElasticqPartitions="4")
    desk.sweep_groups()
    token = token_of(desk.join(), "q-1.fifo")
    assert desk.fenced_receive("q-1.fifo", token, partition=3) == 0
    with pytest.raises(ElasticqNotHolder):
        desk.fenced_receive("q-1.fifo", token + 7, partition=3)


def test_a_holder_of_a_partition_has_that_one_only(desk: GroupDesk) -> None:
    desk.create("stream.fifo", FifoQueue="true", ElasticqPartitions="4")
    desk.group("p", partitions_of="stream.fifo")
    tokens = {each.partition: each.token for each in desk.join("p").assigned}
    assert sorted(tokens) == [0, 1, 2, 3]
    assert desk.fenced_receive("stream.fifo", tokens[2], group="p", partition=2) == 0
    for partition in (None, 1, 4):
        with pytest.raises(ElasticqNotHolder):
            desk.fenced_receive("stream.fifo", tokens[2], group="p", partition=partition)
