"""A call that another member refuses costs that call alone: its caller is answered, and the link stays."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from elasticq.model import commands as c
from elasticq.model import limits
from elasticq.model import topic_commands as t
from elasticq.model.commands import Call
from elasticq.model.errors import InvalidParameterValue, ServiceUnavailable
from elasticq.model.names import DEFAULT_ACCOUNT, inner_owner
from elasticq.model.results import ReceiveMessageResult, SendMessageResult
from elasticq.node import forwarding as f
from elasticq.node.outputs import Frame
from tests.node.cluster import ENDPOINT, Cluster, call_of
from tests.node.proxied import HOLD_MS, PROXY_ID, Proxied

GUID = b"g" * 16
SEND = c.SendMessage("jobs", "x")
FAR = "x" * (limits.HEAD_BYTES_MAX + 1)
REFUSED: dict[str, Call] = {
    "queue URL": call_of(c.SendMessage("q" * 2_000, "x")),
    "long list of ids": call_of(c.ListQueues(queue_name_prefix="p" * 300)),
    "number": call_of(c.ReceiveMessage("jobs", max_number_of_messages=1 << 31)),
    "attributes": call_of(c.SetQueueAttributes("jobs", {str(each): "" for each in range(101)})),
    "message attribute": call_of(
        c.SendMessage("jobs", "x", message_attributes={"n" * 300: c.MessageAttributeValue("String", "x")})
    ),
    "topic attribute": call_of(t.SetTopicAttributes("arn", "Policy", "x" * 300_000)),
    "account": Call(SEND, "anonymous", "0/x y", ENDPOINT, b""),
    "principal": Call(SEND, "p" * 2_000, DEFAULT_ACCOUNT, ENDPOINT, b""),
    "endpoint": Call(SEND, "anonymous", DEFAULT_ACCOUNT, FAR, b""),
    "invocation": Call(SEND, "anonymous", DEFAULT_ACCOUNT, ENDPOINT, b"short"),
    "trace header": Call(SEND, "anonymous", DEFAULT_ACCOUNT, ENDPOINT, b"", None, FAR),
}


def follower_of(cluster: Cluster) -> str:
    return next(name for name in cluster.names if name not in cluster.serving())


def submit(cluster: Cluster, name: str, call: Call, ticket: str = "ticket") -> Any:
    """Submit a call; return its one answer, None without one."""
    member = cluster.members[name]
    member.node.submit(call, ticket, cluster.now_ms)
    member.drain()
    cluster.settle()
    answers = member.replies.get(ticket, [])
    assert len(answers) <= 1
    return answers[0] if answers else None


@pytest.mark.parametrize("name", REFUSED)
def test_call_that_the_master_would_refuse_is_answered_where_it_came_in(cluster: Cluster, name: str) -> None:
    sent: list[Frame] = []

    def note(sender: str, frame: Frame) -> bool:
        sent.append(frame)
        return False

    cluster.drops = note
    answer = submit(cluster, follower_of(cluster), REFUSED[name])
    assert isinstance(answer, InvalidParameterValue)
    assert not sent
    cluster.advance(30_000)
    assert not [frame for frame in sent if frame.data[:1] == f.FORWARDED]


@pytest.mark.parametrize("name", REFUSED)
def test_proxy_refuses_it_too(name: str) -> None:
    cluster = Proxied()
    cluster.elect()
    cluster.advance(1_300)
    cluster.proxy.submit(REFUSED[name], "ticket", cluster.now_ms)
    (reply,) = cluster.proxy.effects.replies
    assert isinstance(reply.outcome, InvalidParameterValue)
    assert not cluster.proxy.effects.frames


def forward(cluster: Cluster, number: int = 1, **changed: Any) -> bytes:
    """Return a Forward of a member of another version to the master, with some fields changed."""
    master, sender = cluster.serving()[0], follower_of(cluster)
    made = f.forward_of(call_of(SEND), cluster.node(master).replica.cluster, sender, master, "i", number)
    return f.encode(replace(made, **changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"account": "0/x y"},
        {"principal": "p" * 2_000},
        {"kind": "SendLetter"},
        {"command": msgspec.Raw(msgspec.msgpack.encode({"QueueUrl": "q" * 2_000}))},
        {"invocation": b"short"},
        {"deadline_ms": 1 << 62},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_receiver_answers_what_it_cannot_read_once_and_keeps_the_link(
    cluster: Cluster, changed: dict[str, Any]
) -> None:
    master, sender = cluster.serving()[0], follower_of(cluster)
    frame = forward(cluster, **changed)
    refused = cluster.node(master).receive_all([(sender, frame), (sender, frame)], cluster.now_ms)
    assert [type(error) for _, error in refused] == [f.ContentRefused] * 2
    answers = [f.decode(each.data) for each in cluster.node(master).effects.frames if each.data[:1] == f.FORWARDED]
    (answer,) = [each for each in answers if isinstance(each, f.Answer)]
    assert isinstance(f.outcome_of(answer), InvalidParameterValue)
    cluster.members[master].drain()
    cluster.settle()
    assert isinstance(cluster.do(sender, SEND), SendMessageResult)


def test_content_in_the_name_of_another_member_is_refused_with_its_link(cluster: Cluster) -> None:
    master, sender = cluster.serving()[0], follower_of(cluster)
    ((_, error),) = cluster.node(master).receive_all([(master, forward(cluster, kind="SendLetter"))], cluster.now_ms)
    assert not isinstance(error, f.ContentRefused)
    assert sender


def test_answer_that_cannot_be_read_ends_its_call_and_keeps_the_link(cluster: Cluster) -> None:
    follower = follower_of(cluster)
    unreadable: list[Frame] = []

    def garble(sender: str, frame: Frame) -> bool:
        if frame.to != follower or frame.data[:1] != f.FORWARDED:
            return False
        answer = f.decode(frame.data)
        if isinstance(answer, f.Answer):
            unreadable.append(Frame(frame.to, f.encode(replace(answer, kind="SendLetterResult")), 0))
            return True
        return False

    cluster.drops = garble
    assert submit(cluster, follower, call_of(SEND, GUID)) is None
    cluster.drops = None
    node, master = cluster.node(follower), cluster.serving()[0]
    ((_, error),) = node.receive_all([(master, unreadable[0].data)], cluster.now_ms)
    assert isinstance(error, f.ContentRefused)
    (reply,) = node.effects.replies
    assert isinstance(reply.outcome, ServiceUnavailable)
    cluster.members[follower].drain()
    cluster.advance(60_000)
    assert len(cluster.members[follower].replies["ticket"]) == 1


def test_worker_of_a_topic_may_pass_on_its_receive(cluster: Cluster) -> None:
    """A pusher that was the master's when it began has a call of an inner queue under way."""
    call = Call(c.ReceiveMessage("none", wait_time_seconds=0), "topics", inner_owner(DEFAULT_ACCOUNT), "", b"")
    answer = submit(cluster, follower_of(cluster), call)
    assert type(answer).__name__ == "QueueDoesNotExist"


