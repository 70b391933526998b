"""Heartbeats of consumers of groups: they wait at the master, and are answered when something changes."""

import pytest

from elasticq.model import commands as c
from elasticq.model import group_commands as g
from elasticq.model.commands import Call
from elasticq.model.errors import ElasticqGroupDoesNotExist, ElasticqNotHolder, ElasticqUnknownConsumer
from elasticq.model.group_results import GroupsResult, GroupViewResult
from elasticq.node.waits.heartbeats import Heartbeats, WaitingHeartbeat
from tests.node.cluster import Cluster, Solo, call_of
from tests.node.proxied import Proxied

SETTINGS = g.ElasticqSetGroup("g", queue_name_prefix="jobs")


@pytest.fixture
def group(solo: Solo) -> Solo:
    solo.do(SETTINGS)
    solo.advance(20)
    return solo


def join(solo: Solo) -> GroupViewResult:
    view = solo.do(g.ElasticqJoinGroup("g"))
    assert isinstance(view, GroupViewResult)
    return view


def waiting(view: GroupViewResult, *released: int, wait_s: int = 20) -> g.ElasticqHeartbeat:
    return g.ElasticqHeartbeat("g", view.consumer_id, list(released), view.version, wait_s)


def view_of(solo: Solo, ticket: int) -> GroupViewResult:
    (outcome,) = solo.answers(ticket)
    assert isinstance(outcome, GroupViewResult), outcome
    return outcome


def test_a_heartbeat_waits_until_something_changes(group: Solo) -> None:
    first = join(group)
    ticket = group.start_call(waiting(first))
    assert group.answers(ticket) == []
    second = join(group)
    assert group.answers(ticket) == [], "there is one queue, and its holder keeps it"
    other = group.start_call(waiting(second))
    group.create("jobs2")
    group.advance(20)
    changed = view_of(group, other)
    assert [each.resource for each in changed.assigned] == ["jobs2"]
    assert changed.version > second.version
    assert group.answers(ticket) == []


def group_view(solo: Solo, view: GroupViewResult) -> GroupViewResult:
    result = solo.do(g.ElasticqHeartbeat("g", view.consumer_id))
    assert isinstance(result, GroupViewResult)
    return result


def test_a_heartbeat_that_knows_another_version_or_does_not_wait_is_answered_now(group: Solo) -> None:
    view = join(group)
    for command in (
        g.ElasticqHeartbeat("g", view.consumer_id, [], view.version - 1, 20),
        g.ElasticqHeartbeat("g", view.consumer_id, [], None, 20),
        g.ElasticqHeartbeat("g", view.consumer_id, [], view.version, 0),
        g.ElasticqHeartbeat("g", view.consumer_id, [], view.version, None),
    ):
        assert group.do(command).version == view.version


def test_the_wait_ends_by_its_time_and_before_the_consumer_would_have_to_stop(group: Solo) -> None:
    view = join(group)
    ticket = group.start_call(waiting(view, wait_s=1))
    group.advance(999)
    assert group.answers(ticket) == []
    group.advance(1)
    assert view_of(group, ticket).version == view.version
    ticket = group.start_call(waiting(view))
    group.advance(3_333)
    view_of(group, ticket)


def test_an_answer_renews_nothing_as_its_client_may_be_dead(group: Solo) -> None:
    view = join(group)
    group.advance(1_000)
    ticket = group.start_call(waiting(view))
    group.advance(9_999)
    view_of(group, ticket)
    group_shown(group, 1)
    group.advance(1)
    group_shown(group, 0)


def group_shown(solo: Solo, consumers: int) -> None:
    result = solo.do(g.ElasticqDescribeGroups(["g"]))
    assert isinstance(result, GroupsResult)
    assert len(result.groups[0].consumers) == consumers


def test_a_session_that_was_made_longer_meanwhile_gives_an_older_heartbeat_no_more_time(group: Solo) -> None:
    view = join(group)
    ticket = group.start_call(waiting(view))
    group.do(g.ElasticqSetGroup("g", session_timeout_ms=3_600_000))
    group.advance(3_400)
    answered = view_of(group, ticket)
    assert (answered.session_timeout_ms, answered.hold_ms) == (3_600_000, 6_666)
    assert group_view(group, view).hold_ms == 2_400_000


