"""Three members in memory: elections, takeover, catching up, restarts, time."""

from collections.abc import Callable

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.model import commands as c
from elasticq.model.results import ReceiveMessageResult
from elasticq.node.leadership import GRACE_AFTER_MS, GRACE_BEFORE_MS, GRACE_SPAN_MAX_MS
from elasticq.node.outputs import Frame
from elasticq.replication import messages
from elasticq.replication.messages import Append, PreVote
from elasticq.replication.records import Entry
from tests.node.cluster import WALL_MS, Cluster

SEND = c.SendMessage(queue_url="jobs", message_body="x")
RECEIVE = c.ReceiveMessage(queue_url="jobs", max_number_of_messages=10)


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.do(made.elect(), c.CreateQueue(queue_name="jobs"))
    return made


def others(cluster: Cluster, master: str) -> list[str]:
    return [name for name in cluster.names if name != master]


def check_equal_states(cluster: Cluster) -> None:
    """After a heartbeat everybody has applied the same, to the same."""
    cluster.advance(300)
    nodes = [member.node for member in cluster.members.values()]
    assert len({node.applied_index for node in nodes}) == 1
    assert len({state_digest(node.state) for node in nodes}) == 1


def committed_mutations(cluster: Cluster, name: str) -> list[m.Mutation]:
    replica = cluster.node(name).replica
    first = replica.log.first_index
    entries = [replica.log.entry(index) for index in range(first, replica.commit_index + 1)]
    return [mutation for entry in entries for mutation in m.decode(entry.payload)]


# --- elections ----------------------------------------------------------------------


@pytest.mark.parametrize("names", ["ab", "abc", "abcde"])
@pytest.mark.parametrize("volatile", [False, True])
def test_members_elect_one_master_and_agree(names: str, volatile: bool) -> None:
    cluster = Cluster(names, volatile=volatile)
    master = cluster.elect()
    assert cluster.masters() == [master]
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    for _ in range(5):
        cluster.do(master, SEND)
    check_equal_states(cluster)
    assert {cluster.node(name).status(cluster.now_ms).master for name in names} == {master}
    assert all(cluster.node(name).status(cluster.now_ms).ready for name in names)


def test_quiet_cluster_keeps_its_master_and_its_log(cluster: Cluster) -> None:
    master = cluster.elect()
    term, last = cluster.node(master).replica.term, cluster.node(master).replica.log.last_index
    cluster.advance(60_000)
    assert (cluster.serving(), cluster.node(master).replica.term) == ([master], term)
    assert cluster.node(master).replica.log.last_index == last


def test_master_serves_only_when_its_takeover_is_committed() -> None:
    cluster = Cluster()
    for name in cluster.names:
        drop_entries(cluster, name)  # votes and heartbeats go through
    while not cluster.masters():
        cluster.advance(50)
    (master,) = cluster.masters()
    node = cluster.node(master)
    ticket = cluster.submit(master, c.CreateQueue(queue_name="early"))
    (outcome,) = cluster.answers(master, ticket)
    assert outcome.status == 503
    assert "taking over" in outcome.message
    assert not node.serving
    assert not node.status(cluster.now_ms).ready
    for name in cluster.names:
        del cluster.members[name].ready_frames
    master = cluster.elect()
    (took_over,) = [x for x in committed_mutations(cluster, master) if isinstance(x, m.TookOver)]
    assert took_over.term == cluster.node(master).replica.term


def drop_entries(cluster: Cluster, name: str) -> None:
    take = cluster.members[name].ready_frames

    def without_entries() -> list[Frame]:
        kept = []
        for frame in take():
            message = messages.decode(frame.data)
            if not (isinstance(message, Append) and message.entries):
                kept.append(frame)
        return kept

    cluster.members[name].ready_frames = without_entries  # type: ignore[method-assign]


def test_new_master_is_elected_when_the_old_one_dies_and_has_everything(cluster: Cluster) -> None:
    old = cluster.elect()
    for _ in range(5):
        cluster.do(old, SEND)
    cluster.crash(old)
    began_ms = cluster.now_ms
    new = cluster.elect_other(old)
    assert cluster.now_ms - began_ms <= 5_000
    assert len(cluster.do(new, RECEIVE).messages) == 5
    cluster.restart(old)
    check_equal_states(cluster)