def test_call_that_stops_its_masters_goes_to_two_of_them_at_most() -> None:
    cluster = Proxied("abcde")
    cluster.do(cluster.elect(), c.CreateQueue(queue_name="jobs"))
    cluster.advance(1_300)
    got_it: list[str] = []

    def poison(sender: str, frame: Frame) -> bool:
        is_call = sender == PROXY_ID and isinstance(f.decode(frame.data), f.Forward)
        got_it.extend([frame.to] * is_call)
        return is_call

    cluster.drops = poison
    ticket = cluster.ask(SEND, GUID)
    while not cluster.told(ticket):
        if got_it[-1] in cluster.members:
            cluster.crash(got_it[-1])
        cluster.advance(100)
    (answer,) = cluster.told(ticket)
    assert isinstance(answer, ServiceUnavailable)
    assert len(set(got_it)) == len(got_it) == 2


def test_receive_that_waits_survives_any_number_of_masters() -> None:
    """It stops nobody: it only waits."""
    cluster = Cluster(hold_ms=HOLD_MS)
    cluster.introduce_all()
    cluster.do(cluster.elect(), c.CreateQueue(queue_name="jobs"))
    cluster.advance(1_300)
    follower = follower_of(cluster)
    poll = c.ReceiveMessage("jobs", wait_time_seconds=20)
    assert submit(cluster, follower, call_of(poll, GUID)) is None
    for _ in range(3):
        (master,) = cluster.serving()
        if master != follower:
            cluster.isolate(master)
            cluster.elect_other(than=master)
            cluster.heal()
            cluster.advance(500)
    cluster.do(cluster.elect(), SEND)
    cluster.advance(1_000)
    (answer,) = cluster.members[follower].replies["ticket"]
    assert isinstance(answer, ReceiveMessageResult)
    assert len(answer.messages) == 1
