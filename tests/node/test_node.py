"""A cluster of one: commands in, replies out, entries in the log, work in the background."""

import sys

import pytest

from elasticq.engine import mutations as m
from elasticq.engine.digest import state_digest
from elasticq.engine.residency import OVERHEAD_BYTES
from elasticq.model import commands as c
from elasticq.model import errors, limits
from elasticq.model.results import ReceiveMessageResult, SendMessageBatchResult
from elasticq.node.housekeeping import LOG_KEPT_ENTRIES
from elasticq.node.leadership import GRACE_AFTER_MS, GRACE_BEFORE_MS
from elasticq.node.node import Node
from elasticq.node.settings import NodeSettings
from elasticq.replication.messages import FrameError
from elasticq.replication.records import NOTHING, Entry, Vote
from tests.node.cluster import Solo, call_of, restored
from tests.node.workload import scripted_workload


@pytest.fixture
def solo() -> Solo:
    made = Solo()
    made.create()
    return made


def mutations(solo: Solo, since: int = 0) -> list[m.Mutation]:
    return [mutation for entry in solo.entries[since:] for mutation in m.decode(entry.payload)]


# --- life -------------------------------------------------------------------------


def test_cluster_of_one_serves_when_start_returns_and_commits_inside_submit() -> None:
    solo = Solo()
    assert solo.node.serving
    assert solo.node.status(solo.now_ms).ready
    founded, took_over = mutations(solo)
    assert isinstance(founded, m.ClusterFounded)
    assert isinstance(took_over, m.TookOver)
    solo.create()
    assert solo.node.replica.commit_index == solo.node.replica.log.last_index == 2


def test_durable_cluster_of_one_serves_after_its_own_syncs() -> None:
    solo = Solo(volatile=False)
    assert solo.node.serving
    solo.synced_at_once = False
    ticket = solo.start_call(c.CreateQueue(queue_name="jobs"))
    assert solo.answers(ticket) == []
    solo.sync()
    assert len(solo.answers(ticket)) == 1


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


def test_two_memory_starts_with_other_entropy_have_other_keys() -> None:
    keys = set()
    for entropy in (b"x" * 32, b"y" * 32):
        node = Node(NodeSettings(member_id="a", voters=("a",), volatile=True), NOTHING, entropy)
        node.start(0, 0)
        keys |= {node.state.mac_key, node.state.cluster_id}
    assert len(keys) == 4


def test_restart_wins_a_new_term_and_has_everything_that_was_synced() -> None:
    solo = Solo(volatile=False)
    solo.create()
    solo.send("kept")
    handle = solo.receive(visibility_s=60)[0].receipt_handle
    before = state_digest(solo.node.state)
    term = solo.node.replica.term
    again = Solo(volatile=False, durable=restored([record for _, record in solo.member.disk]))
    assert again.node.replica.term == term + 1
    assert again.node.state.cluster_id == solo.node.state.cluster_id
    rolled = again.node.state
    rolled.takeover_term, rolled.grace.spans = solo.node.state.takeover_term, []
    assert state_digest(rolled) == before
    again.do(c.DeleteMessage(queue_url="jobs", receipt_handle=handle))
    assert again.receive() == []


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


# --- log and replies --------------------------------------------------------------


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


def test_every_call_is_answered_exactly_once() -> None:
    solo = Solo(volatile=False)
    scripted_workload(solo, 60)
    assert all(len(outcomes) == 1 for outcomes in solo.member.replies.values())
    assert sorted(solo.member.replies) == list(range(1, solo._tickets + 1))


def test_entries_are_numbered_and_their_times_never_fall() -> None:
    solo = Solo()
    scripted_workload(solo, 60)
    entries = solo.entries
    assert [entry.index for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.time_ms for entry in entries] == sorted(entry.time_ms for entry in entries)


def test_memory_log_is_bounded(solo: Solo) -> None:
    for _ in range(LOG_KEPT_ENTRIES + 100):
        solo.send()
    solo.advance(2_000)
    log = solo.node.replica.log
    assert log.last_index - log.base_index <= LOG_KEPT_ENTRIES


def test_a_member_alone_in_memory_does_not_keep_its_messages_twice(solo: Solo) -> None:
    for _ in range(20):
        solo.send("x" * 200_000)
    solo.advance(2_000)
    assert solo.node.replica.log.size_bytes < 1_000_000


@pytest.mark.parametrize("frame", [b"", b"\x00", b"\x01", b"\x01\x90", b"GET / HTTP/1.1", b"\x01" + b"\xff" * 40])
def test_bytes_that_are_no_frame_change_nothing(solo: Solo, frame: bytes) -> None:
    before = solo.node.status(solo.now_ms)
    with pytest.raises(FrameError):
        solo.node.receive(frame, solo.now_ms)
    assert solo.node.status(solo.now_ms) == before


# --- returned receives ------------------------------------------------------------------


