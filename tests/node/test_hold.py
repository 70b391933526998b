"""Members hold the calls of their clients while masters come and go: one effect, one answer, no exception in time."""

import pytest
from msgspec.structs import replace

from elasticq.model import commands as c
from elasticq.model.errors import InvalidParameterValue, ServiceUnavailable, SqsError
from elasticq.model.extensions import AdvanceClock
from elasticq.model.results import (
    EmptyResult,
    ListQueuesResult,
    ReceiveMessageResult,
    SendMessageResult,
    StaleResult,
)
from elasticq.node import forwarding
from elasticq.node.call_holder import MOVED_AT_ONCE
from elasticq.node.outputs import Frame
from elasticq.node.waits import waiting_calls
from elasticq.node.waits.waiting_calls import WAITING_CALLS_MAX
from tests.node.cluster import Cluster, bodies, is_answer

HOLD_MS = 25_000
GUID = b"g" * 16


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(hold_ms=HOLD_MS)
    made.introduce_all()
    made.do(made.elect(), c.CreateQueue(queue_name="jobs"))
    made.advance(300)
    return made


def send(body: str = "x") -> c.SendMessage:
    return c.SendMessage(queue_url="jobs", message_body=body)


def receive(wait_s: int = 0, limit: int = 10) -> c.ReceiveMessage:
    return c.ReceiveMessage("jobs", wait_time_seconds=wait_s, max_number_of_messages=limit, visibility_timeout=600)


def follower(cluster: Cluster) -> str:
    return next(name for name in cluster.names if name in cluster.members and name not in cluster.serving())


def answers_of(cluster: Cluster, name: str, tickets: list[int]) -> list[object]:
    return [cluster.answer(name, ticket) for ticket in tickets]


@pytest.mark.parametrize("invocation", [b"", GUID])
def test_calls_that_come_after_the_master_died_wait_for_the_next_one(cluster: Cluster, invocation: bytes) -> None:
    master, name = cluster.elect(), follower(cluster)
    cluster.crash(master)
    ticket = cluster.say(name, send("after"), invocation)
    assert cluster.answers(name, ticket) == []
    cluster.elect()
    cluster.settle()
    assert isinstance(cluster.answer(name, ticket), SendMessageResult)
    assert bodies(cluster) == ["after"]


@pytest.mark.parametrize("invocation", [b"", GUID])
@pytest.mark.parametrize("is_kept", [True, False])
def test_call_under_way_when_the_master_dies_has_one_effect(cluster: Cluster, invocation: bytes, is_kept: bool) -> None:
    """``is_kept``: the other voters have its entry, so that it outlives the master that did not answer."""
    master, name = cluster.elect(), follower(cluster)
    cluster.drops = lambda sender, frame: sender == master and (not is_kept or is_answer(frame))
    index = cluster.node(master).applied_index
    ticket = cluster.say(name, send("once"), invocation)
    assert cluster.answers(name, ticket) == []
    assert cluster.node(master).applied_index == index + 1, "the master has executed it"
    cluster.crash(master)
    cluster.drops = None
    cluster.elect()
    cluster.settle()
    assert isinstance(cluster.answer(name, ticket), SendMessageResult)
    assert bodies(cluster) == ["once"]


def test_retry_after_a_failover_is_the_same_call_for_five_minutes(cluster: Cluster) -> None:
    ticket = cluster.say(cluster.elect(), send("once"), GUID)
    first = cluster.answer(cluster.elect(), ticket)
    cluster.crash(cluster.elect())
    for wait_ms in (1_000, 298_000 - cluster.now_ms % 1_000):
        new = cluster.elect()
        cluster.advance(wait_ms)
        assert cluster.do(new, send("once"), GUID) == first
    assert bodies(cluster) == ["once"]


