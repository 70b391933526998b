"""A proxy passes calls on to whoever is master, holds them while nobody is, and is no member."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue, QueueDoesNotExist, ServiceUnavailable
from elasticq.model.results import ListQueuesResult, ReceiveMessageResult, SendMessageResult
from elasticq.node import forwarding
from elasticq.node.forwarding import Answer, Forward, MasterIs, NotMaster, Withdraw, encode
from elasticq.node.orders import OrderRefused, TransferMastership
from elasticq.node.outputs import Frame
from elasticq.node.proxy import Proxy
from elasticq.node.waits.waiting_calls import WAITING_CALLS_MAX
from elasticq.replication.messages import PreVote
from elasticq.replication.messages import encode as encode_vote
from tests.node.cluster import Cluster, bodies, call_of, is_answer
from tests.node.intruder import INTRUDER, Frames
from tests.node.proxied import HOLD_MS, PROXY_ID, Proxied, proxy_of

GUID = b"g" * 16


@pytest.fixture
def cluster() -> Proxied:
    made = Proxied()
    made.do(made.elect(), c.CreateQueue(queue_name="jobs"))
    made.advance(1_300)
    return made


def send(body: str = "x") -> c.SendMessage:
    return c.SendMessage(queue_url="jobs", message_body=body)


def receive(wait_s: int | None = 0) -> c.ReceiveMessage:
    return c.ReceiveMessage("jobs", wait_time_seconds=wait_s, max_number_of_messages=10, visibility_timeout=600)


# --- a cluster that is well ------------------------------------------------------------


def test_calls_are_answered_by_the_master(cluster: Proxied) -> None:
    status = cluster.proxy.status(cluster.now_ms)
    assert (status.role, status.ready, status.reason, status.master) == ("proxy", True, "", cluster.serving()[0])
    assert isinstance(cluster.done(send("one")), SendMessageResult)
    received = cluster.done(receive())
    assert isinstance(received, ReceiveMessageResult)
    (message,) = received.messages
    assert message.body == "one"
    cluster.done(c.DeleteMessage("jobs", message.receipt_handle))
    with pytest.raises(QueueDoesNotExist):
        cluster.done(replace(send(), queue_url="none"))
    cluster.advance(700_000)
    assert bodies(cluster) == []


def test_calls_go_straight_to_the_master(cluster: Proxied) -> None:
    seen: list[tuple[str, str]] = []

    def note(sender: str, frame: Frame) -> bool:
        if frame.data[:1] == forwarding.FORWARDED:
            forwarded = forwarding.decode(frame.data)
            if isinstance(forwarded, Forward):
                seen.append((sender, frame.to))
        return False

    cluster.drops = note
    cluster.done(send())
    assert seen == [(PROXY_ID, cluster.serving()[0])]


def test_it_is_no_member_for_anybody(cluster: Proxied) -> None:
    """It gets no frame but what tells who is master, and answers; it is shown as a proxy only."""
    cluster.done(send())
    cluster.advance(20_000)
    assert {type(forwarding.decode(frame.data)) for frame in cluster.to_proxy} == {MasterIs, Answer}
    for name in cluster.names:
        status = cluster.node(name).status(cluster.now_ms)
        assert {member.id for member in status.members} == set(cluster.names)
        assert status.proxies == ("web",)
        assert PROXY_ID not in cluster.node(name).replica.known_peers
        assert PROXY_ID not in status.voters + tuple(status.match)


def test_fresh_members_do_not_count_it_as_a_founder() -> None:
    cluster = Cluster.fresh("ab", nodes=2)
    proxy = proxy_of()
    first, second = cluster.names
    cluster.node(first).met(proxy.introduce(), cluster.now_ms)
    assert "1 of 2" in cluster.node(first).members.waiting_for()
    cluster.introduce(first, second)
    assert cluster.elect()
    assert set(cluster.node(first).replica.voters) == {first, second}


def test_a_cluster_of_one_tells_a_proxy_of_its_master_again_and_again() -> None:
    cluster = Proxied("a")
    cluster.elect()
    cluster.do("a", c.CreateQueue(queue_name="jobs"))
    cluster.done(send())
    cluster.to_proxy.clear()
    cluster.advance(10_000)
    assert len(cluster.to_proxy) == 10
    cluster.unlink("a")
    cluster.to_proxy.clear()
    cluster.advance(10_000)
    assert not cluster.to_proxy


def test_a_long_poll_waits_at_the_master_and_ends_with_its_client(cluster: Proxied) -> None:
    (master,) = cluster.serving()
    waiting = cluster.ask(receive(20))
    left = cluster.ask(receive(20))
    assert cluster.node(master).status(cluster.now_ms).waiters == 2
    cluster.proxy.cancel(left, cluster.now_ms)
    cluster.drain_proxy()
    cluster.settle()
    assert cluster.node(master).status(cluster.now_ms).waiters == 1
    cluster.done(send("late"))
    (outcome,) = cluster.told(waiting)
    assert isinstance(outcome, ReceiveMessageResult)
    assert [message.body for message in outcome.messages] == ["late"]
    assert cluster.told(left) == []


@pytest.mark.parametrize("how", ["the proxy dies", "its link breaks"])
def test_receives_of_a_proxy_that_is_gone_end_at_the_master(cluster: Proxied, how: str) -> None:
    (master,) = cluster.serving()
    cluster.ask(receive(20))
    if how == "the proxy dies":
        cluster.linked.remove(master)
        cluster.node(master).lost(PROXY_ID, cluster.now_ms)
        cluster.members[master].drain()
    else:
        for name in cluster.names:
            cluster.unlink(name)
    assert cluster.node(master).status(cluster.now_ms).waiters == 0


@pytest.mark.parametrize("is_relayed", [False, True])
def test_long_polls_of_a_proxy_that_stops_end_empty_at_once(cluster: Proxied, is_relayed: bool) -> None:
    if is_relayed:
        cluster.unlink(cluster.serving()[0])
    tickets = [cluster.ask(receive(20)), cluster.ask(receive(20), GUID)]
    for _ in range(2):
        cluster.proxy.close_waiters(cluster.now_ms)
        cluster.drain_proxy()
        cluster.settle()
    assert [cluster.told(ticket) for ticket in tickets] == [[ReceiveMessageResult()], [ReceiveMessageResult()]]
    assert cluster.node(cluster.serving()[0]).status(cluster.now_ms).waiters == 0


def test_a_member_of_an_older_version_only_forgets_such_a_receive() -> None:
    """It reads no more than the number of the call."""
    ends = Withdraw(cluster="c", sender="p", to="a", incarnation="5" * 16, number=7, wants_answer=True)
    told = msgspec.msgpack.decode(encode(ends)[1:])
    assert told == [3, "c", "p", "a", "5" * 16, 7, True]
    older = forwarding.decode(bytes([forwarding.FRAME_KIND]) + msgspec.msgpack.encode(told[:-1]))
    assert older == replace(ends, wants_answer=False)


def test_messages_that_could_not_be_written_are_given_back(cluster: Proxied) -> None:
    cluster.done(send("again"))
    received = cluster.done(receive())
    cluster.proxy.undelivered(received, cluster.now_ms)
    cluster.drain_proxy()
    cluster.settle()
    assert bodies(cluster) == ["again"]


# --- masters that come and go -----------------------------------------------------------


@pytest.mark.parametrize("invocation", [b"", GUID])
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_call_under_way_when_the_master_dies_has_one_effect(
    cluster: Proxied, invocation: bytes, is_kept: bool
) -> None:
    """``is_kept``: the other voters have its entry, so that it outlives the master that did not answer."""
    (master,) = cluster.serving()
    cluster.drops = lambda sender, frame: sender == master and (not is_kept or is_answer(frame))
    index = cluster.node(master).applied_index
    ticket = cluster.ask(send("once"), invocation)
    assert cluster.told(ticket) == []
    assert cluster.node(master).applied_index == index + 1, "the master has executed it"
    cluster.crash(master)
    cluster.drops = None
    cluster.elect()
    cluster.settle()
    (outcome,) = cluster.told(ticket)
    assert isinstance(outcome, SendMessageResult)
    assert bodies(cluster) == ["once"]


@pytest.mark.parametrize("command", [send("held"), receive(20), c.ListQueues()])
def test_calls_that_come_while_there_is_no_master_wait_for_the_next_one(cluster: Proxied, command: c.Command) -> None:
    cluster.crash(cluster.serving()[0])
    ticket = cluster.ask(command)
    assert cluster.told(ticket) == []
    cluster.elect()
    cluster.settle()
    cluster.do(cluster.serving()[0], send("for the receive"))
    (outcome,) = cluster.told(ticket)
    assert isinstance(outcome, (SendMessageResult, ReceiveMessageResult, ListQueuesResult))


def test_it_learns_of_a_new_master_in_the_moment_in_which_that_is_one(cluster: Proxied) -> None:
    old = cluster.serving()[0]
    cluster.crash(old)
    cluster.elect_other(old)
    assert cluster.proxy.status(cluster.now_ms).master == cluster.serving()[0]


def test_a_master_that_steps_down_sends_the_proxy_on(cluster: Proxied) -> None:
    """Calls that come during a hand-over, too."""
    old = cluster.serving()[0]
    cluster.node(old).order(TransferMastership(), "order", cluster.now_ms)
    ticket = cluster.ask(send("moved"))
    cluster.elect_other(old)
    cluster.advance(100)
    (outcome,) = cluster.told(ticket)
    assert isinstance(outcome, SendMessageResult)
    assert bodies(cluster) == ["moved"]


def test_a_whole_cluster_may_be_gone_for_less_than_hold_s(cluster: Proxied) -> None:
    ticket = cluster.ask(receive(20))
    for name in cluster.names:
        cluster.crash(name)
    sent = cluster.ask(send("through"), GUID)
    cluster.advance(15_000)
    status = cluster.proxy.status(cluster.now_ms)
    assert (status.ready, status.held_calls) == (False, 2)
    assert "no link to any member" in status.reason
    for name in cluster.names:
        cluster.restart(name)
    for name in cluster.names:
        cluster.link(name)
    cluster.elect()
    cluster.advance(5_000)
    (outcome,) = cluster.told(ticket)
    assert isinstance(outcome, ReceiveMessageResult)
    assert [message.body for message in outcome.messages] == ["through"]
    assert isinstance(cluster.told(sent)[0], SendMessageResult)


def test_what_waits_too_long_is_refused_and_has_no_effect_later(cluster: Proxied) -> None:
    """The network delivers the call after its time: what its client was told must stay true."""
    (master,) = cluster.serving()
    late: list[Frame] = []

    def delay(sender: str, frame: Frame) -> bool:
        is_ours = sender == PROXY_ID
        if is_ours:
            late.append(frame)
        return is_ours

    cluster.drops = delay
    ticket = cluster.ask(send("ghost"), GUID)
    cluster.advance(HOLD_MS + 1)
    (outcome,) = cluster.told(ticket)
    assert isinstance(outcome, ServiceUnavailable)
    cluster.drops = None
    assert len(late) == 2, "it was passed on again once"
    for frame in late:
        cluster.deliver(PROXY_ID, replace(frame, to=master))
    cluster.settle()
    assert bodies(cluster) == []


def test_without_hold_calls_that_change_something_are_refused_at_once() -> None:
    cluster = Proxied(is_linked=False, hold_ms=0)
    (outcome,) = cluster.told(cluster.ask(send()))
    assert isinstance(outcome, ServiceUnavailable)
    read = cluster.ask(c.ListQueues())
    assert cluster.told(read) == []
    cluster.advance(3_001)
    (outcome,) = cluster.told(read)
    assert isinstance(outcome, ServiceUnavailable)


def test_more_than_it_may_hold_is_refused_at_once() -> None:
    cluster = Proxied(is_linked=False)
    held = [cluster.ask(send()) for _ in range(WAITING_CALLS_MAX)]
    (outcome,) = cluster.told(cluster.ask(send()))
    assert isinstance(outcome, ServiceUnavailable)
    assert cluster.told(held[0]) == []


def test_a_receive_that_leaves_its_wait_to_the_queue_is_waited_for_as_long_as_any_queue_lets_it() -> None:
    """The proxy knows no queues: with a short hold it must not give up while the master still waits for messages."""
    cluster = Proxied(hold_ms=1_000)
    cluster.do(cluster.elect(), c.CreateQueue("jobs", attributes={"ReceiveMessageWaitTimeSeconds": "20"}))
    ticket = cluster.ask(receive(None))
    cluster.advance(19_900)
    assert cluster.told(ticket) == []
    cluster.advance(200)
    (outcome,) = cluster.told(ticket)
    assert outcome == ReceiveMessageResult()


def test_a_call_at_a_master_that_is_paused_goes_on_at_once_at_the_next_one(cluster: Proxied) -> None:
    old = cluster.serving()[0]
    cluster.drops = lambda sender, frame: old in (sender, frame.to)
    ticket = cluster.ask(send("on"))
    cluster.elect_other(old)
    cluster.settle()
    (outcome,) = cluster.told(ticket)
    assert isinstance(outcome, SendMessageResult)
    assert bodies(cluster) == ["on"]


# --- which way calls go ------------------------------------------------------------------


def test_calls_go_through_a_member_that_hears_the_master_where_there_is_no_link_to_it(cluster: Proxied) -> None:
    cluster.unlink(cluster.serving()[0])
    assert isinstance(cluster.done(send("relayed")), SendMessageResult)
    assert bodies(cluster) == ["relayed"]


def test_a_relay_that_hears_the_master_no_more_is_left_until_it_tells_again(cluster: Proxied) -> None:
    """Otherwise a call would go to and fro without a pause."""
    (master,) = cluster.serving()
    relay, other = (name for name in cluster.names if name != master)
    cluster.unlink(master)
    cluster.unlink(other)
    cluster.cut |= {(relay, master), (master, relay)}
    cluster.node(relay).lost(master, cluster.now_ms)
    cluster.members[relay].drain()
    ticket = cluster.ask(send("patient"))
    assert cluster.told(ticket) == []
    assert cluster.proxy.status(cluster.now_ms).held_calls == 1
    cluster.cut.clear()
    cluster.introduce(relay, master)
    cluster.advance(1_500)
    assert isinstance(cluster.told(ticket)[0], SendMessageResult)


def test_a_former_master_is_heard_while_no_new_one_is_known(cluster: Proxied) -> None:
    """It says which calls it did not execute; they wait then, and do not go on as if nobody had answered."""
    proxy = proxy_of()
    old, new = (cluster.node(name).introduce() for name in "ab")
    for peer in (old, new):
        proxy.met(peer, 0)
    claim = told_by("a", cluster="c", term=1)
    hear(proxy, claim)
    proxy.submit(call_of(send()), "sent", 0)
    proxy.submit(call_of(receive(20)), "left", 0)
    hear(proxy, replace(claim, term=2, master=""))
    proxy.cancel("left", 0)
    not_master = NotMaster(cluster="c", sender="a", to=PROXY_ID, incarnation="5" * 16, number=1)
    hear(proxy, not_master)
    assert proxy.status(0).held_calls == 1
    hear(proxy, told_by("b", cluster="c", term=2))
    sent = [forwarding.decode(frame.data) for frame in proxy.effects.frames]
    assert [(type(each), each.to, each.cluster) for each in sent] == [
        (Forward, "a", "c"),
        (Forward, "a", "c"),
        (Withdraw, "a", "c"),
        (Forward, "b", "c"),
    ]


def test_who_was_not_asked_denies_no_master(cluster: Proxied) -> None:
    """A denial that is believed would have the master of this term passed over for as long as the term lasts."""
    (master,) = cluster.serving()
    other = next(name for name in cluster.names if name != master)
    cluster.drops = lambda sender, frame: sender == master and is_answer(frame)
    ticket = cluster.ask(send("once"))
    cluster.drops = None
    cluster_id = cluster.node(master).replica.cluster
    denial = NotMaster(cluster=cluster_id, sender=other, to=PROXY_ID, incarnation="5" * 16, number=1)
    ((link, error),) = cluster.proxy.receive_all([(other, encode(denial))], cluster.now_ms)
    assert (link, type(error)) == (other, forwarding.FrameError)
    assert cluster.proxy.status(cluster.now_ms).master == master
    assert cluster.told(ticket) == []
    assert isinstance(cluster.done(send("next")), SendMessageResult)


def test_an_answer_that_comes_before_its_question_is_refused(cluster: Proxied) -> None:
    """Else the call that gets its number is taken for answered, and its client waits for nothing."""
    other = next(name for name in cluster.names if name not in cluster.serving())
    cluster_id = cluster.node(other).replica.cluster
    early = forwarding.answer_of(SendMessageResult("id"), (PROXY_ID, "5" * 16, 1), cluster_id, other)
    for number in (0, 1, 1 << 40):
        ((link, _),) = cluster.proxy.receive_all([(other, encode(replace(early, number=number)))], cluster.now_ms)
        assert link == other
    assert isinstance(cluster.done(send("one")), SendMessageResult)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_a_member_that_breaks_the_rules_ends_no_proxy_and_is_forgotten_with_its_link(seed: int) -> None:
    chance = Random(seed)
    cluster = Proxied()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    proxy, replica = cluster.proxy, cluster.node(master).replica
    intruder = replace(cluster.node(master).introduce(), id=INTRUDER, name=INTRUDER)
    for _ in range(chance.randint(1, 25)):
        proxy.met(intruder, cluster.now_ms)
        frames = Frames(chance, replica.cluster, PROXY_ID, replica.term, replica.log.last_index, cluster.now_ms)
        drawn = frames.to_proxy(proxy.settings.incarnation) if chance.random() < 0.7 else frames.draw()
        refused = proxy.receive_all([(INTRUDER, drawn)], cluster.now_ms)
        cluster.drain_proxy()
        cluster.settle()
        if any(not isinstance(error, forwarding.ContentRefused) for _, error in refused):
            proxy.lost(INTRUDER, cluster.now_ms)
        if chance.random() < 0.5:
            cluster.ask(chance.choice([send(), receive(), receive(20), c.ListQueues()]))
        cluster.advance(chance.choice([0, 100, 2_000]))
    proxy.lost(INTRUDER, cluster.now_ms)
    cluster.advance(2_000)
    assert isinstance(cluster.done(send("afterwards")), SendMessageResult)


def hear(proxy: Proxy, forwarded: forwarding.AnyForwardingMessage) -> None:
    assert proxy.receive_all([(forwarded.sender, encode(forwarded))], 0) == []


def test_two_clusters_of_one_name_are_told_apart_by_nobody(cluster: Proxied) -> None:
    (master,) = cluster.serving()
    stranger = replace(cluster.node(master).introduce(), id="d-" + "1" * 16, name="d", cluster="other")
    claim = told_by(stranger.id, cluster="other", term=99)
    cluster.proxy.met(stranger, cluster.now_ms)
    assert cluster.proxy.receive_all([(stranger.id, encode(claim))], cluster.now_ms) == []
    assert "2 clusters of this name" in cluster.proxy.status(cluster.now_ms).reason
    (outcome,) = cluster.told(cluster.ask(send()))
    assert isinstance(outcome, ServiceUnavailable)
    assert "2 clusters" in outcome.message
    cluster.proxy.lost(stranger.id, cluster.now_ms)
    cluster.done(send())


def told_by(sender: str, *, cluster: str, term: int) -> MasterIs:
    return MasterIs(
        cluster=cluster,
        sender=sender,
        to=PROXY_ID,
        incarnation="",
        term=term,
        master=sender,
        time_ms=0,
        may_make_guids=True,
    )


def test_a_member_that_tells_nothing_is_named_as_the_reason(cluster: Proxied) -> None:
    proxy = proxy_of()
    proxy.start(0, 0)
    assert "no link to any member" in proxy.status(0).reason
    proxy.met(cluster.node("a").introduce(), 0)
    assert "none of 1 linked members has reported the master" in proxy.status(0).reason
    claim = replace(told_by("a", cluster="c", term=3), master="")
    assert proxy.receive_all([("a", encode(claim))], 0) == []
    assert "no master yet" in proxy.status(0).reason


def test_other_proxies_and_other_clusters_names_are_not_met(cluster: Proxied) -> None:
    proxy = proxy_of()
    proxy.met(cluster.proxy.introduce(), 0)
    proxy.met(replace(cluster.node("a").introduce(), cluster_name="another"), 0)
    assert proxy.status(0).members == ()


# --- what it refuses -----------------------------------------------------------------------


def test_frames_that_are_wrong_cost_their_link_and_others_change_nothing(cluster: Proxied) -> None:
    proxy, now_ms = cluster.proxy, cluster.now_ms
    lie = told_by("b", cluster="c", term=77)
    vote = PreVote(cluster="c", group=0, sender="a", to=PROXY_ID, term=9, last_index=1, last_term=1)
    frames = [("a", encode(lie)), ("b", b"\x02nonsense"), ("c", encode_vote(vote)), ("a", b"\x02more nonsense")]
    assert sorted(link for link, _ in proxy.receive_all(frames, now_ms)) == ["a", "b"]
    to_somebody_else = replace(told_by("a", cluster="c", term=77), to="web-2")
    assert proxy.receive_all([("a", encode(to_somebody_else))], now_ms) == []
    assert not proxy.effects.frames
    assert proxy.status(now_ms).term < 77


def test_an_answer_to_what_was_not_asked_is_refused(cluster: Proxied) -> None:
    (master,) = cluster.serving()
    cluster.drops = lambda sender, frame: is_answer(frame)
    ticket = cluster.ask(c.ListQueues())
    answer = forwarding.answer_of(
        SendMessageResult("id", "md5"), (PROXY_ID, "5" * 16, 1), cluster.node(master).replica.cluster, master
    )
    refused = cluster.proxy.receive_all([(master, encode(answer))], cluster.now_ms)
    assert [link for link, _ in refused] == [master]
    assert cluster.told(ticket) == []


def test_orders_are_for_members(cluster: Proxied) -> None:
    cluster.proxy.order(TransferMastership(), "ticket", cluster.now_ms)
    (reply,) = cluster.proxy.effects.replies
    assert isinstance(reply.outcome, OrderRefused)
    assert not cluster.proxy.hand_over(cluster.now_ms)
    assert cluster.proxy.leases(cluster.now_ms, 10) == []


def test_calls_without_an_id_get_one_while_the_history_has_room(cluster: Proxied) -> None:
    seen: list[bytes] = []

    def note(sender: str, frame: Frame) -> bool:
        forwarded = forwarding.decode(frame.data) if sender == PROXY_ID else None
        if isinstance(forwarded, Forward):
            seen.append(forwarded.invocation)
        return False

    cluster.drops = note
    cluster.done(send())
    cluster.done(c.ListQueues())
    (master,) = cluster.serving()
    told = replace(told_by(master, cluster=cluster.node(master).replica.cluster, term=10_000), may_make_guids=False)
    assert cluster.proxy.receive_all([(master, encode(told))], cluster.now_ms) == []
    cluster.done(send())
    assert [len(each) for each in seen] == [16, 0, 0]


def test_a_command_that_cannot_be_passed_on_is_its_caller_s_problem_alone(cluster: Proxied) -> None:
    huge = c.SendMessage(queue_url="jobs", message_body="x" * 9_000_000)
    cluster.proxy.submit(call_of(huge), "huge", cluster.now_ms)
    (reply,) = cluster.proxy.effects.replies
    assert isinstance(reply.outcome, InvalidParameterValue)
    cluster.proxy.effects.replies.clear()
    cluster.done(send())
