"""Scenarios in which a rule of the simulator was wrong: what it once reported was no fault of a member.

clock_of_a_master_that_served_nobody: the measure of the clocks was a master whose takeover was never committed and
whom none of the next one's voters had heard. place_of_a_member_in_memory_was_taken: the operator had added another
member while it was down, and did not add it, as docs/operations.md says. paused_candidate_learns_late_that_it_won:
Raft demands that a master has what was committed in older terms than its own (Leader Completeness), not in newer ones.
quorum_was_there_for_a_moment: between two looks at who reaches whom, a member went on and its master was cut off.
member_that_leaves_was_not_started_again: its removal was refused, it crashed with all, and the operator left it down.
acknowledged_before_a_newer_master_truncated: entries and their truncation were synced at once, the answer left then.
drained_while_a_dead_letter_waited: a delete was refused, so the message came back, and went to a dead-letter queue that
nobody asked before the end; a message counted as done with the first try to delete it.
memory_of_a_stopping_member_was_the_last_copy: a disk was wiped while a member in memory gave its mastership away to
stop, so that two of three voters lost what they knew: nobody promises to go on from that.
new_voter_had_it_before_the_others_knew_of_that_voter: in mode one a send was on the disks of its master and of the
member that this master was just making a voter; the next master, elected without that entry, names no such voter.
founder_crashed_before_its_entry_was_synced: it had sent it to nobody, lost it, and founded the cluster anew.
attempt_of_another_receive_in_the_same_entry: an attempt that was answered again stood behind the receive of another
one, whose deliveries were then taken for its own.
drained_while_a_message_of_an_unanswered_send_waited: it was received once, so it was there; but the drain waited only
for messages whose senders had been answered, and ended while a receive whose answer was lost hid it.
resource_that_an_operator_moved_made_another_one_go_back: the queue that was to go back for it was deleted, so another
one went; the rule allowed each order two moves, and did not count the resource for the consumer who was to get it.
drain_left_a_partition_out: consumers drew the queue of each receive of the drain, so none of them asked for one
partition in its last 25 s; the message in it was visible, and was reported as lost.
"""

from pathlib import Path

import msgspec
import pytest

from elasticq.sim.faults import Scenario
from elasticq.sim.world import run

FILES = sorted((Path(__file__).parent / "misjudged").glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_breaks_no_promise_is_not_found(file: Path) -> None:
    assert run(msgspec.json.decode(file.read_bytes(), type=Scenario)).findings == []


def test_each_of_them_has_its_reason() -> None:
    assert [file.stem for file in FILES if file.stem not in (__doc__ or "")] == []