def test_a_plain_loop_of_waiting_heartbeats_keeps_the_session(group: Solo) -> None:
    view = join(group)
    for _ in range(8):
        ticket = group.start_call(waiting(view))
        group.advance(3_400)
        view = view_of(group, ticket)
    assert len(view.assigned) == 1


def test_a_newer_heartbeat_has_the_older_one_answered(group: Solo) -> None:
    view = join(group)
    older = group.start_call(waiting(view))
    newer = group.start_call(waiting(view))
    assert view_of(group, older).assigned == view.assigned
    assert group.answers(newer) == []


def test_who_waits_for_a_resource_gets_it_when_it_is_given_back(group: Solo) -> None:
    first, second = join(group), join(group)
    group.do(g.ElasticqMoveResource("g", "jobs", second.consumer_id))
    ticket = group.start_call(waiting(second))
    token = group_view(group, first).revoking[0].token
    group.do(g.ElasticqHeartbeat("g", first.consumer_id, [token]))
    assert view_of(group, ticket).assigned[0].token > token


def test_a_heartbeat_is_answered_when_its_consumer_or_its_group_goes(group: Solo) -> None:
    first, second = join(group), join(group)
    tickets = [group.start_call(waiting(view)) for view in (first, second)]
    group.do(g.ElasticqLeaveGroup("g", first.consumer_id))
    assert isinstance(group.answers(tickets[0])[0], ElasticqUnknownConsumer)
    assert len(view_of(group, tickets[1]).assigned) == 1
    second = group_view(group, second)
    ticket = group.start_call(waiting(second))
    group.do(g.ElasticqDeleteGroup("g"))
    assert isinstance(group.answers(ticket)[0], ElasticqGroupDoesNotExist)


def test_a_session_ends_on_time_and_others_hear_of_it(group: Solo) -> None:
    first = join(group)
    group.advance(8_000)
    second = join(group)
    ticket = group.start_call(waiting(second))
    group.advance(1_999)
    assert group.answers(ticket) == []
    group.advance(1)
    assert len(view_of(group, ticket).assigned) == 1
    with pytest.raises(ElasticqUnknownConsumer):
        group_view(group, first)


def test_a_waiting_receive_of_who_has_to_give_back_is_refused_at_once(group: Solo) -> None:
    first, second = join(group), join(group)
    fence = {"elasticq_group": "g", "elasticq_token": first.assigned[0].token}
    command = c.ReceiveMessage("jobs", wait_time_seconds=20, **fence)
    unfenced = group.poll()
    fenced = group.start_call(command)
    group.do(g.ElasticqMoveResource("g", "jobs", second.consumer_id))
    assert isinstance(group.answers(fenced)[0], ElasticqNotHolder)
    assert group.answers(unfenced) == []
    again = group.start_call(command)
    assert isinstance(group.answers(again)[0], ElasticqNotHolder)


def test_a_waiting_receive_ends_with_its_session(group: Solo) -> None:
    view = join(group)
    fence = {"elasticq_group": "g", "elasticq_token": view.assigned[0].token}
    ticket = group.start_call(c.ReceiveMessage("jobs", wait_time_seconds=20, **fence))
    group.advance(9_999)
    assert group.answers(ticket) == []
    group.advance(1)
    assert isinstance(group.answers(ticket)[0], ElasticqNotHolder)


def test_a_client_that_left_is_not_answered(group: Solo) -> None:
    view = join(group)
    ticket = group.start_call(waiting(view))
    group.call_node("cancel", ticket)
    group.advance(5_000)
    assert group.answers(ticket) == []


def test_a_graceful_stop_answers_all(group: Solo) -> None:
    view = join(group)
    ticket = group.start_call(waiting(view))
    group.call_node("close_waiters")
    assert view_of(group, ticket).assigned == view.assigned


# --- in a cluster --------------------------------------------------------------------------


def joined(cluster: Cluster, name: str) -> GroupViewResult:
    cluster.do(name, SETTINGS)
    cluster.advance(20)
    view = cluster.do(name, g.ElasticqJoinGroup("g"))
    assert isinstance(view, GroupViewResult)
    return view