def test_receive_whose_answer_died_with_the_master_gets_the_same_messages(cluster: Cluster) -> None:
    master, name = cluster.elect(), follower(cluster)
    cluster.do(master, send("mine"))
    cluster.advance(300)
    cluster.drops = lambda sender, frame: sender == master and is_answer(frame)
    ticket = cluster.say(name, receive())
    cluster.advance(10)
    cluster.crash(master)
    cluster.drops = None
    new = cluster.elect()
    cluster.settle()
    outcome = cluster.answer(name, ticket)
    assert isinstance(outcome, ReceiveMessageResult)
    (message,) = outcome.messages
    assert message.body == "mine"
    cluster.do(new, c.DeleteMessage("jobs", message.receipt_handle))
    cluster.advance(700_000)
    assert bodies(cluster) == []


def test_call_accepted_by_the_master_itself_goes_on_with_the_next_one(cluster: Cluster) -> None:
    old = cluster.elect()
    others = [name for name in cluster.names if name != old]
    for other in others:
        cluster.part(old, other)
    held, nameless = cluster.say(old, send("held"), GUID), cluster.say(old, send("nameless"))
    new = cluster.elect_other(old)
    cluster.do(new, send("new"))
    cluster.advance(3_000)
    assert answers_now(cluster, old, held, nameless) == [[], []], "it steps down, and hears nobody"
    heal(cluster)
    for ticket in (held, nameless):
        assert isinstance(cluster.answer(old, ticket), SendMessageResult)
    assert sorted(bodies(cluster)) == ["held", "nameless", "new"], "the entry of the nameless one was cut off the log"


def answers_now(cluster: Cluster, name: str, *tickets: int) -> list[list[object]]:
    return [list(cluster.answers(name, ticket)) for ticket in tickets]


def heal(cluster: Cluster) -> None:
    cluster.cut.clear()
    cluster.drops = None
    cluster.introduce_all()
    cluster.advance(2_000)


def deaf_master(cluster: Cluster, *commands: c.Command) -> tuple[str, list[int]]:
    """A master whose entries reach the others, while nothing of theirs reaches it; with its calls without a GUID."""
    old = cluster.elect()
    cluster.drops = lambda sender, frame: frame.to == old
    tickets = [cluster.say(old, command) for command in commands]
    cluster.settle()
    for other in cluster.names:
        if other != old:
            cluster.part(old, other)
    return old, tickets


def test_answer_to_a_nameless_call_leaves_when_the_next_master_has_committed_its_entry(cluster: Cluster) -> None:
    (here,) = cluster.serving()
    cluster.do(here, send("there"))
    cluster.advance(300)
    old, (sent, received) = deaf_master(cluster, send("kept"), receive(limit=1))
    cluster.elect_other(old)
    cluster.advance(1_000)
    assert answers_now(cluster, old, sent, received) == [[], []]
    heal(cluster)
    answer, got = answers_of(cluster, old, [sent, received])
    assert isinstance(answer, SendMessageResult)
    assert isinstance(got, ReceiveMessageResult)
    assert [message.body for message in got.messages] == ["there"]
    (master,) = cluster.serving()
    messages = cluster.do(master, receive()).messages  # type: ignore[attr-defined]
    assert [(message.body, message.message_id) for message in messages] == [("kept", answer.message_id)]


def test_nameless_call_whose_entry_nobody_decides_is_answered_as_unknown_in_time(cluster: Cluster) -> None:
    old, (sent,) = deaf_master(cluster, send("kept"))
    cluster.advance(HOLD_MS - 100)
    assert cluster.answers(old, sent) == []
    cluster.advance(4_000)
    (outcome,) = cluster.answers(old, sent)
    assert isinstance(outcome, ServiceUnavailable)
    heal(cluster)
    assert len(cluster.answers(old, sent)) == 1


def test_nameless_call_is_answered_as_unknown_when_a_snapshot_takes_the_place_of_the_log(cluster: Cluster) -> None:
    old, (sent,) = deaf_master(cluster, send("kept"))
    cluster.advance(1_000)
    node = cluster.node(old)
    node.retire(cluster.now_ms)
    assert [type(reply.outcome) for reply in node.effects.replies if reply.ticket == sent] == [ServiceUnavailable]


