"""The queue checker on hand-made histories: each fault is named, and what is legal is not."""

from elasticq.checks.history import Advance, ChangeVisibility, Delete, Event, HandedOut, Receive, Send, SentMessage
from elasticq.checks.queue import check
from elasticq.checks.queue_history import Jump

S = 1_000_000


def send(body: str, message_id: str | None, at: float, *, outcome: str = "ok", queue: str = "q") -> Send:
    ids = [message_id] if message_id else []
    return Send(
        client="p", queue=queue, guid=f"g-{body}", invoke_us=int(at * S),
        complete_us=int(at * S) + 1_000 if outcome == "ok" else None,
        outcome=outcome, messages=[SentMessage(body, ids)],
    )  # fmt: skip


def receive(
    body: str, message_id: str, at: float, *, until: float | None = None, visibility: float = 5, client: str = "c"
) -> Receive:
    handle = f"{message_id}/{client}/{at}"
    return Receive(
        client=client, queue="q", invoke_us=int(at * S), complete_us=int((at + 0.1 if until is None else until) * S),
        outcome="ok", visibility_ms=int(visibility * 1_000), messages=[HandedOut(message_id, handle, body)],
    )  # fmt: skip


def delete(taken: Receive, at: float, *, outcome: str = "ok") -> Delete:
    message = taken.messages[0]
    return Delete(
        client=taken.client, queue="q", invoke_us=int(at * S),
        complete_us=int(at * S) + 1_000 if outcome == "ok" else None, outcome=outcome,
        message_id=message.message_id, receipt_handle=message.receipt_handle,
    )  # fmt: skip


def change(taken: Receive, at: float, visibility: float, *, outcome: str = "ok") -> ChangeVisibility:
    message = taken.messages[0]
    return ChangeVisibility(
        client=taken.client, queue="q", invoke_us=int(at * S),
        complete_us=int(at * S) + 1_000 if outcome == "ok" else None, outcome=outcome,
        message_id=message.message_id, receipt_handle=message.receipt_handle,
        visibility_ms=int(visibility * 1_000),
    )  # fmt: skip


def advance(seconds: float, at: float, *, outcome: str = "ok") -> Advance:
    return Advance(
        client="t", queue="", invoke_us=int(at * S), complete_us=int(at * S) + 1_000 if outcome == "ok" else None,
        outcome=outcome, advance_ms=int(seconds * 1_000),
    )  # fmt: skip


def names(*events: Event, jumps: tuple[Jump, ...] = (), drift: float = 0, drain: float | None = 60) -> list[str]:
    drain_us = None if drain is None else int(drain * S)
    return [finding.name for finding in check(events, jumps=jumps, drift=drift, drain_us=drain_us)]


def test_sent_received_and_deleted_message_is_clean() -> None:
    taken = receive("a", "1", 2)
    assert names(send("a", "1", 1), taken, delete(taken, 3)) == []


def test_acknowledged_send_that_never_comes_is_lost() -> None:
    assert names(send("a", "1", 1)) == ["lost"]


def test_unacknowledged_send_may_never_come() -> None:
    assert names(send("a", None, 1, outcome="unknown")) == []


def test_unacknowledged_send_may_come_once() -> None:
    taken = receive("a", "1", 2)
    assert names(send("a", None, 1, outcome="unknown"), taken, delete(taken, 3)) == []


def test_undrained_history_calls_nothing_lost() -> None:
    assert names(send("a", "1", 1), drain=None) == []


def test_message_received_in_the_drain_is_not_lost() -> None:
    assert names(send("a", "1", 1), receive("a", "1", 61)) == []


def test_message_received_and_forgotten_must_come_again_in_the_drain() -> None:
    assert names(send("a", "1", 1), receive("a", "1", 2)) == ["lost"]


def test_delete_of_unknown_outcome_excuses_a_missing_message() -> None:
    taken = receive("a", "1", 2)
    assert names(send("a", "1", 1), taken, delete(taken, 3, outcome="unknown")) == []


