"""The open entry and the log of a member: what shares an entry, at which time, and what taking back leaves."""

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.model import commands as c
from elasticq.model import errors
from elasticq.model.extensions import AdvanceClock
from elasticq.model.results import ReceiveMessageResult
from tests.node.cluster import Cluster, Solo, restored
from tests.node.workload import scripted_workload


def test_a_command_that_changes_something_is_one_entry(solo: Solo) -> None:
    before = len(solo.entries)
    solo.send()
    solo.receive()
    assert len(solo.entries) == before + 2


def test_empty_receives_reads_and_errors_append_nothing(solo: Solo) -> None:
    before = len(solo.entries)
    solo.receive(10)
    ticket = solo.poll(wait_s=3)
    solo.advance(3_000)
    assert solo.answers(ticket) == [ReceiveMessageResult()]
    solo.do(c.ListQueues())
    with pytest.raises(errors.MissingParameter):
        solo.send("")
    assert len(solo.entries) == before


def test_guid_row_stands_in_the_entry_of_its_effect(solo: Solo) -> None:
    solo.do(c.SendMessage(queue_url="jobs", message_body="x"), b"g" * 16)
    kinds = [type(mutation).__name__ for mutation in m.decode(solo.entries[-1].payload)]
    assert kinds == ["MessageStored", "InvocationRecorded"]


def test_commands_during_a_sync_share_one_entry() -> None:
    solo = Solo(volatile=False)
    solo.create()
    before = len(solo.entries)
    solo.synced_at_once = False
    first = solo.start_call(c.SendMessage(queue_url="jobs", message_body="first"))
    others = [solo.start_call(c.SendMessage(queue_url="jobs", message_body=str(at))) for at in range(5)]
    receive = solo.start_call(c.ReceiveMessage(queue_url="jobs", max_number_of_messages=10))
    assert len(solo.entries) == before + 1
    solo.sync()
    assert len(solo.answers(first)) == 1
    assert all(solo.answers(ticket) == [] for ticket in (*others, receive))
    assert len(solo.entries) == before + 2
    solo.sync()
    assert all(len(solo.answers(ticket)) == 1 for ticket in (*others, receive))
    assert len(solo.answers(receive)[0].messages) == 6
    assert len(solo.entries) == before + 2


def test_each_command_of_a_batch_sees_the_time_at_which_it_came() -> None:
    solo = Solo(volatile=False)
    solo.create()
    solo.synced_at_once = False
    solo.start_call(c.SendMessage(queue_url="jobs", message_body="first"))
    came_ms = []
    for _ in range(3):
        solo.now_ms += 5
        solo.start_call(c.SendMessage(queue_url="jobs", message_body="x"))
        came_ms.append(solo.time_ms)
    solo.sync()
    entry = solo.entries[-1]
    assert [mutation.sent_ms for mutation in m.decode(entry.payload)] == came_ms
    assert entry.time_ms == came_ms[-1], "time never falls along the log"


def test_visibility_counts_from_the_receive_however_long_the_disk_takes() -> None:
    """It counted from the opening of the entry: a consumer's time was short by as much as a sync took."""
    solo = Solo(volatile=False)
    solo.create()
    for _ in range(3):
        solo.send()
    solo.synced_at_once = False
    for _ in range(3):  # the first is being synced, the second opens the next entry, the third joins it
        taken = solo.poll(0)
        taken_ms = solo.now_ms
        solo.now_ms += 400
    solo.sync()
    solo.synced_at_once = True
    solo.sync()
    assert len(solo.answers(taken)[0].messages) == 1
    solo.now_ms = taken_ms + 29_999
    assert len(solo.receive(10)) == 2
    solo.now_ms += 1
    assert len(solo.receive(10)) == 1


def test_full_batch_closes_before_the_sync() -> None:
    solo = Solo(volatile=False, batch_bytes_max=1_000)
    solo.create()
    solo.synced_at_once = False
    before = len(solo.entries)
    for _ in range(3):
        solo.start_call(c.SendMessage(queue_url="jobs", message_body="x" * 1_000))
    assert len(solo.entries) == before + 3


def test_a_reply_that_rests_on_an_open_entry_waits_even_if_it_only_read() -> None:
    solo = Solo(volatile=False)
    solo.create()
    solo.synced_at_once = False
    send = solo.start_call(c.SendMessage(queue_url="jobs", message_body="x"), b"g" * 16)
    again = solo.start_call(c.SendMessage(queue_url="jobs", message_body="x"), b"g" * 16)
    counts = solo.start_call(c.GetQueueAttributes(queue_url="jobs", attribute_names=["All"]))
    error = solo.start_call(c.SendMessage(queue_url="jobs"))
    exists = solo.start_call(c.CreateQueue(queue_name="jobs"))
    tickets = (send, again, counts, error, exists)
    assert all(solo.answers(ticket) == [] for ticket in tickets)
    solo.sync()
    assert all(len(solo.answers(ticket)) == 1 for ticket in tickets)
    assert solo.answers(send) == solo.answers(again)
    assert solo.member.reply_indexes[error] == solo.node.replica.commit_index


def test_entries_are_numbered_and_their_times_never_fall() -> None:
    solo = Solo()
    scripted_workload(solo, 60)
    entries = solo.entries
    assert [entry.index for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.time_ms for entry in entries] == sorted(entry.time_ms for entry in entries)


def test_time_does_not_fall_though_the_wall_clock_did() -> None:
    solo = Solo(volatile=False)
    solo.create()
    solo.advance(3_600_000)
    solo.send()
    last_ms = solo.entries[-1].time_ms
    again = Solo(volatile=False, durable=restored([record for _, record in solo.member.disk]))
    assert again.node.status(again.now_ms).time_ms >= last_ms
    again.send()
    times = [entry.time_ms for entry in again.entries]
    assert len(times) > len(solo.entries)
    assert times == sorted(times)


def test_what_is_taken_back_leaves_no_trace() -> None:
    """Entries that were proposed, the open one, their digests, and the clock that one of them turned."""
    cluster = Cluster()
    old = cluster.elect()
    cluster.do(old, c.CreateQueue(queue_name="jobs"))
    cluster.advance(300)
    node = cluster.node(old)
    before, index, ahead_ms = state_digest(node.state), node.applied_index, node.clock.ahead_ms
    cluster.held = set(cluster.names)
    cluster.submit(old, c.SendMessage(queue_url="jobs", message_body="proposed"))
    cluster.submit(old, AdvanceClock(5_000))
    cluster.submit(old, c.SendMessage(queue_url="jobs", message_body="open"))
    assert node.journal.is_open
    assert state_digest(node.state) != before
    node._lost_mastership(index, cluster.now_ms)
    assert not node.journal.is_open
    assert (state_digest(node.state), node.applied_index, node.clock.ahead_ms) == (before, index, ahead_ms)


def test_the_copy_for_a_snapshot_has_what_is_committed_and_no_more() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    node = cluster.node(master)
    before = state_digest(node.state)
    cluster.held = set(cluster.names)
    cluster.submit(master, c.SendMessage(queue_url="jobs", message_body="x"))
    state, base = node.journal.committed_state()
    assert (state_digest(state), base.index) == (before, node.replica.commit_index)
