"""ElasticqIdempotencyWindow: a deduplication id of a standard queue is taken for as long as its queue says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.engine.apply import apply
from elasticq.engine.state import SENT_ID_GENERATION_MS, State
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.engine.views.dump import dump
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model import errors
from elasticq.model.results import SendMessageBatchResult, SendMessageResult
from tests.engine.desk import Desk

WINDOW = "ElasticqIdempotencyWindow"
CALL = b"c" * 16


@pytest.fixture
def desk() -> Desk:
    made = Desk()
    made.create(**{WINDOW: "600"})
    return made


def send(desk: Desk, name: str | None, body: str = "x", *, undo: Undo | None = None) -> str:
    command = c.SendMessage(queue_url="jobs", message_body=body, message_deduplication_id=name)
    result = desk.do(command, undo=undo)
    assert isinstance(result, SendMessageResult)
    return result.message_id


def send_batch(desk: Desk, *names: str | None, invocation: bytes = b"") -> SendMessageBatchResult:
    entries = [
        c.SendMessageBatchEntry(id=str(at), message_body="x" if name != "bad" else "", message_deduplication_id=name)
        for at, name in enumerate(names)
    ]
    result = desk.do(c.SendMessageBatch(queue_url="jobs", entries=entries), invocation=invocation)
    assert isinstance(result, SendMessageBatchResult)
    return result


def set_window(desk: Desk, seconds: str) -> None:
    desk.do(c.SetQueueAttributes(queue_url="jobs", attributes={WINDOW: seconds}))


def test_repeated_id_answers_the_first_message_and_stores_nothing(desk: Desk) -> None:
    first = send(desk, "a")
    assert send(desk, "a", "another body") == first
    assert send(desk, "b") != first
    assert desk.counts() == (2, 0, 0)


def test_id_is_free_again_when_the_window_is_over(desk: Desk) -> None:
    first = send(desk, "a")
    desk.wait(599.999)
    assert send(desk, "a") == first
    desk.wait(0.001)
    second = send(desk, "a")
    assert second != first
    desk.wait(599)
    assert send(desk, "a") == second


def test_id_counts_also_when_its_message_is_deleted(desk: Desk) -> None:
    first = send(desk, "a")
    desk.do(c.DeleteMessage(queue_url="jobs", receipt_handle=desk.receive_one().receipt_handle))
    assert send(desk, "a") == first
    assert desk.counts() == (0, 0, 0)


def test_purge_forgets_the_ids(desk: Desk) -> None:
    first = send(desk, "a")
    desk.do(c.PurgeQueue(queue_url="jobs"))
    assert send(desk, "a") != first


def test_sends_without_an_id_are_all_stored(desk: Desk) -> None:
    assert send(desk, None) != send(desk, None)


def test_without_a_window_the_id_is_refused_as_by_aws() -> None:
    desk = Desk()
    desk.create()
    with pytest.raises(errors.InvalidParameterValue, match="not valid for this queue type"):
        send(desk, "a")
    assert [failure.code for failure in send_batch(desk, "a").failed] == ["InvalidParameterValue"]
    set_window(desk, "10")
    send(desk, "a")
    set_window(desk, "0")
    with pytest.raises(errors.InvalidParameterValue, match="not valid for this queue type"):
        send(desk, "a")


def test_window_of_the_send_holds_when_the_attribute_changes(desk: Desk) -> None:
    first = send(desk, "a")
    set_window(desk, "1")
    desk.wait(500)
    assert send(desk, "a") == first
    desk.wait(100)
    second = send(desk, "a")
    desk.wait(1)
    assert send(desk, "a") not in (first, second)


def test_batch_finds_ids_of_itself_and_of_before(desk: Desk) -> None:
    first = send(desk, "a")
    sent = send_batch(desk, "a", "b", "b", None, "bad").successful
    assert sent[0].message_id == first
    assert sent[1].message_id == sent[2].message_id != first
    assert len({entry.message_id for entry in sent}) == 3
    assert desk.counts() == (3, 0, 0)


def test_retry_of_a_batch_gets_the_same_answer(desk: Desk) -> None:
    send(desk, "a")
    sent = send_batch(desk, "a", "b", None, "bad", invocation=CALL)
    desk.wait(200)
    again = send_batch(desk, "a", "b", None, "bad", invocation=CALL)
    assert [entry.message_id for entry in again.successful] == [entry.message_id for entry in sent.successful]
    assert again.failed == sent.failed
    assert desk.counts() == (3, 0, 0)


def test_received_message_shows_its_id(desk: Desk) -> None:
    send(desk, "a")
    attributes = desk.receive_one().attributes or {}
    assert attributes["MessageDeduplicationId"] == "a"
    assert "SequenceNumber" not in attributes


@pytest.mark.parametrize("value", ["-1", "3601", "ten"])
def test_window_has_bounds(desk: Desk, value: str) -> None:
    with pytest.raises(errors.InvalidAttributeValue, match=WINDOW):
        set_window(desk, value)


def test_window_is_shown_only_where_it_is_set(desk: Desk) -> None:
    desk.create("plain")
    for name, shown in (("jobs", "600"), ("plain", None)):
        result = desk.do(c.GetQueueAttributes(queue_url=name, attribute_names=["All"]))
        assert result.attributes.get(WINDOW) == shown  # type: ignore[attr-defined]
    result = desk.do(c.GetQueueAttributes(queue_url="jobs", attribute_names=[WINDOW]))
    assert result.attributes == {WINDOW: "600"}  # type: ignore[attr-defined]


def test_fifo_queues_have_their_own_window(desk: Desk) -> None:
    with pytest.raises(errors.InvalidAttributeName, match="only for standard queues"):
        desk.create("line.fifo", FifoQueue="true", **{WINDOW: "60"})


def test_bad_id_is_refused(desk: Desk) -> None:
    with pytest.raises(errors.InvalidParameterValue, match="alphanumeric and punctuation"):
        send(desk, "a b")


@pytest.mark.pure
def test_full_history_makes_senders_wait(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elasticq.engine.stored.invocations.INVOCATIONS_MAX", 2)
    first = send(desk, "a")
    send(desk, "b")
    with pytest.raises(errors.RequestThrottled):
        send(desk, "c")
    assert send(desk, "a") == first
    desk.wait(600 + 2 * SENT_ID_GENERATION_MS / 1_000)
    send(desk, "c")
    assert desk.state.sent_ids.count == 1


def test_old_ids_leave_memory(desk: Desk) -> None:
    for at in range(50):
        send(desk, str(at))
    desk.wait(600 + 2 * SENT_ID_GENERATION_MS / 1_000)
    send(desk, "z")
    assert desk.state.sent_ids.count == 1


def rebuilt(desk: Desk) -> State:
    state = State()
    for chunk in dump(desk.state):
        for mutation in chunk:
            apply(state, m.decode(m.encode([mutation]))[0])
    return state


@settings(max_examples=100)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("send"), st.sampled_from("abc")),
            st.tuples(st.just("undo"), st.sampled_from("abc")),
            st.tuples(st.just("wait"), st.integers(1, 2_000)),
            st.tuples(st.just("window"), st.integers(1, 3_600)),
            st.tuples(st.just("rebuild"), st.just(0)),
        ),
        max_size=40,
    )
)
def test_history_behaves_like_a_dict_of_ends(steps: list[tuple[str, str | int]]) -> None:
    desk = Desk()
    desk.create(**{WINDOW: "600"})
    window_s, model = 600, dict[str, tuple[str, int]]()
    for action, value in steps:
        now_ms = desk.context.now_ms
        if action in ("send", "undo"):
            name = str(value)
            undo: Undo = []
            before = state_digest(desk.state, now_ms)
            message_id, until_ms = model.get(name, ("", 0))
            got = send(desk, name, undo=undo)
            assert (got == message_id) == (until_ms > now_ms)
            digest = state_digest(desk.state, now_ms)
            for mutation in desk.steps[-1]:  # applied twice is applied once
                apply(desk.state, mutation)
            assert state_digest(desk.state, now_ms) == digest
            if action == "undo":
                roll_back(undo)
                assert state_digest(desk.state, now_ms) == before
            elif until_ms <= now_ms:
                model[name] = got, now_ms + window_s * 1_000
        elif action == "wait":
            desk.wait(int(value))
        elif action == "window":
            window_s = int(value)
            set_window(desk, str(window_s))
        else:
            digest = state_digest(desk.state, now_ms)
            desk.state = rebuilt(desk)
            assert state_digest(desk.state, now_ms) == digest


def test_copies_of_a_batch_with_duplicates_keep_their_own_delays(desk: Desk) -> None:
    desk.create("audit")
    desk.do(c.DeclareQueue("source", {WINDOW: "600"}, copy_to="audit"))
    entries = [
        c.SendMessageBatchEntry(id=name, message_body=name, message_deduplication_id=name[0], delay_seconds=delay_s)
        for name, delay_s in (("a", 0), ("a2", 900), ("b", 900), ("c", 0))
    ]
    desk.do(c.SendMessageBatch(queue_url="source", entries=entries))
    assert desk.counts("source") == (2, 0, 1)
    assert desk.counts("audit") == (2, 0, 1)
    assert [message.body for message in desk.receive(10, url="audit")] == ["a", "c"]