def test_failed_delete_excuses_nothing() -> None:
    taken = receive("a", "1", 2)
    assert names(send("a", "1", 1), taken, delete(taken, 3, outcome="fail")) == ["lost"]


def test_one_send_under_two_ids_is_duplicated() -> None:
    first, second = receive("a", "1", 2), receive("a", "2", 2, client="d")
    assert names(send("a", "1", 1), first, delete(first, 3), second, delete(second, 3)) == ["duplicated"]


def test_two_answers_with_different_ids_are_duplicated() -> None:
    sent = send("a", "1", 1)
    sent.messages[0].message_ids.append("2")
    taken = receive("a", "1", 2)
    assert names(sent, taken, delete(taken, 3)) == ["duplicated"]


def test_visibility_counts_from_the_retry_that_was_answered() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 8)
    assert names(send("a", "1", 1), first, second, delete(second, 9)) == []
    first.attempted_us = 3 * S + S // 2
    assert names(send("a", "1", 1), first, second, delete(second, 9)) == ["early"]


def test_redelivery_under_the_same_id_is_no_duplicate() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 8)
    assert names(send("a", "1", 1), first, second, delete(second, 9)) == []


def test_delivery_after_an_acknowledged_delete_is_resurrected() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 10)
    assert names(send("a", "1", 1), first, delete(first, 3), second) == ["resurrected"]


def test_receive_that_began_before_the_delete_ended_is_no_resurrection() -> None:
    first = receive("a", "1", 2)
    second = receive("a", "1", 2.9, until=10, client="d")
    assert names(send("a", "1", 1), first, delete(first, 3), second) == []


def test_delete_with_an_expired_handle_may_leave_the_message() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 10)
    assert names(send("a", "1", 1), first, delete(first, 9), second, delete(second, 11)) == []


def test_delete_of_unknown_outcome_may_have_left_the_message() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 10)
    assert names(send("a", "1", 1), first, delete(first, 3, outcome="unknown"), second, delete(second, 11)) == []


def test_delete_after_a_prolongation_is_certain() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 30)
    assert names(send("a", "1", 1), first, change(first, 3, 20), delete(first, 10), second) == ["resurrected"]


def test_second_delivery_inside_the_visibility_timeout_is_early() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 4, client="d")
    assert names(send("a", "1", 1), first, second, delete(second, 5)) == ["early"]


def test_two_overlapping_receives_with_one_message_are_early() -> None:
    first, second = receive("a", "1", 2, until=3), receive("a", "1", 2.5, until=3.5, client="d")
    assert names(send("a", "1", 1), first, second, delete(second, 4)) == ["early"]


def test_delivery_at_the_deadline_is_not_early() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 6.9, client="d")
    assert names(send("a", "1", 1), first, second, delete(second, 8)) == []


def test_receive_that_ended_late_may_have_taken_late() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 3, until=8, client="d")
    assert names(send("a", "1", 1), first, second, delete(second, 9)) == []


def test_receive_that_may_have_come_first_and_run_out_is_not_early() -> None:
    slow, quick = receive("a", "1", 1, until=20), receive("a", "1", 10, client="d")
    assert names(send("a", "1", 0), slow, quick, delete(quick, 11)) == []


def test_message_given_back_may_come_at_once() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 3, client="d")
    assert names(send("a", "1", 1), first, change(first, 2.5, 0), second, delete(second, 4)) == []


def test_message_perhaps_given_back_may_come_at_once() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 3, client="d")
    assert names(send("a", "1", 1), first, change(first, 2.5, 0, outcome="unknown"), second, delete(second, 4)) == []


def test_prolonged_message_that_comes_at_its_old_deadline_is_early() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 8, client="d")
    assert names(send("a", "1", 1), first, change(first, 3, 20), second, delete(second, 9)) == ["early"]