def test_nameless_call_is_answered_whoever_is_elected_when_members_meet_again(cluster: Cluster) -> None:
    old, (sent,) = deaf_master(cluster, send("kept"))
    one, other = (name for name in cluster.names if name != old)
    cluster.part(one, other)
    cluster.advance(3_000)
    assert cluster.serving() == []
    heal(cluster)
    assert isinstance(cluster.answer(old, sent), SendMessageResult)
    assert bodies(cluster) == ["kept"]


def test_long_poll_waits_on_at_the_next_master_for_the_rest_of_its_time(cluster: Cluster) -> None:
    master, name = cluster.elect(), follower(cluster)
    began_ms = cluster.now_ms
    found, empty = cluster.say(name, receive(20, 1)), cluster.say(name, receive(10, 1))
    cluster.advance(5_000)
    cluster.crash(master)
    new = cluster.elect()
    cluster.do(new, send("late"))
    cluster.settle()
    (outcome,) = cluster.answers(name, found)
    assert [message.body for message in outcome.messages] == ["late"]  # type: ignore[union-attr]
    cluster.advance(began_ms + 9_900 - cluster.now_ms)
    assert cluster.answers(name, empty) == []
    cluster.advance(1_100)
    assert cluster.answers(name, empty) == [ReceiveMessageResult()]


@pytest.mark.parametrize("invocation", [b"", GUID])
def test_call_at_a_master_that_is_paused_goes_on_at_once_at_the_next_one(cluster: Cluster, invocation: bytes) -> None:
    """Its link stands, and it will not say soon that it is none any more."""
    old, name = cluster.elect(), follower(cluster)
    cluster.drops = lambda sender, frame: old in (sender, frame.to)
    under_way, read = cluster.say(name, send("on"), invocation), cluster.say(name, c.ListQueues())
    cluster.elect_other(old)
    cluster.settle()
    assert isinstance(cluster.answer(name, under_way), SendMessageResult)
    assert isinstance(cluster.answer(name, read), ListQueuesResult)
    heal(cluster)
    assert bodies(cluster) == ["on"]


def test_member_that_does_not_know_cluster_time_gives_no_id_to_a_call(cluster: Cluster) -> None:
    """Its copies would have no deadline, and might be executed when the id is forgotten."""
    master, name = cluster.elect(), follower(cluster)
    guids: list[bytes] = []

    def note(sender: str, frame: Frame) -> bool:
        if sender == name and frame.data[:1] == forwarding.FORWARDED:
            forwarded = forwarding.decode(frame.data)
            assert isinstance(forwarded, forwarding.Forward)
            guids.append(forwarded.invocation)
        return False

    cluster.drops = note
    cluster.say(name, send("named"))
    assert cluster.node(name).replica.master == master
    cluster.node(name).clock._linked_term = 0
    cluster.say(name, send("nameless"))
    assert [bool(guid) for guid in guids] == [True, False]


def stop_waits(cluster: Cluster, name: str) -> None:
    """Of a member's own clients, as a graceful stop does, which looks again and again."""
    for _ in range(3):
        cluster.node(name).close_waiters(cluster.now_ms)
        cluster.members[name].drain()
        cluster.settle()


def test_long_polls_of_a_follower_that_stops_end_empty_at_once(cluster: Cluster) -> None:
    master, name = cluster.elect(), follower(cluster)
    own, others = cluster.say(name, receive(20)), cluster.say(master, receive(20))
    stop_waits(cluster, name)
    assert cluster.answers(name, own) == [ReceiveMessageResult()]
    assert cluster.answers(master, others) == []
    cluster.do(master, send("for who waits on"))
    cluster.settle()
    assert len(cluster.answers(master, others)) == 1


