"""What all parts of a replica know of the member at its start, and what they leave in ``ready``."""

from elasticq.replication.messages import Join
from elasticq.replication.raft_state import RaftState
from elasticq.replication.records import NOTHING, Base, Durable, Entry, Vote, Voter
from tests.replication.bench import entry


def state_of(durable: Durable) -> RaftState:
    return RaftState("a", ("a", "b", "c"), durable, lambda now_ms: (0, now_ms))


def test_term_vote_and_log_are_as_they_were_kept() -> None:
    state = state_of(Durable(Vote(6, "c"), [entry(4, 2), entry(5, 4)], Base(3, 1, 900), applied_index=4))
    assert (state.term, state.voted_for, state.commit_index) == (6, "c", 4)
    assert (state.log.base_index, state.log.last_index, state.log.last_term) == (3, 5, 4)
    assert (state.others, state.quorum) == (("b", "c"), 2)


def test_voters_named_by_an_entry_count_though_it_is_not_committed() -> None:
    named = tuple(Voter(each) for each in "abcd")
    state = state_of(Durable(Vote(1, None), [entry(1, 1), Entry(2, 1, 1_000, b"", named)], applied_index=1))
    assert (state.others, state.quorum) == (("b", "c", "d"), 3)
    assert tuple(voter.id for voter in state.membership.committed_voters) == ("a", "b", "c")


def test_vote_is_a_record_and_messages_tell_whether_they_rest_on_it() -> None:
    state = state_of(NOTHING)
    state.term, state.voted_for = 3, "b"
    message = Join(cluster="", group=0, sender="a", to="b", term=3)
    state.send(message, rests_on_records=False)
    state.persist_vote()
    state.send(message, rests_on_records=True)
    assert state.ready.records == [Vote(3, "b")]
    assert state.ready.messages == [(message, False), (message, True)]
