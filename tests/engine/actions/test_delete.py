"""DeleteMessage and its batch: what a handle may do, and what is no handle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.model import commands as c
from elasticq.model import errors
from tests.engine.desk import Desk


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.create()
    return made


def delete(desk: Desk, handle: str | None, url: str = "jobs") -> None:
    desk.do(c.DeleteMessage(queue_url=url, receipt_handle=handle))


def test_deleted_message_never_comes_back(desk: Desk) -> None:
    desk.send()
    delete(desk, desk.receive_one().receipt_handle)
    desk.wait(100)
    assert desk.receive() == []
    assert desk.counts() == (0, 0, 0)
    assert desk.state.contents_bytes == 0


def test_deleting_again_succeeds_and_changes_nothing(desk: Desk) -> None:
    desk.send()
    handle = desk.receive_one().receipt_handle
    delete(desk, handle)
    written = len(desk.log)
    delete(desk, handle)
    assert len(desk.log) == written


def test_delete_after_the_visibility_ended_removes_the_message(desk: Desk) -> None:
    desk.send()
    handle = desk.receive_one(visibility_s=1).receipt_handle
    desk.wait(2)
    delete(desk, handle)
    assert desk.receive() == []


def test_an_older_handle_deletes_what_nobody_holds(desk: Desk) -> None:
    desk.send()
    old = desk.receive_one(visibility_s=0).receipt_handle
    desk.receive_one(visibility_s=0)
    delete(desk, old)
    assert desk.counts() == (0, 0, 0)


def test_an_older_handle_succeeds_and_does_not_delete_what_another_holds(desk: Desk) -> None:
    desk.send()
    old = desk.receive_one(visibility_s=1).receipt_handle
    desk.wait(2)
    newest = desk.receive_one(visibility_s=1).receipt_handle
    delete(desk, old)
    desk.wait(2)
    assert desk.counts() == (1, 0, 0)
    delete(desk, newest)
    assert desk.counts() == (0, 0, 0)


def test_delete_of_a_purged_message_succeeds(desk: Desk) -> None:
    desk.send()
    handle = desk.receive_one().receipt_handle
    desk.do(c.PurgeQueue(queue_url="jobs"))
    written = len(desk.log)
    delete(desk, handle)
    assert len(desk.log) == written


@pytest.mark.parametrize("handle", [None, ""])
def test_missing_handle_is_a_missing_parameter(desk: Desk, handle: str | None) -> None:
    with pytest.raises(errors.MissingParameter, match=r"The request must contain the parameter ReceiptHandle\."):
        delete(desk, handle)


@pytest.mark.parametrize("handle", ["garbage", "AAAA", "=" * 56, "A" * 56, "é" * 56, "A" * 5_000, "\x00"])
def test_garbage_is_an_invalid_handle_in_awss_words(desk: Desk, handle: str) -> None:
    with pytest.raises(errors.ReceiptHandleIsInvalid) as caught:
        delete(desk, handle)
    assert caught.value.message == f'The input receipt handle "{errors.quoted(handle)}" is not a valid receipt handle.'
    assert (caught.value.code, caught.value.status) == ("ReceiptHandleIsInvalid", 400)


def test_a_handle_of_another_queue_is_invalid(desk: Desk) -> None:
    desk.create("other")
    desk.send()
    handle = desk.receive_one().receipt_handle
    with pytest.raises(errors.ReceiptHandleIsInvalid):
        delete(desk, handle, url="other")
    assert desk.counts() == (0, 1, 0)


def test_a_handle_of_a_queue_of_the_same_name_before_is_invalid(desk: Desk) -> None:
    desk.send()
    handle = desk.receive_one().receipt_handle
    desk.do(c.DeleteQueue(queue_url="jobs"))
    desk.create()
    with pytest.raises(errors.ReceiptHandleIsInvalid):
        delete(desk, handle)


def test_a_handle_of_another_cluster_is_invalid(desk: Desk) -> None:
    foreign = Desk(mac_key=b"f" * 32)
    foreign.create()
    for made in (desk, foreign):
        made.send()
    desk.receive_one()
    with pytest.raises(errors.ReceiptHandleIsInvalid):
        delete(desk, foreign.receive_one().receipt_handle)


# --- batches ----------------------------------------------------------------------


def entries(*pairs: tuple[str, str | None]) -> c.DeleteMessageBatch:
    return c.DeleteMessageBatch(
        queue_url="jobs", entries=[c.DeleteMessageBatchEntry(id=name, receipt_handle=handle) for name, handle in pairs]
    )


def test_batch_deletes_what_it_can_in_one_mutation_and_tells_the_rest(desk: Desk) -> None:
    for _ in range(2):
        desk.send()
    first, second = (x.receipt_handle for x in desk.receive(2))
    result = desk.do(entries(("a", first), ("b", "garbage"), ("c", second), ("d", first), ("e", None)))
    assert result.successful == ["a", "c", "d"]
    assert [(x.id, x.code, x.sender_fault) for x in result.failed] == [
        ("b", "ReceiptHandleIsInvalid", True),
        ("e", "MissingParameter", True),
    ]
    assert len(desk.steps[-1]) == 1
    assert desk.counts() == (0, 0, 0)


def test_batch_rules_are_those_of_all_batches(desk: Desk) -> None:
    with pytest.raises(errors.EmptyBatchRequest) as caught:
        desk.do(entries())
    assert caught.value.message == "There should be at least one DeleteMessageBatchRequestEntry in the request."
    with pytest.raises(errors.BatchEntryIdsNotDistinct, match=r"Id a repeated\."):
        desk.do(entries(("a", "x"), ("a", "x")))
    with pytest.raises(errors.InvalidBatchEntryId):
        desk.do(entries(("a b", "x")))
    with pytest.raises(errors.TooManyEntriesInBatchRequest):
        desk.do(entries(*((f"e{at}", "x") for at in range(11))))


@given(handle=st.text(max_size=80))
def test_no_text_is_ever_a_handle(handle: str) -> None:
    desk = Desk()
    desk.create()
    desk.send()
    desk.receive_one()
    with pytest.raises((errors.ReceiptHandleIsInvalid, errors.MissingParameter)):
        delete(desk, handle)
    assert desk.counts() == (0, 1, 0)