def test_restart_keeps_the_term_and_deposes_nobody(cluster: Cluster) -> None:
    master = cluster.elect()
    term = cluster.node(master).replica.term
    for _ in range(3):
        for name in others(cluster, master):
            cluster.crash(name)
            cluster.restart(name)
            assert cluster.node(name).replica.term == term
            cluster.advance(3_000)
    assert cluster.serving() == [master]
    assert cluster.node(master).replica.term == term
    check_equal_states(cluster)


def test_partitioned_follower_raises_no_term_and_disturbs_nobody_when_it_returns(cluster: Cluster) -> None:
    master = cluster.elect()
    term = cluster.node(master).replica.term
    lonely = others(cluster, master)[0]
    cluster.isolate(lonely)
    cluster.advance(20_000)
    assert cluster.node(lonely).replica.term == term
    assert any(
        isinstance(messages.decode(frame.data), PreVote) for sender, frame in cluster.lost_frames if sender == lonely
    )
    cluster.do(master, SEND)
    cluster.heal()
    cluster.advance(3_000)
    assert cluster.serving() == [master]
    check_equal_states(cluster)


def test_partitioned_master_steps_down_by_check_quorum(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.isolate(master)
    cluster.advance(1_000)
    assert master not in cluster.masters()
    assert not cluster.node(master).serving


def test_whole_cluster_restarts_with_what_was_committed(cluster: Cluster) -> None:
    master = cluster.elect()
    cluster.do(master, SEND)
    for name in cluster.names:
        cluster.crash(name)
    for name in cluster.names:
        cluster.restart(name)
    assert len(cluster.do(cluster.elect(), RECEIVE).messages) == 1
    check_equal_states(cluster)


def test_member_that_was_away_long_catches_up(cluster: Cluster) -> None:
    master = cluster.elect()
    away = others(cluster, master)[0]
    cluster.crash(away)
    for _ in range(1_500):
        cluster.do(master, SEND)
    cluster.restart(away)
    check_equal_states(cluster)
    assert len(cluster.node(away).state.queue("000000000000", "jobs").contents) == 1_500


# --- roll-back -------------------------------------------------------------------------


def test_deposed_master_takes_back_what_was_not_committed(cluster: Cluster) -> None:
    old = cluster.elect()
    for number in range(3):
        cluster.do(old, c.SendMessage(queue_url="jobs", message_body=str(number)))
    committed = state_digest(cluster.node(old).state)
    cluster.isolate(old)
    commands = (
        SEND,
        RECEIVE,
        c.CreateQueue(queue_name="lost"),
        c.SetQueueAttributes(queue_url="jobs", attributes={"DelaySeconds": "5"}),
        c.PurgeQueue(queue_url="jobs"),
        c.DeleteQueue(queue_url="jobs"),
    )
    for number, command in enumerate(commands):
        cluster.submit(old, command, bytes([number]) * 16)
        cluster.settle()
    assert state_digest(cluster.node(old).state) != committed
    cluster.advance(1_000)
    assert state_digest(cluster.node(old).state) == committed
    new = cluster.elect_other(old)
    result = cluster.do(new, c.SendMessage(queue_url="jobs", message_body="3"))
    cluster.heal()
    check_equal_states(cluster)
    assert [x.body for x in cluster.do(new, RECEIVE).messages] == ["0", "1", "2", "3"]
    assert result.message_id


def test_one_frame_ends_a_mastership_and_commits_other_entries_in_the_place_of_its_own(cluster: Cluster) -> None:
    """What was rolled back is counted from the commit index at which the mastership was lost."""
    old = cluster.elect()
    cluster.advance(300)
    node, other = cluster.node(old), others(cluster, old)[0]
    replica = node.replica
    place, last_term, time_ms = replica.commit_index, replica.log.last_term, replica.log.last_time_ms
    cluster.isolate(old)
    for name in ("lost", "lost-too", "lost-as-well"):
        cluster.submit(old, c.CreateQueue(queue_name=name))
        cluster.settle()
    assert (node.applied_index, replica.commit_index) == (place + 3, place)
    term = replica.term + 1
    payload = m.encode([m.TookOver(term, other, 0, 0)])
    entries = [Entry(place + 1, term, time_ms, payload), Entry(place + 2, term, time_ms, m.encode([]))]
    head = {"cluster": replica.cluster, "group": 0, "sender": other, "to": old, "term": term}
    where = {"prev_index": place, "prev_term": last_term, "round": 1, "time_ms": 1}
    frame = Append(**head, **where, commit_index=place + 2, entries=entries)
    node.receive(messages.encode(frame), cluster.now_ms)
    assert not node.serving
    assert (node.applied_index, replica.commit_index, replica.log.last_index) == (place + 2,) * 3
    assert node.state.takeover_term == term
    assert [queue.name for queue in node.state.queues.values()] == ["jobs"]


def test_uncommitted_tail_is_overwritten_and_its_ids_are_never_given_again(cluster: Cluster) -> None:
    old = cluster.elect()
    cluster.isolate(old)
    cluster.submit(old, SEND)
    (lost,) = cluster.node(old).state.queue("000000000000", "jobs").contents
    new = cluster.elect_other(old)
    cluster.do(new, SEND)
    (kept,) = cluster.node(new).state.queue("000000000000", "jobs").contents
    assert kept != lost
    cluster.heal()
    check_equal_states(cluster)
    assert list(cluster.node(old).state.queue("000000000000", "jobs").contents) == [kept]


def test_entries_of_an_old_master_that_a_majority_has_are_kept(cluster: Cluster) -> None:
    """Durable at one follower, never acknowledged: the new master brings it to its end."""
    old = cluster.elect()
    helper, third = others(cluster, old)
    cluster.cut = {(old, third), (third, old), (helper, old)}
    cluster.submit(old, SEND)
    cluster.settle()
    cluster.crash(old)
    cluster.heal()
    assert cluster.elect_other(old) == helper, "only its log is new enough"
    assert len(cluster.do(helper, RECEIVE).messages) == 1


# --- followers -----------------------------------------------------------------------------


def test_follower_applies_at_commit_and_not_before(cluster: Cluster) -> None:
    master = cluster.elect()
    one, two = others(cluster, master)
    cluster.isolate(two)
    cluster.held = {master}
    before = cluster.node(one).applied_index
    cluster.submit(master, SEND)
    cluster.settle()
    assert cluster.node(one).replica.log.last_index == before + 1
    assert cluster.node(one).applied_index == before
    cluster.held = set()
    cluster.settle()
    assert cluster.node(one).applied_index == before + 1


def test_frames_of_another_cluster_change_nothing(cluster: Cluster) -> None:
    stranger = Cluster()
    stranger.elect()
    stranger.advance(500)
    master = cluster.elect()
    cluster.advance(500)
    follower = others(cluster, master)[0]
    before = cluster.node(follower).status(cluster.now_ms)
    forged = Append(
        cluster="0" * 32,
        group=0,
        sender=master,
        to=follower,
        term=99,
        prev_index=0,
        prev_term=0,
        commit_index=0,
        round=1,
        time_ms=0,
        entries=[],
    )
    cluster.node(follower).receive(messages.encode(forged), cluster.now_ms)
    assert cluster.node(follower).status(cluster.now_ms) == before


def test_duplicated_and_reordered_frames_do_no_harm(cluster: Cluster) -> None:
    master = cluster.elect()
    for member in cluster.members.values():
        original, said = member.ready_frames, list[Frame]()

        def twice_and_backwards(take: Callable[[], list[Frame]] = original, stored: list[Frame] = said) -> list[Frame]:
            frames = take()
            stored.extend(frames)
            return [*reversed(frames), *frames, *stored[-8:-6]]

        member.ready_frames = twice_and_backwards
    for _ in range(20):
        ticket = cluster.submit(master, SEND)
        for _ in range(6):
            for name, member in cluster.members.items():
                member.sync(cluster.now_ms)
                for frame in member.ready_frames():
                    if frame.to != name:
                        cluster.deliver(name, frame)
    for member in cluster.members.values():
        del member.ready_frames
    cluster.advance(2_000)
    assert len(cluster.answers(master, ticket)) == 1
    check_equal_states(cluster)


# --- hand-over --------------------------------------------------------------------------------


def test_hand_over_moves_the_mastership_without_waiting_for_silence(cluster: Cluster) -> None:
    old = cluster.elect()
    cluster.do(old, SEND)
    cluster.advance(300)
    began_ms = cluster.now_ms
    assert cluster.node(old).hand_over(cluster.now_ms)
    cluster.members[old].drain()
    cluster.settle()
    new = cluster.elect_other(old)
    assert cluster.now_ms - began_ms <= 200
    assert cluster.masters() == [new]
    assert len(cluster.do(new, RECEIVE).messages) == 1
    check_equal_states(cluster)


def test_follower_hands_nothing_over(cluster: Cluster) -> None:
    assert not cluster.node(others(cluster, cluster.elect())[0]).hand_over(cluster.now_ms)


# --- time -------------------------------------------------------------------------------------


def test_cluster_time_follows_the_master_whatever_the_wall_clocks_say() -> None:
    cluster = Cluster(offsets_ms=(0, 500_000, -500_000))
    master = cluster.elect()
    cluster.advance(1_000)
    assert cluster.node(master).clock.time_ms(cluster.now_ms) <= WALL_MS + cluster.now_ms
    readings = {name: cluster.node(name).clock.reading(cluster.now_ms) for name in cluster.names}
    assert {linked for linked, _ in readings.values()} == {True}
    times = [time_ms for _, time_ms in readings.values()]
    assert max(times) - min(times) <= 100


def test_cluster_time_neither_falls_nor_leaps_over_failovers() -> None:
    cluster = Cluster(offsets_ms=(0, 400_000, -400_000))
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    begin_ms = cluster.node(master).clock.time_ms(cluster.now_ms) - cluster.now_ms
    for _ in range(4):
        cluster.do(master, SEND)
        cluster.advance(1_000)
        cluster.isolate(master)
        next_master = cluster.elect_other(master)
        cluster.heal()
        cluster.advance(500)
        master = next_master
        offset_ms = cluster.node(master).clock.time_ms(cluster.now_ms) - cluster.now_ms
        assert abs(offset_ms - begin_ms) <= 500
    log = cluster.node(master).replica.log
    times = [log.entry(index).time_ms for index in range(log.first_index, log.last_index + 1)]
    assert times == sorted(times)


def test_new_master_goes_on_from_the_time_of_the_last_one_and_not_of_one_before_it() -> None:
    """The time of a master that was cut off may be ahead of its successor's by what its heartbeats took."""
    cluster = Cluster()
    first = cluster.elect()
    cluster.do(first, c.CreateQueue(queue_name="jobs"))
    for name in others(cluster, first):  # as if their heartbeats had been so long on the way
        node = cluster.node(name)
        node.clock.link(node.replica.term, node.clock.reading(cluster.now_ms)[1] - 400, cluster.now_ms)
    cluster.isolate(first)
    second = cluster.elect_other(first)
    cluster.do(second, SEND)
    taken_ms = cluster.now_ms
    cluster.do(second, c.ReceiveMessage(queue_url="jobs", visibility_timeout=30))
    cluster.crash(second)
    cluster.heal()
    third = cluster.elect_other(second)
    cluster.advance(taken_ms + 30_000 - 1 - cluster.now_ms)
    assert cluster.do(third, RECEIVE).messages == []


def test_restart_of_all_takes_the_median_of_walls_and_never_falls() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    last_ms = cluster.node(master).replica.log.last_time_ms
    for name in cluster.names:
        cluster.crash(name)
    cluster.wall_offsets_ms = dict.fromkeys(cluster.names, -10000000)
    for name in cluster.names:
        cluster.restart(name)
    master = cluster.elect()
    assert cluster.node(master).clock.time_ms(cluster.now_ms) >= last_ms


def test_takeover_gives_grace_from_the_last_contact() -> None:
    cluster = Cluster()
    old = cluster.elect()
    cluster.do(old, c.CreateQueue(queue_name="jobs"))
    cluster.do(old, SEND)
    cluster.advance(5_000)
    handed_out = cluster.do(old, c.ReceiveMessage(queue_url="jobs", visibility_timeout=1))
    assert isinstance(handed_out, ReceiveMessageResult)
    crashed_ms = cluster.node(old).clock.time_ms(cluster.now_ms)
    cluster.crash(old)
    new = cluster.elect_other(old)
    (span,) = [
        (x.grace_from_ms, x.grace_until_ms)
        for x in committed_mutations(cluster, new)
        if isinstance(x, m.TookOver) and x.member_id == new and x.grace_until_ms
    ]
    assert crashed_ms - 200 - GRACE_BEFORE_MS <= span[0] <= crashed_ms - GRACE_BEFORE_MS
    assert span[1] <= min(cluster.node(new).clock.time_ms(cluster.now_ms) + GRACE_AFTER_MS, span[0] + GRACE_SPAN_MAX_MS)
    until_ms = span[1] - cluster.node(new).clock.time_ms(cluster.now_ms)
    assert cluster.do(new, RECEIVE).messages == [], "its consumer could not extend it meanwhile"
    cluster.advance(until_ms - 1)
    assert cluster.do(new, RECEIVE).messages == []
    cluster.advance(1)
    assert len(cluster.do(new, RECEIVE).messages) == 1
