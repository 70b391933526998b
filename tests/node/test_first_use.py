"""Queues that their first use makes: decided by the master, written in its log like any other."""

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue, QueueDoesNotExist
from elasticq.model.results import QueueUrlResult, ReceiveMessageResult
from tests.memory import errors_in_memory
from tests.node.cluster import Cluster, Solo

TEMPLATE = c.DeclareQueue(
    attributes={"VisibilityTimeout": "7", "ContentBasedDeduplication": "true"}, tags={"made": "at-first-use"}
)
SEND = c.SendMessage("jobs", "x")
FIRST_USES = (
    SEND,
    c.SendMessageBatch("jobs", [c.SendMessageBatchEntry("a", "x")]),
    c.ReceiveMessage("jobs"),
    c.GetQueueUrl("jobs"),
    c.GetQueueAttributes("jobs", ["All"]),
)
OTHER_USES = (
    c.DeleteQueue("jobs"),
    c.PurgeQueue("jobs"),
    c.TagQueue("jobs", {"a": "b"}),
    c.ListQueueTags("jobs"),
    c.SetQueueAttributes("jobs", {"DelaySeconds": "1"}),
    c.GetQueueUrl("jobs", "999999999999"),
    c.SendMessage("http://h/999999999999/jobs", "x"),
)


def visibility(solo: Solo, url: str = "jobs") -> str:
    return str(solo.do(c.GetQueueAttributes(url, ["VisibilityTimeout"])).attributes["VisibilityTimeout"])


@pytest.mark.parametrize("command", FIRST_USES, ids=lambda command: type(command).__name__)
@pytest.mark.parametrize("volatile", [True, False])
def test_a_first_use_makes_the_queue_from_the_template(command: c.Command, volatile: bool) -> None:
    solo = Solo(template=TEMPLATE, volatile=volatile)
    solo.do(command)
    made = [each for entry in solo.entries for each in m.decode(entry.payload) if isinstance(each, m.QueueCreated)]
    assert [(each.name, each.tags, each.attributes) for each in made] == [
        ("jobs", TEMPLATE.tags, {"VisibilityTimeout": "7"})
    ]
    assert visibility(solo) == "7"


@pytest.mark.parametrize("command", OTHER_USES, ids=lambda command: type(command).__name__)
def test_other_uses_make_none(command: c.Command) -> None:
    solo = Solo(template=TEMPLATE)
    with pytest.raises(QueueDoesNotExist):
        solo.do(command)
    assert not solo.node.state.queues


@pytest.mark.parametrize("command", FIRST_USES, ids=lambda command: type(command).__name__)
def test_without_a_template_nothing_is_made(command: c.Command) -> None:
    with pytest.raises(QueueDoesNotExist):
        Solo().do(command)


def test_a_name_that_ends_in_fifo_makes_a_fifo_queue() -> None:
    solo = Solo(template=TEMPLATE)
    solo.do(c.SendMessage("jobs.fifo", "x", message_group_id="g"))
    shown = solo.do(c.GetQueueAttributes("jobs.fifo", ["All"])).attributes
    assert (shown["FifoQueue"], shown["ContentBasedDeduplication"]) == ("true", "true")


def test_a_name_that_none_may_have_is_refused() -> None:
    with pytest.raises(InvalidParameterValue, match="alphanumeric"):
        Solo(template=TEMPLATE).do(c.SendMessage("no.such!name", "x"))


@pytest.mark.parametrize("command", [SEND, c.SendMessage("no.such!name", "x"), c.PurgeQueue("jobs")])
def test_that_there_was_no_queue_leaves_no_error_behind(command: c.Command, errors_before: int) -> None:
    """Its traceback holds the call, and the frame that kept it until the queue was made."""
    solo = Solo(template=TEMPLATE)
    assert len(solo.answers(solo.start_call(command))) == 1
    solo.member.replies.clear()
    assert errors_in_memory() == errors_before


def test_a_receive_waits_at_the_queue_that_it_made() -> None:
    solo = Solo(template=TEMPLATE)
    ticket = solo.poll()
    assert solo.answers(ticket) == []
    solo.send("hello")
    (answer,) = solo.answers(ticket)
    assert isinstance(answer, ReceiveMessageResult)
    assert [message.body for message in answer.messages] == ["hello"]


def test_a_member_has_the_master_make_the_queue_whatever_its_own_settings() -> None:
    cluster = Cluster()
    for member in cluster.members.values():
        member.node.journal.context.template = None
    master = cluster.elect()
    cluster.introduce_all()
    asked = next(name for name in cluster.names if name != master)
    ticket = cluster.submit(asked, c.GetQueueUrl("jobs"))
    cluster.advance(100)
    assert [type(answer) for answer in cluster.members[asked].replies[ticket]] == [QueueDoesNotExist]
    cluster.node(master).journal.context.template = TEMPLATE
    ticket = cluster.submit(asked, c.GetQueueUrl("jobs"))
    cluster.advance(300)
    (answer,) = cluster.members[asked].replies[ticket]
    assert isinstance(answer, QueueUrlResult)
    assert len({state_digest(member.node.state) for member in cluster.members.values()}) == 1
    assert [queue.name for queue in cluster.node(asked).state.queues.values()] == ["jobs"]
