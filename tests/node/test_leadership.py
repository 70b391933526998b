"""Taking the mastership over, and handing it over: nothing is lost, and in vain it ends by itself."""

from elasticq.engine.views.digest import state_digest
from elasticq.model import commands as c
from elasticq.model import errors
from elasticq.model.errors import SqsError
from elasticq.node.leadership import GRACE_AFTER_MS, GRACE_BEFORE_MS, HAND_OVER_MS
from elasticq.node.membership.voter_changes import NOT_THE_MASTER
from elasticq.node.node import Node
from elasticq.node.orders import OrderDone, OrderRefused, TransferMastership
from elasticq.node.outputs import Frame
from elasticq.node.settings import NodeSettings
from elasticq.replication import messages
from elasticq.replication.messages import PROTOCOL_VERSION
from elasticq.replication.records import NOTHING
from tests.node.cluster import Cluster, Solo, call_of, restored

RECEIVE = c.ReceiveMessage(queue_url="jobs", max_number_of_messages=10)


def send(number: int) -> c.SendMessage:
    return c.SendMessage(queue_url="jobs", message_body=str(number))


def bodies(cluster: Cluster, name: str) -> list[str]:
    found: list[str] = []
    while True:
        ticket = cluster.say(name, RECEIVE)
        cluster.advance(0 if cluster.answers(name, ticket) else 2_000)  # an empty answer needs a lease
        messages = cluster.answer(name, ticket).messages  # type: ignore[union-attr]
        if not messages:
            return found
        found += [message.body for message in messages]


def test_nothing_is_lost_or_answered_with_an_error_under_load(cluster: Cluster) -> None:
    old = cluster.elect()
    tickets: list[tuple[str, int]] = []
    for number in range(300):
        name = cluster.names[number % 3]
        tickets.append((name, cluster.submit(name, send(number))))
        if number == 100:
            assert cluster.node(old).hand_over(cluster.now_ms)
            cluster.members[old].drain()
        if number % 7 == 0:
            cluster.settle()
        cluster.advance(1 if number % 3 else 0)
    cluster.settle()
    cluster.advance(100)
    (new,) = cluster.serving()
    assert new != old
    outcomes = [cluster.answer(name, ticket) for name, ticket in tickets]
    assert [outcome for outcome in outcomes if isinstance(outcome, SqsError)] == []
    assert sorted(bodies(cluster, new), key=int) == [str(number) for number in range(300)]
    cluster.advance(300)
    assert len({state_digest(member.node.state) for member in cluster.members.values()}) == 1


def test_calls_forwarded_to_the_old_master_meanwhile_are_held_there(cluster: Cluster) -> None:
    """Were they executed the transfer target would never have everything."""
    old = cluster.elect()
    other = next(name for name in cluster.names if name != old)
    cluster.held = {name for name in cluster.names if name != old}
    cluster.submit(old, send(0))
    cluster.settle()
    cluster.node(old).hand_over(cluster.now_ms)
    cluster.members[old].drain()
    last = cluster.node(old).replica.log.last_index
    tickets = [cluster.say(other, send(number)) for number in (1, 2)]
    assert cluster.node(old).replica.log.last_index == last
    cluster.held = set()
    cluster.settle()
    cluster.advance(500)
    assert cluster.serving() != [old]
    assert not any(isinstance(cluster.answer(other, ticket), SqsError) for ticket in tickets)
    assert sorted(bodies(cluster, other)) == ["0", "1", "2"]


