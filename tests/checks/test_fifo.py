"""The FIFO rules on hand-made histories: each fault is named, and what is legal is not."""

from elasticq.checks.history import CreateQueue, Delete, Event, HandedOut, Receive, Send, SentMessage, StartMove
from elasticq.checks.queue import check
from elasticq.checks.queue_history import Jump

S = 1_000_000


def made(*, by_group: bool = False, target: str = "") -> CreateQueue:
    return CreateQueue(
        client="f", queue="q", invoke_us=0, complete_us=1, outcome="ok", is_fifo=True,
        is_deduplicated_by_group=by_group, dead_letter_queue=target, receives_max=2 if target else 0,
    )  # fmt: skip


def send(
    body: str, number: int, at: float, *, group: str = "g", dedup: str = "", outcome: str = "ok", took: float = 0.1
) -> Send:
    known = outcome == "ok"
    sent = SentMessage(
        body, [f"m{number}"] if known else [], group, dedup or f"id-{body}", [f"{number:020d}"] if known else []
    )
    complete_us = int((at + took) * S) if known else None
    return Send(
        client="p", queue="q", guid=f"g-{body}-{at}", invoke_us=int(at * S), complete_us=complete_us,
        outcome=outcome, messages=[sent],
    )  # fmt: skip


def receive(
    at: float, *numbers: int, client: str = "c", attempt: str = "", told_at: float = 0, vis: float = 5
) -> Receive:
    messages = [
        HandedOut(f"m{x}", f"m{x}/{client}/{told_at or at}", f"b{x}", group="g", sequence_number=f"{x:020d}")
        for x in numbers
    ]
    return Receive(
        client=client, queue="q", invoke_us=int(at * S), complete_us=int((at + 0.1) * S), outcome="ok",
        visibility_ms=int(vis * 1_000), messages=messages, attempt_id=attempt,
    )  # fmt: skip


def delete(taken: Receive, at: float, position: int = 0, *, outcome: str = "ok") -> Delete:
    message = taken.messages[position]
    return Delete(
        client=taken.client, queue="q", invoke_us=int(at * S), complete_us=int((at + 0.1) * S), outcome=outcome,
        message_id=message.message_id, receipt_handle=message.receipt_handle,
    )  # fmt: skip


THREE = made(), send("b1", 1, 1), send("b2", 2, 2), send("b3", 3, 3)


def names(*events: Event, jumps: tuple[Jump, ...] = ()) -> list[str]:
    return [finding.name for finding in check(events, jumps=jumps)]


# --- groups -----------------------------------------------------------------------------


def test_group_in_order_is_clean() -> None:
    first, rest = receive(4, 1), receive(6, 2, 3)
    assert names(*THREE, first, delete(first, 5), rest, delete(rest, 7), delete(rest, 8, 1)) == []


def test_message_handed_out_while_an_earlier_one_is_in_flight_overtakes() -> None:
    first = receive(4, 1)
    assert names(*THREE, first, receive(5, 2, client="d"), delete(first, 6)) == ["overtaken"]


def test_hole_in_an_answer_is_overtaken() -> None:
    assert names(*THREE, receive(4, 1, 3)) == ["overtaken"]


def test_message_that_was_never_received_is_overtaken_too() -> None:
    assert names(*THREE, receive(4, 2, 3)) == ["overtaken", "overtaken"]


def test_delete_of_unknown_outcome_may_have_let_the_next_one_out() -> None:
    first = receive(4, 1)
    assert names(*THREE, first, delete(first, 4.5, outcome="unknown"), receive(5, 2, client="d")) == []


def test_delete_that_certainly_failed_lets_nothing_out() -> None:
    first = receive(4, 1)
    assert names(*THREE, first, delete(first, 4.5, outcome="fail"), receive(5, 2, client="d")) == ["overtaken"]


def test_message_that_is_seen_again_was_there_whatever_was_deleted() -> None:
    first = receive(4, 1)
    events = *THREE, first, delete(first, 4.5, outcome="unknown"), receive(5, 2, client="d"), receive(20, 1)
    assert names(*events) == ["overtaken"]


def test_older_one_may_come_again_while_a_later_one_is_in_flight() -> None:
    both = receive(4, 1, 2, vis=1)
    assert names(*THREE, both, receive(6, 1, client="d")) == []


def test_other_group_is_not_blocked() -> None:
    assert names(made(), send("b1", 1, 1, group="other"), send("b2", 2, 2), receive(4, 2)) == []


