"""Calls under one GUID: a second effect and a reply that is withdrawn are found, and nothing else is."""

from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.invocations import SWEPT
from elasticq.model.errors import QueueDoesNotExist, ServiceUnavailable
from elasticq.model.limits import INVOCATION_WINDOW_MS
from elasticq.model.results import EmptyResult, ReceiveMessageResult
from elasticq.sim.repeats import REPLY_WITHDRAWN, TWO_EFFECTS, Repeats
from elasticq.sim.scheduler import Scheduler
from elasticq.sim.trace import Trace

GUID = bytes(range(16))
NOW_MS = 1_700_000_000_000


def repeats() -> Repeats:
    return Repeats(Trace(Scheduler(1)))


def found(judge: Repeats) -> list[str]:
    return [finding.name for finding in judge.trace.findings]


def record(judge: Repeats, index: int, mutation: m.Mutation, *, is_committed: bool = True) -> None:
    judge.proposed((index, 1), [mutation])
    if is_committed:
        judge.committed((index, 1))


def effect(at_ms: int = NOW_MS, guid: bytes = GUID) -> m.InvocationRecorded:
    return m.InvocationRecorded(guid, at_ms, 0, 0, b"")


def test_guid_that_two_committed_entries_record_had_two_effects() -> None:
    judge = repeats()
    record(judge, 1, effect())
    record(judge, 2, effect(NOW_MS + 1))
    assert found(judge) == [TWO_EFFECTS]


def test_entry_that_was_never_committed_had_no_effect() -> None:
    judge = repeats()
    record(judge, 1, effect(), is_committed=False)
    record(judge, 2, effect(NOW_MS + 1))
    assert found(judge) == []


def test_guid_may_be_used_again_after_the_window() -> None:
    judge = repeats()
    record(judge, 1, effect())
    record(judge, 2, effect(NOW_MS + INVOCATION_WINDOW_MS))
    record(judge, 3, effect(guid=SWEPT))
    record(judge, 4, effect(guid=SWEPT))
    assert found(judge) == []


def test_receive_that_went_back_may_be_made_again() -> None:
    judge = repeats()
    record(judge, 1, effect())
    record(judge, 2, m.ReceiveReturned(1, [1], [1], [0], [0], NOW_MS, GUID))
    record(judge, 3, effect(NOW_MS + 1))
    assert found(judge) == []


def test_error_after_a_success_of_the_same_call_withdraws_it() -> None:
    judge = repeats()
    record(judge, 1, effect())
    judge.replied("m1", ("client", 7, 1, GUID), EmptyResult())
    judge.replied("m2", ("client", 7, 2, GUID), QueueDoesNotExist())
    assert found(judge) == [REPLY_WITHDRAWN]


def test_call_that_changed_nothing_may_be_answered_otherwise() -> None:
    judge = repeats()
    judge.replied("m1", ("client", 7, 1, GUID), EmptyResult())
    judge.replied("m2", ("client", 7, 2, GUID), QueueDoesNotExist())
    assert found(judge) == []


def test_other_calls_busy_members_and_receives_withdraw_nothing() -> None:
    judge, other = repeats(), bytes(range(16, 32))
    for index, guid in enumerate((GUID, other), 1):
        record(judge, index, effect(guid=guid))
    judge.replied("m1", ("client", 7, 1, GUID), EmptyResult())
    judge.replied("m1", ("client", 7, 2, GUID), ServiceUnavailable("later"))
    judge.replied("m1", ("client", 8, 1, other), QueueDoesNotExist())
    judge.replied("m1", ("client", 8, 2, other), ReceiveMessageResult())
    judge.replied("m1", ("client", 8, 3, other), QueueDoesNotExist())
    judge.replied("m1", "an operator", QueueDoesNotExist())
    assert found(judge) == []