def test_a_heartbeat_that_came_by_another_member_waits_at_the_master(cluster: Cluster) -> None:
    master = cluster.serving()[0]
    other = next(name for name in cluster.names if name != master)
    view = joined(cluster, other)
    ticket = cluster.say(other, waiting(view))
    cluster.advance(500)
    assert cluster.answers(other, ticket) == []
    cluster.do(master, c.CreateQueue("jobs2"))
    cluster.advance(50)
    (outcome,) = cluster.answers(other, ticket)
    assert isinstance(outcome, GroupViewResult)
    assert len(outcome.assigned) == 2


def test_a_heartbeat_through_another_member_waits_for_all_of_its_time(cluster: Cluster) -> None:
    other = next(name for name in cluster.names if name != cluster.serving()[0])
    cluster.do(other, g.ElasticqSetGroup("g", queue_name_prefix="jobs", session_timeout_ms=90_000))
    cluster.advance(20)
    view = cluster.do(other, g.ElasticqJoinGroup("g"))
    assert isinstance(view, GroupViewResult)
    ticket = cluster.say(other, waiting(view, wait_s=20))
    cluster.advance(19_900)
    assert cluster.answers(other, ticket) == []
    cluster.advance(200)
    (outcome,) = cluster.answers(other, ticket)
    assert isinstance(outcome, GroupViewResult), outcome


def test_a_member_that_stops_has_the_heartbeats_answered_that_wait_at_the_master(cluster: Cluster) -> None:
    master = cluster.serving()[0]
    other = next(name for name in cluster.names if name != master)
    view = joined(cluster, other)
    ticket = cluster.say(other, waiting(view))
    cluster.node(other).close_waiters(cluster.now_ms)
    cluster.members[other].drain()
    cluster.settle()
    (outcome,) = cluster.answers(other, ticket)
    assert isinstance(outcome, GroupViewResult)


def test_a_new_master_knows_all_consumers_and_lets_heartbeats_wait_on() -> None:
    cluster = Cluster(hold_ms=25_000)
    cluster.introduce_all()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    cluster.advance(300)
    other = next(name for name in cluster.names if name != master)
    view = joined(cluster, other)
    ticket = cluster.say(other, waiting(view))
    cluster.crash(master)
    cluster.advance(8_000)
    (outcome,) = cluster.answers(other, ticket)
    assert isinstance(outcome, GroupViewResult)
    assert (outcome.assigned, outcome.version) == (view.assigned, view.version), "nothing was shared out anew"


def test_a_heartbeat_through_a_proxy_waits_and_is_answered() -> None:
    cluster = Proxied()
    cluster.do(cluster.elect(), c.CreateQueue(queue_name="jobs"))
    cluster.advance(1_300)
    cluster.done(SETTINGS)
    cluster.advance(50)
    view = cluster.done(g.ElasticqJoinGroup("g"))
    assert isinstance(view, GroupViewResult)
    ticket = cluster.ask(waiting(view))
    cluster.advance(200)
    assert ticket not in cluster.proxy_replies
    cluster.done(c.CreateQueue("jobs2"))
    cluster.advance(200)
    (outcome,) = cluster.proxy_replies[ticket]
    assert isinstance(outcome, GroupViewResult)
    assert len(outcome.assigned) == 2


# --- the heartbeats that wait ----------------------------------------------------------------


def one(consumer: int, deadline_ms: int) -> WaitingHeartbeat:
    call: Call = call_of(g.ElasticqHeartbeat("g", f"{consumer:016x}"))
    return WaitingHeartbeat(consumer, call, f"ticket{consumer}", deadline_ms, 6_666)


def test_heartbeats_are_found_by_consumer_ticket_and_deadline() -> None:
    heartbeats = Heartbeats()
    for consumer in range(200):
        heartbeats.add(one(consumer, 1_000 - consumer))
    assert heartbeats.next_deadline_ms() == 801
    assert heartbeats.take(199) is not None
    assert heartbeats.take(199) is None
    assert heartbeats.take_with("ticket198") is not None
    assert heartbeats.take_with("ticket198") is None
    assert heartbeats.take_expired(802) is None
    found = heartbeats.take_expired(803)
    assert found is not None
    assert found.consumer == 197
    for consumer in range(150):
        heartbeats.take(consumer)
    assert heartbeats.count == 47
    assert [each.consumer for each in heartbeats.take_all()] == list(range(150, 197))
    assert (heartbeats.count, heartbeats.next_deadline_ms()) == (0, None)