def test_messages_on_their_way_to_a_follower_that_stops_arrive(cluster: Cluster) -> None:
    master, name = cluster.elect(), follower(cluster)
    kept: list[Frame] = []

    def delay(sender: str, frame: Frame) -> bool:
        is_late = sender == master and frame.to == name and is_answer(frame)
        kept.extend([frame] * is_late)
        return is_late

    poll = cluster.say(name, receive(20))
    cluster.drops = delay
    cluster.do(master, send("on its way"))
    stop_waits(cluster, name)
    cluster.drops = None
    for frame in kept:
        cluster.deliver(master, frame)
    (outcome,) = cluster.answers(name, poll)
    assert [message.body for message in outcome.messages] == ["on its way"]  # type: ignore[union-attr]


def test_long_polls_that_wait_for_a_master_end_empty_but_not_those_under_way_or_leased(cluster: Cluster) -> None:
    master, name = cluster.elect(), follower(cluster)
    under_way = cluster.say(name, receive(20), GUID)
    cluster.crash(master)
    waiting = cluster.say(name, receive(20))
    leased = cluster.say(name, replace(receive(20), receive_request_attempt_id="r/1/0/1"))
    sent = cluster.say(name, send("later"))
    stop_waits(cluster, name)
    assert cluster.answers(name, waiting) == [ReceiveMessageResult()]
    assert answers_now(cluster, name, under_way, leased, sent) == [[], [], []]


def test_below_quorum_calls_wait_for_their_time_and_are_told_why(cluster: Cluster) -> None:
    master, name = cluster.elect(), follower(cluster)
    for other in cluster.names:
        if other != name:
            cluster.crash(other)
    ticket, read = cluster.say(name, send("never"), GUID), cluster.say(name, c.ListQueues())
    cluster.advance(3_000)
    assert isinstance(cluster.answer(name, read), StaleResult)
    cluster.advance(HOLD_MS - 3_001)
    assert cluster.answers(name, ticket) == []
    cluster.advance(1)
    outcome = cluster.answer(name, ticket)
    assert isinstance(outcome, ServiceUnavailable)
    assert "1 of 3" in str(outcome)
    for other in (master, next(iter(cluster.down))):
        if other in cluster.down:
            cluster.restart(other)
    cluster.elect()
    assert bodies(cluster) == [], "what was answered 503 without an entry never appears"


def test_call_that_reaches_the_master_after_its_client_was_answered_has_no_effect(cluster: Cluster) -> None:
    master, name = cluster.elect(), follower(cluster)
    late: list[tuple[str, Frame]] = []

    def delay(sender: str, frame: Frame) -> bool:
        is_late = sender == name and frame.data[:1] == bytes([forwarding.FRAME_KIND])
        late.extend([(sender, frame)] * is_late)
        return is_late

    cluster.drops = delay
    ticket = cluster.say(name, send("late"), GUID)
    cluster.advance(HOLD_MS + 1_000)
    assert isinstance(cluster.answer(name, ticket), ServiceUnavailable)
    assert len(late) > 1, "it was tried again meanwhile"
    cluster.drops = None
    for sender, frame in late:
        cluster.deliver(sender, frame)
    cluster.settle()
    assert cluster.elect() == master
    assert len(cluster.answers(name, ticket)) == 1
    assert bodies(cluster) == []


def test_client_that_left_is_not_waited_for(cluster: Cluster) -> None:
    master, name = cluster.elect(), follower(cluster)
    cluster.crash(master)
    ticket = cluster.say(name, send("gone"), GUID)
    cluster.node(name).cancel(ticket, cluster.now_ms)
    cluster.elect()
    cluster.settle()
    assert cluster.answers(name, ticket) == []
    assert bodies(cluster) == []


def test_too_many_calls_are_refused_at_once(cluster: Cluster) -> None:
    name = follower(cluster)
    for other in cluster.names:
        if other != name:
            cluster.crash(other)
    tickets = [cluster.submit(name, send(str(number))) for number in range(WAITING_CALLS_MAX + 1)]
    assert all(cluster.answers(name, ticket) == [] for ticket in tickets[:-1])
    assert cluster.node(name).status(cluster.now_ms).held_calls == WAITING_CALLS_MAX
    assert isinstance(cluster.answer(name, tickets[-1]), ServiceUnavailable)


