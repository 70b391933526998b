"""ChangeMessageVisibility and its batch: longer, shorter, at once, and never beyond 12 hours."""

import pytest

from elasticq.model import commands as c
from elasticq.model import errors
from tests.engine.desk import HOUR_S, Desk


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.create()
    return made


def change(desk: Desk, handle: str | None, seconds: int | None) -> None:
    desk.do(c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=handle, visibility_timeout=seconds))


def test_change_counts_from_the_call(desk: Desk) -> None:
    desk.send()
    handle = desk.receive_one(visibility_s=10).receipt_handle
    desk.wait(5)
    change(desk, handle, 20)
    desk.wait(19.999)
    assert desk.receive() == []
    desk.wait(0.001)
    assert desk.receive() != []


def test_change_may_shorten(desk: Desk) -> None:
    desk.send()
    change(desk, desk.receive_one().receipt_handle, 2)
    desk.wait(2)
    assert desk.receive() != []


def test_zero_makes_visible_now_and_the_next_receive_uses_the_queues_value(desk: Desk) -> None:
    desk.send()
    change(desk, desk.receive_one(visibility_s=500).receipt_handle, 0)
    assert desk.counts() == (1, 0, 0)
    desk.receive_one()
    desk.wait(30)
    assert desk.counts() == (1, 0, 0)


def test_an_ended_visibility_succeeds_and_changes_nothing(desk: Desk) -> None:
    desk.send()
    old = desk.receive_one(visibility_s=1).receipt_handle
    desk.wait(1)
    written = len(desk.log)
    change(desk, old, 100)
    assert desk.counts() == (1, 0, 0)
    assert len(desk.log) == written


def test_handle_of_an_earlier_receive_is_as_good_as_the_last(desk: Desk) -> None:
    desk.send()
    old = desk.receive_one(visibility_s=0).receipt_handle
    desk.receive_one(visibility_s=3)
    change(desk, old, 100)
    desk.wait(50)
    assert desk.counts() == (0, 1, 0)
    change(desk, old, 0)
    assert desk.counts() == (1, 0, 0)


def test_a_deleted_message_cannot_be_changed(desk: Desk) -> None:
    desk.send()
    handle = desk.receive_one().receipt_handle
    desk.do(c.DeleteMessage(queue_url="jobs", receipt_handle=handle))
    with pytest.raises(errors.InvalidParameterValue) as caught:
        change(desk, handle, 1)
    assert caught.value.message == (
        f"Value {handle} for parameter ReceiptHandle is invalid. "
        "Reason: Message does not exist or is not available for visibility timeout change."
    )


def test_a_purged_message_cannot_be_changed(desk: Desk) -> None:
    desk.send()
    handle = desk.receive_one().receipt_handle
    desk.do(c.PurgeQueue(queue_url="jobs"))
    with pytest.raises(errors.InvalidParameterValue, match="Message does not exist"):
        change(desk, handle, 1)


def test_twelve_hours_run_from_the_receive(desk: Desk) -> None:
    desk.send()
    handle = desk.receive_one(visibility_s=12 * HOUR_S).receipt_handle
    desk.wait(HOUR_S)
    change(desk, handle, 11 * HOUR_S)
    seconds = 11 * HOUR_S + 1
    with pytest.raises(errors.InvalidParameterValue) as caught:
        change(desk, handle, seconds)
    assert caught.value.message == (
        f"Value {seconds} for parameter VisibilityTimeout is invalid. "
        "Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"
    )
    assert desk.counts() == (0, 1, 0)


def test_extensions_do_not_move_the_end_and_a_new_receive_does(desk: Desk) -> None:
    desk.send()
    handle = desk.receive_one(visibility_s=100).receipt_handle
    desk.wait(50)
    change(desk, handle, 12 * HOUR_S - 50)
    desk.wait(50)
    with pytest.raises(errors.InvalidParameterValue):
        change(desk, handle, 12 * HOUR_S - 99)
    change(desk, handle, 0)
    change(desk, desk.receive_one().receipt_handle, 12 * HOUR_S)


@pytest.mark.parametrize("seconds", [-1, 43_201])
def test_seconds_out_of_range_are_refused(desk: Desk, seconds: int) -> None:
    desk.send()
    handle = desk.receive_one().receipt_handle
    with pytest.raises(
        errors.InvalidParameterValue, match=f"Value {seconds} for parameter VisibilityTimeout is invalid"
    ):
        change(desk, handle, seconds)


def test_missing_members_are_named(desk: Desk) -> None:
    with pytest.raises(errors.MissingParameter, match="parameter VisibilityTimeout"):
        change(desk, "x", None)
    with pytest.raises(errors.MissingParameter, match="parameter ReceiptHandle"):
        change(desk, None, 1)
    with pytest.raises(errors.ReceiptHandleIsInvalid):
        change(desk, "garbage", 1)


def test_batch_changes_what_it_can_in_one_mutation_and_the_later_entry_wins(desk: Desk) -> None:
    for _ in range(2):
        desk.send()
    first, second = (x.receipt_handle for x in desk.receive(2))
    rows = [("a", first, 100), ("b", "garbage", 1), ("c", second, 0), ("d", first, 5), ("e", first, 50_000)]
    entries = [
        c.ChangeMessageVisibilityBatchEntry(id=name, receipt_handle=handle, visibility_timeout=seconds)
        for name, handle, seconds in rows
    ]
    result = desk.do(c.ChangeMessageVisibilityBatch(queue_url="jobs", entries=entries))
    assert result.successful == ["a", "c", "d"]
    assert [(x.id, x.code) for x in result.failed] == [("b", "ReceiptHandleIsInvalid"), ("e", "InvalidParameterValue")]
    assert len(desk.steps[-1]) == 1
    assert desk.counts() == (1, 1, 0)
    desk.wait(5)
    assert desk.counts() == (2, 0, 0)


def test_empty_batch_names_its_entry_type(desk: Desk) -> None:
    with pytest.raises(errors.EmptyBatchRequest) as caught:
        desk.do(c.ChangeMessageVisibilityBatch(queue_url="jobs"))
    assert caught.value.message == (
        "There should be at least one ChangeMessageVisibilityBatchRequestEntry in the request."
    )