def test_undelivered_receive_is_visible_at_once_and_counts_as_none(solo: Solo) -> None:
    solo.send("x")
    command = c.ReceiveMessage(queue_url="jobs", attribute_names=["All"])
    first = solo.do(command, b"r" * 16)
    solo.call_node("undelivered", first)
    assert isinstance(mutations(solo)[-1], m.ReceiveReturned)
    again = solo.do(command, b"r" * 16)
    assert again.messages[0].receipt_handle != first.messages[0].receipt_handle
    assert again.messages[0].attributes["ApproximateReceiveCount"] == "1"


def test_an_undelivered_first_attempt_does_not_take_the_messages_from_the_retry(solo: Solo) -> None:
    solo.send("x")
    command = c.ReceiveMessage(queue_url="jobs")
    first = solo.do(command, b"r" * 16)
    second = solo.do(command, b"r" * 16)
    assert second.messages == first.messages
    solo.call_node("undelivered", first)
    assert solo.receive() == [], "the message is in the second attempt's hands"
    solo.call_node("undelivered", second)
    assert len(solo.receive()) == 1


def test_a_receive_returned_once_can_be_returned_again(solo: Solo) -> None:
    """The count of answers begins anew when the GUID was forgotten."""
    solo.send("x")
    command = c.ReceiveMessage(queue_url="jobs")
    for _ in range(2):
        first, second = solo.do(command, b"r" * 16), solo.do(command, b"r" * 16)
        solo.call_node("undelivered", second)
        solo.call_node("undelivered", first)
    assert len(solo.receive()) == 1


def test_a_late_attempt_that_comes_back_leaves_the_messages_with_who_read_the_other(solo: Solo) -> None:
    """Attempts may be executed in any order: the one that nobody waits for any more may be the newest."""
    solo.send("x")
    command = c.ReceiveMessage(queue_url="jobs")
    solo.do(command, b"r" * 16)
    solo.call_node("undelivered", solo.do(command, b"r" * 16))
    assert solo.receive() == []


def test_undelivered_anything_else_changes_nothing(solo: Solo) -> None:
    before = len(solo.entries)
    solo.call_node("undelivered", solo.do(c.ListQueues()))
    solo.call_node("undelivered", ReceiveMessageResult())
    assert len(solo.entries) == before


# --- background ------------------------------------------------------------------


def test_purge_is_one_entry_and_its_memory_comes_back_by_ticks(solo: Solo) -> None:
    entries = [c.SendMessageBatchEntry(id=str(at), message_body="x") for at in range(10)]
    for _ in range(220):
        solo.do(c.SendMessageBatch(queue_url="jobs", entries=entries))
    before = len(solo.entries)
    solo.do(c.PurgeQueue(queue_url="jobs"))
    solo.send("after")
    solo.advance(2_000)
    assert [type(x) for x in mutations(solo, before)] == [m.QueuePurged, m.MessageStored]
    assert solo.node.status(solo.now_ms).contents_bytes == OVERHEAD_BYTES + sys.getsizeof("after")
    assert not solo.node.state.trash


def test_deleted_queue_and_expired_messages_leave_no_row(solo: Solo) -> None:
    solo.create("short", MessageRetentionPeriod="60")
    solo.do(c.SendMessage(queue_url="short", message_body="x"))
    solo.send()
    solo.do(c.DeleteQueue(queue_url="jobs"))
    solo.advance(62_000)
    status = solo.node.status(solo.now_ms)
    assert (status.contents_bytes, status.queues) == (0, 1)
    assert solo.node.state.doomed == {}


def test_sweep_goes_on_after_a_restart() -> None:
    solo = Solo(volatile=False)
    solo.create()
    for _ in range(30):
        solo.send()
    solo.do(c.DeleteQueue(queue_url="jobs"))
    again = Solo(volatile=False, durable=restored([record for _, record in solo.member.disk]))
    again.advance(62_000)
    assert (again.node.state.contents_bytes, again.node.state.doomed) == (0, {})


def test_idle_node_without_queues_asks_for_no_wake_up() -> None:
    assert Solo().node.effects.wake_at_ms is None


def test_in_flight_limit_holds_at_the_node(solo: Solo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "IN_FLIGHT_MAX", 2)
    for _ in range(4):
        solo.send()
    assert len(solo.receive(10)) == 2
    with pytest.raises(errors.OverLimit):
        solo.receive()
    ticket = solo.poll(wait_s=2)
    assert solo.answers(ticket) == []
    solo.advance(2_000)
    assert solo.answers(ticket) == [ReceiveMessageResult()]


def test_records_of_a_cluster_of_one_are_votes_and_entries() -> None:
    solo = Solo(volatile=False)
    scripted_workload(solo, 20)
    assert {type(record) for _, record in solo.member.disk} == {Entry, Vote}


def test_batch_of_which_every_entry_fails_is_answered(solo: Solo) -> None:
    bad = c.SendMessageBatchEntry(id="a", message_body="\x00")
    result = solo.do(c.SendMessageBatch(queue_url="jobs", entries=[bad]))
    assert isinstance(result, SendMessageBatchResult)
    assert ([failure.id for failure in result.failed], result.successful) == (["a"], [])
