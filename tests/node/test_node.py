"""A cluster of one: commands in, replies out, entries in the log, work in the background."""

import pytest

from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.model import commands as c
from elasticq.node.node import Node
from elasticq.node.settings import NodeSettings
from elasticq.replication.messages import FrameError
from elasticq.replication.records import NOTHING, Entry, Vote
from tests.memory import kept_bytes
from tests.node.cluster import Solo, mutations, restored
from tests.node.workload import scripted_workload

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


def test_every_call_is_answered_exactly_once() -> None:
    solo = Solo(volatile=False)
    scripted_workload(solo, 60)
    assert all(len(outcomes) == 1 for outcomes in solo.member.replies.values())
    assert sorted(solo.member.replies) == list(range(1, solo._tickets + 1))


@pytest.mark.parametrize("frame", [b"", b"\x00", b"\x01", b"\x01\x90", b"GET / HTTP/1.1", b"\x01" + b"\xff" * 40])
def test_bytes_that_are_no_frame_change_nothing(solo: Solo, frame: bytes) -> None:
    before = solo.node.status(solo.now_ms)
    with pytest.raises(FrameError):
        solo.node.receive(frame, solo.now_ms)
    assert solo.node.status(solo.now_ms) == before


def test_records_of_a_cluster_of_one_are_votes_and_entries() -> None:
    solo = Solo(volatile=False)
    scripted_workload(solo, 20)
    assert {type(record) for _, record in solo.member.disk} == {Entry, Vote}


# --- memory -----------------------------------------------------------------------


def test_idle_member_takes_at_most_60_kib_and_100_with_a_few_calls() -> None:
    """Tests start many servers in one process."""
    Solo().create()  # what the first one of a process leaves behind counts for nobody

    def with_calls() -> Solo:
        solo = Solo()
        solo.create()
        for number in range(20):
            solo.do(c.SendMessage("jobs", "x"), bytes((number * 13, number * 57 % 256)) + b"i" * 14)
        return solo

    assert kept_bytes(Solo) <= 60 * 1_024
    assert kept_bytes(with_calls) <= 100 * 1_024
