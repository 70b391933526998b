"""What becomes of answers whose entries were not committed when their master lost the mastership."""

from elasticq.model.commands import Call, SendMessage
from elasticq.model.names import DEFAULT_ACCOUNT
from elasticq.model.results import EmptyResult
from elasticq.node.outputs import HeldCall
from elasticq.node.waits.replies import Pending
from elasticq.node.waits.undecided import Undecided


def undecided(*calls: tuple[str, int, int]) -> Undecided:
    """Of (ticket, index, until_ms) each."""
    made = Undecided()
    for ticket, index, until_ms in calls:
        call = Call(SendMessage("jobs", "x"), "r", DEFAULT_ACCOUNT, "http://localhost")
        made.add(HeldCall(call, ticket, until_ms), Pending(call, ticket, EmptyResult(), index, False))
    return made


def test_answers_up_to_the_committed_entry_leave() -> None:
    waiting = undecided(("a", 7, 100), ("b", 7, 100), ("c", 8, 100))
    assert [(reply.ticket, reply.index) for reply in waiting.committed(7)] == [("a", 7), ("b", 7)]
    assert waiting.committed(7) == []
    assert len(waiting) == 1


def test_calls_from_the_cut_on_had_no_effect() -> None:
    waiting = undecided(("a", 7, 100), ("b", 8, 100), ("c", 9, 100))
    assert [held.ticket for held in waiting.cut_off(8)] == ["b", "c"]
    assert [reply.ticket for reply in waiting.committed(9)] == ["a"]


def test_calls_end_when_their_time_is_over() -> None:
    waiting = undecided(("a", 7, 100), ("b", 7, 50))
    assert waiting.next_deadline_ms == 50
    assert waiting.expired(49) == []
    assert [held.ticket for held in waiting.expired(50)] == ["b"]
    assert waiting.next_deadline_ms == 100
    assert [held.ticket for held in waiting.take_all()] == ["a"]
    assert waiting.next_deadline_ms is None
    assert not waiting


def test_send_that_waits_for_every_voter_is_not_answered_when_a_majority_has_it() -> None:
    waiting = Undecided(is_for_all=True)
    call = Call(SendMessage("jobs", "x"), "r", DEFAULT_ACCOUNT, "http://localhost")
    waiting.add(HeldCall(call, "send", 900), Pending(call, "send", EmptyResult(), 7, False, 500))
    waiting.add(HeldCall(call, "create", 900), Pending(call, "create", EmptyResult(), 8, False))
    assert [reply.ticket for reply in waiting.committed(8)] == ["create"]
    assert waiting.next_deadline_ms == 500
    assert [held.ticket for held in waiting.expired(500)] == ["send"]
