"""What the replica wants done, in the effects: tokens, and frames that wait for them."""

from elasticq.node.effects import Effects
from elasticq.node.outlet import Outlet
from elasticq.replication import messages
from elasticq.replication.election import Timing
from elasticq.replication.records import NOTHING, Vote
from elasticq.replication.replica import Replica
from elasticq.replication.seeded_random import SeededRandom


def outlet_of(*voters: str, is_volatile: bool = False) -> tuple[Replica, Effects, Outlet]:
    """A member "a" whose replica has just asked for pre-votes, or, alone, stands."""
    timing, random = Timing(100, 700, 1_400, 180), SeededRandom(b"e" * 32)
    replica = Replica("a", voters, NOTHING, timing, random, lambda now_ms: (0, now_ms), is_volatile=is_volatile)
    effects = Effects()
    replica.start(0)
    return replica, effects, Outlet(replica, effects, is_volatile=is_volatile)


def test_records_leave_once_under_a_new_token() -> None:
    replica, effects, outlet = outlet_of("a")
    outlet.drain(0)
    assert effects.records == [Vote(1, "a")]
    assert effects.token == replica.durability.token == 1
    outlet.drain(0)
    assert (len(effects.records), effects.token) == (1, 1)
    assert replica.ready.records == []


def test_a_frame_that_rests_on_no_record_waits_for_none() -> None:
    replica, effects, outlet = outlet_of("a", "b", "c")
    replica.tick(replica.election.at_ms)
    outlet.drain(2_000)
    assert [(frame.to, frame.token) for frame in effects.frames] == [("b", 0), ("c", 0)]
    assert all(isinstance(messages.decode(frame.data), messages.PreVote) for frame in effects.frames)


def granted(replica: Replica, outlet: Outlet) -> None:
    """Another member asks for this one's vote, and gets it."""
    asked = messages.RequestVote(
        cluster="", group=0, sender="b", to="a", term=1, last_index=0, last_term=0, transfer=False
    )
    replica.receive(asked, 10_000)
    outlet.drain(10_000)


def test_a_vote_leaves_behind_its_record() -> None:
    replica, effects, outlet = outlet_of("a", "b", "c")
    granted(replica, outlet)
    assert effects.records[-1] == Vote(1, "b")
    (frame,) = effects.frames
    assert frame.token == effects.token > 0


def test_in_memory_a_record_is_durable_at_once() -> None:
    replica, effects, outlet = outlet_of("a", "b", "c", is_volatile=True)
    granted(replica, outlet)
    (frame,) = effects.frames
    assert frame.token == 0
    assert replica.durability.synced_token == effects.token > 0