def test_perhaps_prolonged_message_may_come_at_its_old_deadline() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 8, client="d")
    assert names(send("a", "1", 1), first, change(first, 3, 20, outcome="unknown"), second, delete(second, 9)) == []


def test_prolongation_that_came_too_late_may_have_done_nothing() -> None:
    first, second = receive("a", "1", 2, visibility=1), receive("a", "1", 8, client="d")
    assert names(send("a", "1", 1), first, change(first, 5, 20), second, delete(second, 9)) == []


def test_shortened_message_may_come_before_its_old_deadline() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 4.5, client="d")
    assert names(send("a", "1", 1), first, change(first, 3, 1), second, delete(second, 5)) == []


def test_one_millisecond_early_is_early_and_rounding_is_not() -> None:
    first = receive("a", "1", 2, visibility=5)
    for second, found in (
        (receive("a", "1", 6, until=6.999_001, client="d"), []),
        (receive("a", "1", 6, until=6.998_999, client="d"), ["early"]),
    ):
        assert names(send("a", "1", 1), first, second, delete(second, 8)) == found


def test_jump_of_the_clock_forgives_just_as_much_and_only_across_it() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 6, client="d")
    events = send("a", "1", 1), first, second, delete(second, 8)
    assert names(*events, jumps=(Jump(4 * S, 500),)) == ["early"]
    assert names(*events, jumps=(Jump(4 * S, 1_000),)) == []
    assert names(*events, jumps=(Jump(1 * S, 1_000), Jump(7 * S, 1_000))) == ["early"]


def test_drift_of_the_clock_forgives_its_share_of_the_time_between() -> None:
    first, second = receive("a", "1", 2), receive("a", "1", 6.892, client="d")
    events = send("a", "1", 1), first, second, delete(second, 8)
    assert names(*events) == ["early"], "by 8 ms, of which rounding explains one"
    assert names(*events, drift=0.001) == ["early"], "by 7 ms, of which 0.1 % of the time between explains five"
    assert names(*events, drift=0.002) == []


def test_advance_of_the_clock_forgives_just_as_much() -> None:
    history = (send("a", "1", 1), receive("a", "1", 2), receive("a", "1", 4, client="d"))
    assert names(*history, drain=None) == ["early"]
    assert names(*history, advance(2, 3), drain=None) == ["early"]
    assert names(*history, advance(4, 3), drain=None) == []
    assert names(*history, advance(4, 3, outcome="unknown"), drain=None) == []
    assert names(*history, advance(4, 3, outcome="fail"), drain=None) == ["early"]


def test_advance_that_ended_before_the_receive_or_began_after_the_next_forgives_nothing() -> None:
    history = (send("a", "1", 1), receive("a", "1", 2), receive("a", "1", 4, client="d"))
    assert names(*history, advance(4, 1.5), advance(4, 5), drain=None) == ["early"]
    assert names(*history, advance(4, 1.5, outcome="unknown"), drain=None) == []


def test_body_that_nobody_sent_is_unexpected() -> None:
    assert names(receive("x", "1", 2)) == ["unexpected"]


def test_body_from_another_queue_is_unexpected() -> None:
    taken = receive("a", "1", 2)
    assert names(send("a", "1", 1, queue="other"), taken, delete(taken, 3)) == ["unexpected"]


def test_other_body_under_an_acknowledged_id_is_unexpected() -> None:
    taken = receive("b", "1", 2)
    assert "unexpected" in names(send("a", "1", 1), send("b", None, 1, outcome="unknown"), taken, delete(taken, 3))


def test_findings_come_in_order_of_time_with_evidence() -> None:
    events = [send("a", "1", 1), receive("x", "9", 2), receive("a", "1", 3), receive("a", "1", 4, client="d")]
    findings = check(events, drain_us=60 * S)
    assert [finding.name for finding in findings] == ["lost", "unexpected", "early"]
    assert "g-a" in findings[0].evidence
    assert "'x'" in findings[1].evidence
    assert "c [3000000..3100000 us" in findings[2].evidence
