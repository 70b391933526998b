"""The invocation log: its rows against a dict, its window, its bound, and what retries get."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.execute import FORGOTTEN
from elasticq.engine.stored import invocations
from elasticq.engine.stored.invocations import GENERATION_MS, NOTHING, Invocations
from elasticq.engine.stored.recorded_call import Recorded
from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue, QueueDoesNotExist, RequestThrottled
from elasticq.model.limits import INVOCATION_FAILURES_BYTES_MAX, INVOCATION_WINDOW_MS
from elasticq.model.results import EmptyResult
from tests.engine.desk import START_MS, Desk

# One bucket, and two third bytes: a row is told from others by the rest of its key.
DETAILS = [b"", b"detail", NOTHING]
KEYS = [bytes(text, "ascii") for text in ("a" * 16, "aab" + "a" * 13, "aabb" + "a" * 12, "a" * 15 + "b")]


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "remove", "wait"]), st.integers(0, 3), st.integers(0, 250_000)), max_size=40
    )
)
def test_history_behaves_like_a_dict_with_a_window(steps: list[tuple[str, int, int]]) -> None:
    history, model, now_ms = Invocations(), dict[bytes, Recorded](), START_MS
    for action, at, wait_ms in steps:
        key = KEYS[at]
        live = {k: row for k, row in model.items() if row.recorded_ms + INVOCATION_WINDOW_MS > now_ms}
        if action == "put" and key not in live:
            row = Recorded(now_ms, at, wait_ms, DETAILS[wait_ms % 3] if at else NOTHING)
            assert history.put(key, row)
            assert not history.put(key, row)
            model[key] = row
        elif action == "remove":
            history.remove(key)
            model.pop(key, None)
        else:
            now_ms += wait_ms
        live = {k: row for k, row in model.items() if row.recorded_ms + INVOCATION_WINDOW_MS > now_ms}
        assert history.rows(now_ms) == sorted(live.items())
        assert {k: history.get(k, now_ms) for k in KEYS} == {k: live.get(k) for k in KEYS}
        kept = [
            row.detail for row in live.values() if row.detail not in (b"", NOTHING) or (row.queue_id and row.detail)
        ]
        assert history.details_bytes >= sum(map(len, kept))
    history.forget(now_ms + INVOCATION_WINDOW_MS + 2 * GENERATION_MS)
    assert (history.rows(0), history.count, history.details_bytes) == ([], 0, 0)


def test_old_generations_are_dropped_whole() -> None:
    history = Invocations()
    for at in range(100):
        history.put(at.to_bytes(16, "big"), Recorded(START_MS + at, 0, 0, b""))
    later_ms = START_MS + INVOCATION_WINDOW_MS + 2 * GENERATION_MS
    history.put(b"z" * 16, Recorded(later_ms, 0, 0, b""))
    assert history.count == 1
    assert len(history.rows(0)) == 1


def test_a_replayed_old_row_is_counted_once_and_goes_again() -> None:
    """Replaying a log puts rows that were dropped already: the history must not keep them for ever."""
    history = Invocations()
    later_ms = START_MS + INVOCATION_WINDOW_MS + 2 * GENERATION_MS
    history.put(b"z" * 16, Recorded(later_ms, 0, 0, b""))
    history.put(b"a" * 16, Recorded(START_MS, 0, 0, b""))
    history.put(b"y" * 16, Recorded(later_ms + 1, 0, 0, b""))
    assert [key for key, _ in history.rows(0)] == [b"y" * 16, b"z" * 16]
    assert history.count == 2


def test_what_is_over_is_forgotten_though_nobody_calls_and_nothing_before() -> None:
    history = Invocations()
    history.put(b"a" * 16, Recorded(START_MS, 1, 1, b"told"))
    assert not history.is_any_over(START_MS + INVOCATION_WINDOW_MS)
    history.forget(START_MS + INVOCATION_WINDOW_MS)
    assert history.get(b"a" * 16, START_MS) is not None
    assert history.is_any_over(START_MS + INVOCATION_WINDOW_MS + 2 * GENERATION_MS)
    history.forget(START_MS + INVOCATION_WINDOW_MS + 2 * GENERATION_MS)
    assert (history.get(b"a" * 16, START_MS), history.count, history.details_bytes) == (None, 0, 0)


def test_deletes_leave_no_detail_each() -> None:
    history = Invocations()
    for number in range(100):
        history.put(number.to_bytes(16, "big"), Recorded(START_MS, 0, 0, NOTHING))
    assert history.details_bytes == 0
    assert history.get(bytes(16), START_MS) == Recorded(START_MS, 0, 0, NOTHING)


@pytest.mark.pure
def test_bound_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocations, "INVOCATIONS_MAX", 2)
    history = Invocations()
    for key in (b"a" * 16, b"b" * 16):
        assert not history.is_full(START_MS)
        history.put(key, Recorded(START_MS, 0, 0, b""))
    assert history.is_full(START_MS)


# --- retries (receives: test_receive.py) ---------------------------------------------


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
