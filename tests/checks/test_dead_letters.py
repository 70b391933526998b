"""The rules for dead letters and moved messages on hand-made histories."""

from elasticq.checks.history import CreateQueue, Delete, Event, HandedOut, Receive, Send, SentMessage, StartMove
from elasticq.checks.queue import check

S = 1_000_000
QUEUE = CreateQueue(
    client="f", queue="q", invoke_us=0, complete_us=1, outcome="ok", dead_letter_queue="dead", receives_max=2
)
SENT = Send(
    client="p", queue="q", guid="g", invoke_us=S, complete_us=S + 1, outcome="ok", messages=[SentMessage("a", ["1"])]
)
MOVE = StartMove(client="r", queue="dead", invoke_us=20 * S, complete_us=20 * S + 1, outcome="ok")


def receive(queue: str, at: float, count: int, *, message_id: str = "1", visibility: float = 1) -> Receive:
    message = HandedOut(message_id, f"{queue}/{at}", "a", receive_count=count, is_dead_letter=queue == "dead")
    return Receive(
        client="c", queue=queue, invoke_us=int(at * S), complete_us=int((at + 0.1) * S), outcome="ok",
        visibility_ms=int(visibility * 1_000), messages=[message],
    )  # fmt: skip


def delete(taken: Receive, at: float) -> Delete:
    message = taken.messages[0]
    return Delete(
        client="c", queue=taken.queue, invoke_us=int(at * S), complete_us=int((at + 0.1) * S), outcome="ok",
        message_id=message.message_id, receipt_handle=message.receipt_handle,
    )  # fmt: skip


def names(*events: Event, drain: float | None = None) -> list[str]:
    return [finding.name for finding in check(events, drain_us=None if drain is None else int(drain * S))]


DEAD = QUEUE, SENT, receive("q", 2, 1), receive("q", 4, 2), receive("dead", 6, 3)


def test_message_that_was_received_too_often_turns_up_in_the_dead_letter_queue() -> None:
    assert names(*DEAD, drain=5) == []


def test_dead_letter_that_never_turns_up_is_lost() -> None:
    assert names(*DEAD[:-1], drain=5) == ["lost"]


def test_dead_letter_in_a_queue_that_is_none_of_its_is_unexpected() -> None:
    assert names(QUEUE, SENT, receive("other", 2, 1)) == ["unexpected"]


def test_one_receive_too_many_is_found_by_its_count() -> None:
    assert names(QUEUE, SENT, receive("q", 2, 3)) == ["received_too_often"]


def test_one_receive_too_many_is_found_by_counting() -> None:
    assert names(QUEUE, SENT, *(receive("q", at, 0) for at in (2, 4, 6))) == ["received_too_often"]


def test_dead_letter_that_was_received_too_seldom_moved_early() -> None:
    assert names(QUEUE, SENT, receive("q", 2, 1), receive("dead", 6, 2)) == ["moved_early"]


def test_dead_letter_that_comes_twice_with_one_count_moved_twice() -> None:
    assert names(*DEAD, receive("dead", 9, 3)) == ["moved_twice"]


def test_dead_letter_that_is_in_its_source_again_is_copied() -> None:
    events = [*DEAD[:-1], receive("dead", 3, 3)]
    assert names(*events) == ["copied"]


def test_dead_letter_in_flight_at_both_places_is_copied() -> None:
    events = QUEUE, SENT, receive("q", 2, 1), receive("q", 4, 2, visibility=5), receive("dead", 6, 3)
    assert sorted(names(*events)) == ["copied", "early"]


def test_deleted_message_in_the_dead_letter_queue_is_resurrected() -> None:
    first = receive("q", 2, 1)
    assert names(QUEUE, SENT, first, delete(first, 2.5), receive("dead", 6, 3)) == ["resurrected"]


def test_moved_message_has_another_id() -> None:
    assert names(*DEAD, MOVE, receive("q", 22, 1, message_id="2"), receive("q", 24, 2, message_id="2")) == []


def test_another_id_without_a_move_is_duplicated() -> None:
    assert names(*DEAD, receive("q", 22, 1, message_id="2")) == ["duplicated"]


def test_moved_message_that_stays_where_it_was_is_copied() -> None:
    events = *DEAD, MOVE, receive("q", 22, 1, message_id="2"), receive("dead", 24, 4)
    assert names(*events) == ["copied"]


def test_dead_letter_that_comes_after_its_move_is_copied() -> None:
    events = *DEAD[:-1], MOVE, receive("q", 22, 1, message_id="2"), receive("dead", 24, 3)
    assert names(*events) == ["copied"]


def test_message_moved_to_another_queue_is_expected_there() -> None:
    move = StartMove(client="r", queue="dead", invoke_us=20 * S, destination="other")
    assert names(*DEAD, move, receive("other", 22, 1, message_id="2")) == []