def test_message_that_may_be_a_dead_letter_blocks_nobody() -> None:
    assert names(made(target="dead"), *THREE[1:], receive(4, 1), receive(10, 1), receive(16, 2)) == []


def test_message_that_may_have_been_moved_blocks_nobody() -> None:
    move = StartMove(client="r", queue="q", invoke_us=4 * S, destination="other")
    assert names(*THREE, move, receive(5, 2)) == []


def test_answer_against_the_order_is_misordered() -> None:
    assert names(*THREE, receive(4, 2, 1)) == ["misordered"]


def test_later_send_with_a_smaller_number_is_misordered() -> None:
    assert names(made(), send("b2", 2, 1), send("b1", 1, 2)) == ["misordered"]


def test_sends_at_once_may_be_stored_in_any_order() -> None:
    assert names(made(), send("b2", 2, 1, took=2), send("b1", 1, 2)) == []


def test_batch_against_its_order_is_misordered() -> None:
    one, other = send("b2", 2, 1), send("b1", 1, 1)
    one.messages += other.messages
    assert names(made(), one) == ["misordered"]


# --- deduplication ------------------------------------------------------------------------


def test_duplicate_that_is_told_the_first_ones_ids_is_clean() -> None:
    assert names(made(), send("b1", 1, 1), send("b1", 1, 2), receive(4, 1)) == []


def test_duplicate_under_another_id_is_found() -> None:
    assert names(made(), send("b1", 1, 1), send("b1", 2, 2)) == ["not_deduplicated"]


def test_duplicate_with_another_body_counts_by_its_deduplication_id() -> None:
    assert names(made(), send("b1", 1, 1, dedup="x"), send("b2", 1, 2, dedup="x"), receive(4, 1)) == []
    assert names(made(), send("b1", 1, 1, dedup="x"), send("b2", 2, 2, dedup="x")) == ["not_deduplicated"]


def test_duplicate_with_another_sequence_number_is_found() -> None:
    again = send("b1", 1, 2)
    again.messages[0].sequence_numbers = ["9"]
    assert names(made(), send("b1", 1, 1), again) == ["not_deduplicated"]


def test_unanswered_send_that_made_a_second_message_is_found() -> None:
    first, second = receive(4, 1), receive(6, 2)
    second.messages[0].body = "b1"
    events = send("b1", 1, 1), send("b1", 0, 2, outcome="unknown"), first, delete(first, 5), second
    assert names(made(), *events) == ["not_deduplicated"]


def test_id_may_be_used_again_after_five_minutes() -> None:
    assert names(made(), send("b1", 1, 1), send("b2", 2, 301, dedup="id-b1")) == []
    assert names(made(), send("b1", 1, 1), send("b2", 2, 300, dedup="id-b1")) == ["not_deduplicated"]
    assert names(made(), send("b1", 1, 1), send("b2", 2, 300, dedup="id-b1"), jumps=(Jump(200 * S, 1_000),)) == []


def test_id_counts_for_its_group_where_that_is_the_scope() -> None:
    events = send("b1", 1, 1, dedup="x"), send("b2", 2, 2, dedup="x", group="other")
    assert names(made(by_group=True), *events) == []
    assert names(made(), *events) == ["not_deduplicated"]


# --- attempts -------------------------------------------------------------------------------


def test_attempt_that_gets_the_same_again_is_clean() -> None:
    once, again = receive(4, 1, 2, attempt="a"), receive(5, 1, 2, attempt="a", told_at=4)
    assert names(*THREE, once, again) == []


def test_attempt_that_gets_something_else_differs() -> None:
    assert "attempt_differs" in names(*THREE, receive(4, 1, attempt="a"), receive(5, attempt="a"))


def test_attempt_may_get_something_else_after_its_time_out() -> None:
    assert names(*THREE, receive(4, 1, attempt="a"), receive(9, 1, attempt="a")) == []


def test_repeated_attempt_prolongs_what_it_got() -> None:
    once, again = receive(4, 1, attempt="a"), receive(8, 1, attempt="a", told_at=4)
    assert set(names(*THREE, once, again, receive(12, 1, client="d"))) == {"early"}
    assert names(*THREE, once, again, receive(13.5, 1, client="d")) == []


def test_one_handle_in_two_hands_without_an_attempt_is_early() -> None:
    assert names(*THREE, receive(4, 1), receive(5, 1, told_at=4)) == ["early"]
