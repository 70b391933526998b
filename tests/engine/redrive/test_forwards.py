"""copyTo and moveTo: where a message goes, what its sender is answered, and what cannot be a loop."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elasticq.engine.redrive.forwards import route
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.engine.writers.contract import roll_back
from elasticq.model import commands as c
from elasticq.model import limits
from elasticq.model.errors import InvalidParameterValue
from elasticq.model.results import QueueDeclaredResult, SendMessageBatchResult, SendMessageResult
from tests.engine.desk import Desk

CALL = b"i" * 16


def declare(desk: Desk, name: str, copy_to: str = "", move_to: str = "", **attributes: str) -> QueueDeclaredResult:
    if name.endswith(".fifo"):
        attributes["FifoQueue"] = "true"
    result = desk.do(c.DeclareQueue(name, attributes, copy_to=copy_to, move_to=move_to))
    assert isinstance(result, QueueDeclaredResult)
    return result


def bodies(desk: Desk, name: str) -> list[tuple[str, str]]:
    return [(message.message_id, message.body) for message in desk.receive(10, url=name)]


def test_a_copy_has_the_id_of_its_message_and_stands_in_the_same_entry() -> None:
    desk = Desk()
    declare(desk, "audit", DelaySeconds="5")
    declare(desk, "jobs", copy_to="audit")
    message_id = desk.send("hello")
    assert [type(each) for each in desk.steps[-1]] == [m.MessageStored, m.MessageStored]
    assert bodies(desk, "jobs") == [(message_id, "hello")]
    assert bodies(desk, "audit") == []
    desk.wait(5)
    assert bodies(desk, "audit") == [(message_id, "hello")]


def test_a_moved_message_is_in_the_other_queue_only_under_the_answered_id() -> None:
    desk = Desk()
    declare(desk, "landing")
    declare(desk, "jobs", move_to="landing")
    message_id = desk.send("hello")
    assert bodies(desk, "jobs") == []
    assert bodies(desk, "landing") == [(message_id, "hello")]


def test_a_retry_of_a_forwarded_send_is_answered_as_the_first_and_stores_nothing() -> None:
    desk = Desk()
    declare(desk, "audit")
    declare(desk, "landing")
    declare(desk, "jobs", copy_to="audit", move_to="landing")
    first = desk.send("hello", invocation=CALL)
    assert desk.send("hello", invocation=CALL) == first
    assert desk.counts("landing") == desk.counts("audit") == (1, 0, 0)


@pytest.mark.parametrize("forwards", [{"copy_to": "audit"}, {"move_to": "audit"}, {"copy_to": "a", "move_to": "audit"}])
def test_a_retry_of_a_forwarded_batch_is_answered_as_the_first(forwards: dict[str, str]) -> None:
    desk = Desk()
    declare(desk, "a")
    declare(desk, "audit")
    declare(desk, "jobs", **forwards)
    entries = [c.SendMessageBatchEntry(id=name, message_body=name) for name in "abc"]
    entries.insert(1, c.SendMessageBatchEntry(id="bad", message_body=""))
    command = c.SendMessageBatch("jobs", entries)
    first = desk.do(command, invocation=CALL)
    again = desk.do(command, invocation=CALL)
    assert isinstance(first, SendMessageBatchResult)
    assert msgspec.to_builtins(first) == msgspec.to_builtins(again)
    assert bodies(desk, "audit") == [(sent.message_id, sent.id) for sent in first.successful]


def test_largest_message_goes_into_the_queue_and_five_copies_but_not_into_a_sixth() -> None:
    desk = Desk()
    for number in range(5, -1, -1):
        declare(desk, f"copy{number}", copy_to=f"copy{number + 1}" if number < 5 else "")
    declare(desk, "fits", copy_to="copy1")
    declare(desk, "jobs", copy_to="copy0")
    body = "x" * limits.BODY_BYTES_MAX
    desk.send(body, url="fits")
    assert [desk.counts(f"copy{number}")[0] for number in range(6)] == [0, 1, 1, 1, 1, 1]
    with pytest.raises(InvalidParameterValue):
        desk.send(body, url="jobs")
    assert desk.counts("jobs") == desk.counts("copy0") == (0, 0, 0)


def test_a_message_goes_on_through_several_queues() -> None:
    desk = Desk()
    for name in ("end", "first_copy", "second_copy"):
        declare(desk, name)
    declare(desk, "middle", move_to="end", copy_to="second_copy")
    declare(desk, "jobs", move_to="middle", copy_to="first_copy")
    message_id = desk.send("x")
    for name in ("end", "first_copy", "second_copy"):
        assert bodies(desk, name) == [(message_id, "x")]
    assert desk.counts("middle") == desk.counts("jobs") == (0, 0, 0)


@pytest.mark.parametrize("forwards", [{"copy_to": "gone"}, {"move_to": "gone"}, {"move_to": "gone", "copy_to": "gone"}])
def test_a_message_stays_where_its_target_is_not_there(forwards: dict[str, str]) -> None:
    desk = Desk()
    declare(desk, "jobs", **forwards)
    message_id = desk.send("x")
    assert bodies(desk, "jobs") == [(message_id, "x")]


def test_a_fifo_message_does_not_go_to_a_standard_queue() -> None:
    desk = Desk()
    declare(desk, "plain")
    declare(desk, "jobs.fifo", move_to="plain")
    desk.do(c.SendMessage("jobs.fifo", "x", message_group_id="g", message_deduplication_id="d"))
    assert desk.counts("jobs.fifo") == (1, 0, 0)
    assert desk.counts("plain") == (0, 0, 0)


def test_a_moved_fifo_message_is_a_duplicate_where_it_lands() -> None:
    desk = Desk()
    declare(desk, "copy.fifo")
    declare(desk, "end.fifo", copy_to="copy.fifo")
    declare(desk, "jobs.fifo", move_to="end.fifo")
    answers = [
        desk.do(c.SendMessage(url, "x", message_group_id="g", message_deduplication_id="d"))
        for url in ("jobs.fifo", "end.fifo", "jobs.fifo")
    ]
    assert all(isinstance(answer, SendMessageResult) and answer == answers[0] for answer in answers)
    assert desk.counts("end.fifo") == desk.counts("copy.fifo") == (1, 0, 0)


@pytest.mark.parametrize(("copy_to", "move_to"), [("c", ""), ("", "c"), ("a", ""), ("", "b")])
def test_a_circle_is_refused(copy_to: str, move_to: str) -> None:
    desk = Desk()
    declare(desk, "a", copy_to="b")
    declare(desk, "b", move_to="c")
    for name in ("a", "b", "c"):
        if name == "c":
            with pytest.raises(InvalidParameterValue):
                declare(desk, "c", copy_to=copy_to, move_to=move_to)


@given(st.dictionaries(st.sampled_from("abcde"), st.tuples(*[st.sampled_from(["", *"abcde"])] * 2), min_size=1))
def test_a_message_lands_once_in_each_queue_whatever_the_graph(graph: dict[str, tuple[str, str]]) -> None:
    """Also through circles that nobody may declare."""
    desk = Desk()
    for name, (copy_to, move_to) in graph.items():
        declare(desk, name)
        queue = desk.queue(name)
        attributes = {"elasticq.CopyTo": copy_to, "elasticq.MoveTo": move_to}
        desk.write([m.QueueAttributesSet(queue.id, attributes, 1)])
    for name in graph:
        before = {each: sum(desk.counts(each)) for each in graph}
        landing, copies = route(desk.state, desk.queue(name))
        desk.send(url=name)
        grown = sorted(each for each in graph if sum(desk.counts(each)) == before[each] + 1)
        assert grown == sorted(queue.name for queue in (landing, *copies))
        assert sum(sum(desk.counts(each)) - before[each] for each in graph) == len(grown)


def test_what_was_sent_on_is_taken_back_as_a_whole() -> None:
    desk = Desk()
    declare(desk, "audit")
    declare(desk, "jobs", copy_to="audit")
    before = state_digest(desk.state, desk.context.now_ms)
    undo: list = []
    desk.do(c.SendMessage("jobs", "x"), undo=undo)
    roll_back(undo)
    assert state_digest(desk.state, desk.context.now_ms) == before


def test_a_message_with_its_copies_must_fit_into_an_entry() -> None:
    desk = Desk()
    names = [f"copy{at}" for at in range(7)]
    for name, after in zip(names, ["", *names], strict=False):
        declare(desk, name, copy_to=after)
    with pytest.raises(InvalidParameterValue, match="shorter"):
        desk.send("x" * limits.BODY_BYTES_MAX, url=names[-1])
    desk.send("x" * limits.BODY_BYTES_MAX, url=names[2])


def test_a_declared_queue_is_as_it_was_elsewhere() -> None:
    desk = Desk()
    command = c.DeclareQueue("jobs", {"VisibilityTimeout": "7"}, {"team": "x"}, "audit", "", 1_600_000_000_000)
    command.modified_ms = 1_600_000_005_000
    assert desk.do(command) == QueueDeclaredResult(is_new=True)
    shown = desk.do(c.GetQueueAttributes("jobs", ["All"])).attributes
    assert (shown["CreatedTimestamp"], shown["LastModifiedTimestamp"]) == ("1600000000", "1600000005")
    assert shown["VisibilityTimeout"] == "7"
    assert not [name for name in shown if name.startswith("elasticq.")]
    assert desk.do(c.ListQueueTags("jobs")).tags == {"team": "x"}


def test_declared_again_a_queue_keeps_what_its_clients_set() -> None:
    desk = Desk()
    declare(desk, "audit")
    declare(desk, "jobs", copy_to="audit", VisibilityTimeout="7")
    assert declare(desk, "jobs", copy_to="audit", VisibilityTimeout="7") == QueueDeclaredResult()
    assert desk.steps[-1] == []
    desk.do(c.SetQueueAttributes("jobs", {"VisibilityTimeout": "9"}))
    assert desk.queue().copy_to == "audit"
    assert declare(desk, "jobs", VisibilityTimeout="7").differing == ["VisibilityTimeout"]
    assert (desk.queue().visibility_s, desk.queue().copy_to) == (9, "")


def test_create_queue_knows_nothing_of_where_messages_go() -> None:
    desk = Desk()
    declare(desk, "audit")
    declare(desk, "jobs", copy_to="audit")
    desk.create("jobs")
    assert desk.queue().copy_to == "audit"