def test_hand_over_in_vain_ends_and_what_was_held_goes_on(cluster: Cluster) -> None:
    old = cluster.elect()
    cluster.held = {name for name in cluster.names if name != old}
    cluster.submit(old, send(0))
    cluster.node(old).hand_over(cluster.now_ms)
    cluster.members[old].drain()
    ticket = cluster.say(old, send(1))
    third = next(name for name in cluster.names if name != old)
    cluster.drops = lambda _, frame: frame.to == third and len(frame.data) < 90 and frame.data[0] == 1
    cluster.advance(HAND_OVER_MS // 2)
    assert cluster.answers(old, ticket) == []
    cluster.drops = lambda sender, frame: sender == old and b"\x07" in frame.data[1:4]  # TimeoutNow
    cluster.held = set()
    cluster.advance(HAND_OVER_MS + 100)
    assert cluster.serving() == [old]
    cluster.advance(500)
    assert not isinstance(cluster.answer(old, ticket), SqsError)
    assert sorted(bodies(cluster, old)) == ["0", "1"]


def test_heir_is_one_that_is_alive(cluster: Cluster) -> None:
    """One that died while nothing was written has everything, too."""
    old = cluster.elect()
    for dead in [name for name in cluster.names if name != old]:
        cluster.crash(dead)
        cluster.advance(500)
        began_ms = cluster.now_ms
        assert cluster.node(old).hand_over(cluster.now_ms)
        cluster.members[old].drain()
        cluster.settle()
        new = cluster.elect_other(old)
        assert cluster.now_ms - began_ms <= 200
        cluster.restart(dead)
        cluster.advance(2_000)
        if new != old:
            cluster.node(new).hand_over(cluster.now_ms, old)
            cluster.members[new].drain()
            cluster.settle()
            cluster.advance(300)
        assert cluster.serving() == [old]


def test_long_poll_goes_on_at_the_new_master(cluster: Cluster) -> None:
    old = cluster.elect()
    polls = [(name, cluster.say(name, c.ReceiveMessage(queue_url="jobs", wait_time_seconds=20))) for name in "abc"]
    cluster.node(old).hand_over(cluster.now_ms)
    cluster.members[old].drain()
    cluster.settle()
    cluster.advance(500)
    (new,) = cluster.serving()
    for number in range(3):
        cluster.do(new, send(number))
    answered = [outcome for name, ticket in polls for outcome in cluster.answers(name, ticket)]
    assert [outcome for outcome in answered if isinstance(outcome, SqsError)] == []
    assert sorted(message.body for outcome in answered for message in outcome.messages) == ["0", "1", "2"]  # type: ignore[union-attr]


def test_order_hands_over_to_whom_it_names(cluster: Cluster) -> None:
    old = cluster.elect()
    for other in [name for name in cluster.names if name != old]:
        assert isinstance(cluster.obey(cluster.elect(), TransferMastership(other)), OrderDone)
        cluster.advance(500)
        assert cluster.serving() == [other]
    master = cluster.elect()
    for name in ("nobody", master):
        refused = OrderRefused(f"{name} is not one of the other voters, which 'elasticq cluster status' shows")
        assert cluster.obey(master, TransferMastership(name)) == refused
    follower = next(name for name in cluster.names if name != master)
    for name in (follower, ""):
        assert cluster.obey(follower, TransferMastership(name)) == OrderRefused(NOT_THE_MASTER)
    assert cluster.serving() == [master]


def test_who_is_alone_hands_over_to_nobody() -> None:
    alone = Cluster("a")
    refused = OrderRefused("this member is the only voter: nobody else can become master")
    assert alone.obey(alone.elect(), TransferMastership()) == refused


def test_no_background_work_makes_the_heir_too_old(cluster: Cluster) -> None:
    """A message comes due while the transfer target is being asked: its waiter is served by the transfer target."""
    old = cluster.elect()
    cluster.do(old, c.SendMessage(queue_url="jobs", message_body="due", delay_seconds=1))
    poll = cluster.say(old, c.ReceiveMessage(queue_url="jobs", wait_time_seconds=20))
    cluster.advance(900)
    others = [name for name in cluster.names if name != old]
    cluster.cut |= {(old, name) for name in others}
    last_index = cluster.node(old).replica.log.last_index
    assert cluster.node(old).hand_over(cluster.now_ms)
    cluster.members[old].drain()
    cluster.advance(300)
    assert cluster.node(old).replica.log.last_index == last_index
    cluster.cut.clear()
    cluster.advance(2_000)
    assert [message.body for message in cluster.answer(old, poll).messages] == ["due"]  # type: ignore[union-attr]


def test_one_heir_is_asked_however_often() -> None:
    """Of four members two that stand at once would split the votes."""
    cluster = Cluster("abcd")
    cluster.introduce_all()
    old = cluster.elect()
    cluster.advance(300)
    asked: set[str] = set()

    def is_asked(_: str, frame: Frame) -> bool:
        is_lost = frame.data[0] == PROTOCOL_VERSION and isinstance(messages.decode(frame.data), messages.TimeoutNow)
        if is_lost:
            asked.add(frame.to)
        return is_lost

    cluster.drops = is_asked
    assert cluster.node(old).hand_over(cluster.now_ms)
    cluster.members[old].drain()
    for name in cluster.names * 3:
        cluster.say(name, send(0))
        cluster.advance(30)
    assert len(asked) == 1


# --- taking over --------------------------------------------------------------------


def test_before_the_takeover_is_durable_every_call_is_refused() -> None:
    node = Node(NodeSettings(member_id="a", voters=("a",)), NOTHING, b"e" * 32)
    node.start(0, 1_700_000_000_000)
    for _ in range(4):
        node.submit(call_of(c.CreateQueue(queue_name="early")), "early", 0)
        if node.serving:
            break
        (reply,) = node.effects.replies
        assert isinstance(reply.outcome, errors.ServiceUnavailable)
        assert reply.outcome.status == 503
        node.effects.replies.clear()
        assert not node.status(0).ready
        node.synced(node.effects.token, 0)
    assert node.serving


def test_messages_in_flight_at_a_restart_get_grace() -> None:
    solo = Solo(volatile=False)
    solo.create()
    solo.send()
    solo.receive(visibility_s=1)
    again = Solo(volatile=False, durable=restored([record for _, record in solo.member.disk]))
    (span,) = again.node.state.grace.spans
    last_ms = solo.entries[-1].time_ms
    assert span == (last_ms - GRACE_BEFORE_MS, again.node.status(again.now_ms).time_ms + GRACE_AFTER_MS)
    again.advance(1_000)
    assert again.receive() == []
    again.advance(GRACE_AFTER_MS - 1_000)
    assert len(again.receive()) == 1