def test_member_that_belongs_to_no_cluster_yet_says_so_at_once() -> None:
    cluster = Cluster.fresh(hold_ms=HOLD_MS)
    ticket = cluster.say(cluster.names[0], send(), GUID)
    outcome = cluster.answer(cluster.names[0], ticket)
    assert isinstance(outcome, ServiceUnavailable)
    assert "waiting to found" in str(outcome)


def test_member_that_takes_a_snapshot_keeps_the_calls_of_its_clients(cluster: Cluster) -> None:
    master, name = cluster.elect(), follower(cluster)
    cluster.drops = lambda sender, frame: name in (sender, frame.to)
    under_way = cluster.say(name, send("under way"), GUID)
    poll = cluster.say(name, receive(20), b"h" * 16)
    listing = cluster.say(name, c.ListQueues())
    cluster.node(master).replica.compact(cluster.node(master).replica.commit_index, 1)
    cluster.drops = None
    assert cluster.install(name, master)
    cluster.advance(1_000)
    assert isinstance(cluster.answer(name, under_way), SendMessageResult)
    assert [message.body for message in cluster.answer(name, poll).messages] == ["under way"]  # type: ignore[union-attr]
    assert isinstance(cluster.answer(name, listing), ListQueuesResult)


def test_a_hundred_calls_of_all_kinds_see_no_error_through_ten_deaths(cluster: Cluster) -> None:
    """Each send once, and each answered; a member's clients never hear of a master that died."""
    name = "b"
    sent: list[int] = []
    for round_ in range(10):
        cluster.elect()
        tickets = []
        for number in range(10):
            body = f"{round_}-{number}"
            tickets.append(cluster.submit(name, send(body), f"{body:16}".encode()))
            if number == 4 and cluster.elect() != name:
                victim = cluster.elect()
                cluster.crash(victim)
                cluster.elect()
                cluster.restart(victim)
        cluster.advance(1_500)
        outcomes = answers_of(cluster, name, tickets)
        assert [outcome for outcome in outcomes if isinstance(outcome, SqsError)] == []
        sent += tickets
        if cluster.elect() == name:
            cluster.node(name).hand_over(cluster.now_ms)
            cluster.members[name].drain()
            cluster.advance(1_500)
    assert len(sent) == 100
    found = bodies(cluster)
    assert len(found) == len(set(found)) == 100


@pytest.mark.parametrize("wait_s", [21, 99])
def test_wait_that_no_receive_may_ask_for_is_refused_at_every_member(cluster: Cluster, wait_s: int) -> None:
    tickets = [(name, cluster.say(name, receive(wait_s))) for name in cluster.names]
    for name, ticket in tickets:
        assert isinstance(cluster.answer(name, ticket), InvalidParameterValue)


def test_calls_of_a_member_that_lost_only_its_link_to_the_master_go_by_way_of_another(cluster: Cluster) -> None:
    master, name = cluster.elect(), follower(cluster)
    cluster.drops = lambda sender, frame: sender == name and frame.to == master
    under_way = cluster.submit(name, send("under way"), GUID)
    cluster.settle()
    cluster.drops = None
    cluster.part(master, name)
    held = cluster.say(name, send("held"), b"h" * 16)
    cluster.advance(1_500)
    assert cluster.elect() == master
    assert [type(answer) for answer in answers_of(cluster, name, [under_way, held])] == [SendMessageResult] * 2


@pytest.mark.parametrize("command", [c.DeclareQueue(queue_name="new"), c.CreateQueue(queue_name="new")])
def test_answer_again_is_one_that_its_member_takes(cluster: Cluster, command: c.Command) -> None:
    master, name = cluster.elect(), follower(cluster)
    cluster.drops = lambda sender, frame: sender == master and is_answer(frame)
    ticket = cluster.say(name, command)
    cluster.crash(master)
    cluster.drops = None
    cluster.elect()
    cluster.settle()
    assert not isinstance(cluster.answer(name, ticket), SqsError)


