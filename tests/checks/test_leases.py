"""The rules for leases on hand-made histories."""

from typing import Any

from elasticq.checks.history import CreateQueue, Event, HandedOut, LeaseChange, Receive, Send, SentMessage
from elasticq.checks.queue import check

S = 1_000_000


def sent(*bodies: str) -> Send:
    messages = [SentMessage(body, [body]) for body in bodies]
    return Send(client="p", queue="q", guid="g", invoke_us=1, complete_us=2, outcome="ok", messages=messages)


def read(at: float, call: int, *bodies: str, handle: str = "h", **more: Any) -> Receive:
    """From the lease n/1/0 of ten seconds."""
    fields = {
        "client": "c", "queue": "q", "invoke_us": int(at * S), "complete_us": int((at + 0.1) * S), "outcome": "ok",
        "visibility_ms": 10_000, "lease": "n/1/0", "attempt_id": f"n/1/0/{call}",
        "messages": [HandedOut(body, f"{handle}{body}", body) for body in bodies],
    }  # fmt: skip
    return Receive(**{**fields, **more})


def refused(at: float, call: int) -> Receive:
    return read(at, call, outcome="fail", is_expired=True)


def change(at: float, action: str, *told: Receive, lease: str = "n/1/", **more: Any) -> LeaseChange:
    fields = {
        "client": "c", "queue": "q", "invoke_us": int(at * S), "complete_us": int((at + 0.1) * S), "outcome": "ok",
        "lease": lease, "action": action, "visibility_ms": 10_000 if action == "renew" else 0,
        "messages": [message for receive in told for message in receive.messages],
    }  # fmt: skip
    return LeaseChange(**{**fields, **more})


def other(at: float, body: str) -> Receive:
    return read(at, 0, body, handle="other", lease="", attempt_id="")


def names(*events: Event, drain: float | None = None) -> list[str]:
    return [finding.name for finding in check(events, drain_us=None if drain is None else int(drain * S))]


def test_batch_that_is_read_again_and_committed_is_clean() -> None:
    first, second = read(1, 0, "a"), read(2, 1, "b")
    queue_history = (
        sent("a", "b"),
        first,
        second,
        read(3, 2),
        read(4, 0, "a"),
        read(4, 2),
        change(5, "commit", first, second),
    )
    assert names(*queue_history, refused(6, 0), drain=7) == []


def test_another_answer_to_one_id_is_found() -> None:
    assert names(sent("a", "b"), read(1, 0, "a"), read(2, 0, "b")) == ["lease_differs"]
    assert names(sent("a"), read(1, 0), read(2, 0, "a")) == ["lease_differs"]


def test_one_handle_under_two_ids_is_found() -> None:
    assert "lease_differs" in names(sent("a"), read(1, 0, "a"), read(2, 1, "a"))


def test_messages_behind_a_seal_are_found() -> None:
    assert names(sent("a", "b"), read(1, 0, "a"), read(2, 1), read(3, 2, "b")) == ["lease_unsealed"]
    waiting = read(0.5, 2, "b", complete_us=3 * S)
    assert names(sent("a", "b"), read(1, 0, "a"), waiting, read(2, 1)) == []


def test_answer_after_the_end_is_found() -> None:
    first = read(1, 0, "a")
    assert names(sent("a"), first, refused(12, 0), read(13, 0, "a")) == ["lease_revived"]
    assert names(sent("a"), first, change(2, "give_back"), read(3, 0, "a")) == ["lease_revived"]
    assert "lease_revived" in names(sent("a"), first, change(2, "commit", first), read(3, 0, "a"))
    late = change(13, "renew", lease="n/1/0")
    assert names(sent("a"), first, refused(12, 0), late) == ["lease_revived"]


def test_lease_that_ends_before_its_time_is_found() -> None:
    assert names(sent("a"), read(1, 0, "a"), refused(10, 0)) == ["lease_short"]
    assert names(sent("a"), read(1, 0, "a"), refused(11.5, 0)) == []
    assert names(sent("a"), read(1, 0, "a"), change(5, "renew"), refused(14, 0)) == ["lease_short"]
    assert names(sent("a"), read(1, 0, "a"), change(5, "commit", outcome="unknown"), refused(6, 0)) == []


def test_message_of_a_living_lease_in_other_hands_is_early() -> None:
    assert names(sent("a"), read(1, 0, "a"), other(9, "a")) == ["early"]
    assert names(sent("a"), read(1, 0, "a"), other(12, "a")) == []
    assert names(sent("a"), read(1, 0, "a"), change(8, "renew"), other(12, "a")) == ["early"]
    assert names(sent("a"), read(1, 0, "a"), change(8, "give_back"), other(9, "a")) == []


def test_committed_message_that_comes_back_is_resurrected() -> None:
    first = read(1, 0, "a")
    assert "resurrected" in names(sent("a"), first, change(2, "commit", first), other(5, "a"))


def test_committed_message_that_nobody_was_told_of_is_lost() -> None:
    first = read(1, 0, "a")
    assert names(sent("a", "b"), first, change(2, "commit", first), drain=4) == ["lost"]


def test_lease_may_go_on_behind_its_own_messages_of_a_group() -> None:
    def told(at: float, call: int, body: str, **more: Any) -> Receive:
        receive = read(at, call, body, **more)
        receive.messages[0].group, receive.messages[0].sequence_number = "g", str(ord(body))
        return receive

    fifo = CreateQueue(client="f", queue="q", invoke_us=0, complete_us=1, outcome="ok", is_fifo=True)
    send = sent("a", "b")
    for message in send.messages:
        message.group, message.sequence_numbers = "g", [str(ord(message.body))]
    assert names(fifo, send, told(1, 0, "a"), told(2, 1, "b"), told(3, 0, "a")) == []
    stranger = told(2, 0, "b", lease="n/1/1", attempt_id="n/1/1/0")
    assert "overtaken" in names(fifo, send, told(1, 0, "a"), stranger, told(3, 0, "a"))