def test_new_master_takes_all_that_others_held(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has bounded its own; together they may be more than one may hold."""
    monkeypatch.setattr(waiting_calls, "WAITING_CALLS_MAX", 10)
    cluster.crash(cluster.elect())
    tickets = [
        (name, cluster.submit(name, send(f"{name}{number}"), f"{name}{number:15}".encode()))
        for number in range(8)
        for name in cluster.members
    ]
    cluster.elect()
    cluster.settle()
    assert all(isinstance(cluster.answer(name, ticket), SendMessageResult) for name, ticket in tickets)


def test_clock_that_tests_turn_on_ends_no_call(cluster: Cluster) -> None:
    """Deadlines are about real time: a member that has not heard of the advance yet knows no other."""
    master, name = cluster.elect(), follower(cluster)
    cluster.submit(master, AdvanceClock(60_000))
    ticket = cluster.submit(name, send("x"), GUID)
    cluster.settle()
    assert isinstance(cluster.answer(name, ticket), SendMessageResult)
    assert isinstance(cluster.do(name, send("y")), SendMessageResult)


def test_call_that_may_have_had_its_effect_is_not_called_undone(cluster: Cluster) -> None:
    master, name = cluster.elect(), follower(cluster)
    cluster.drops = lambda sender, frame: sender == master and is_answer(frame)
    ticket = cluster.say(name, send("done"))
    cluster.drops = None
    for other in cluster.names:
        if other != name:
            cluster.crash(other)
    cluster.advance(HOLD_MS)
    assert "the outcome is unknown" in str(cluster.answer(name, ticket))


def test_receive_that_waited_at_a_master_that_is_deposed_does_not_wait_anew(cluster: Cluster) -> None:
    master = cluster.elect()
    ticket = cluster.say(master, receive(20), GUID)
    began_ms = cluster.now_ms
    cluster.advance(19_600)
    for other in cluster.names:
        if other != master:
            cluster.part(master, other)
    cluster.advance(1_300)
    assert cluster.answers(master, ticket) == [], "its empty answer waits for the lease"
    cluster.heal()
    while not cluster.answers(master, ticket):
        cluster.advance(100)
    assert cluster.answers(master, ticket) == [ReceiveMessageResult()]
    assert cluster.now_ms - began_ms < 25_000


def test_delete_that_is_told_twice_is_answered_twice(cluster: Cluster) -> None:
    master, name = cluster.elect(), follower(cluster)
    cluster.do(master, send("x"))
    (message,) = cluster.do(master, receive()).messages  # type: ignore[attr-defined]
    cluster.advance(300)
    cluster.drops = lambda sender, frame: sender == master and is_answer(frame)
    ticket = cluster.say(name, c.DeleteMessage("jobs", message.receipt_handle))
    queue = cluster.say(name, c.DeleteQueue("jobs"))
    cluster.crash(master)
    cluster.drops = None
    cluster.elect()
    cluster.settle()
    assert cluster.answer(name, ticket) == EmptyResult()
    assert cluster.answer(name, queue) == EmptyResult()


def test_calls_that_waited_for_a_master_go_on_in_turns(cluster: Cluster) -> None:
    """They are executed at the next master, and passed on by the others, a bounded number in each turn."""
    master = cluster.elect()
    names = [name for name in cluster.names if name != master]
    cluster.crash(master)
    tickets = {name: [cluster.say(name, send()) for _ in range(10 * MOVED_AT_ONCE + 1)] for name in names}
    while not cluster.serving():
        cluster.advance(10)
    for _ in range(60):
        before = {name: cluster.node(name).status(cluster.now_ms).held_calls for name in names}
        cluster.advance(1)
        for name in names:  # a millisecond has several turns
            assert cluster.node(name).status(cluster.now_ms).held_calls >= before[name] - 4 * MOVED_AT_ONCE
    for name in names:
        assert all(isinstance(answer, SendMessageResult) for answer in answers_of(cluster, name, tickets[name]))
