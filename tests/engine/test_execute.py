"""Every command has its handler; the bound of the invocation log: senders are throttled, ids are not forgotten."""

import pytest

from elasticq.engine.execute import HANDLERS
from elasticq.engine.stored import invocations
from elasticq.model import commands as c
from elasticq.model.actions import BY_NAME
from elasticq.model.errors import RequestThrottled
from elasticq.model.limits import INVOCATION_WINDOW_MS
from tests.engine.desk import Desk

GENERATIONS_S = (INVOCATION_WINDOW_MS + invocations.GENERATION_MS) / 1_000


def test_every_command_of_the_table_has_its_handler() -> None:
    assert {kind.__name__ for kind in HANDLERS} == set(BY_NAME)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A queue whose history is at its bound after two calls: the creation and one send."""
    monkeypatch.setattr(invocations, "INVOCATIONS_MAX", 1)
    desk = Desk()
    desk.create()
    desk.send("first", invocation=b"1" * 16)
    return desk


@pytest.mark.pure
def test_full_history_throttles_a_new_send_and_changes_nothing(full: Desk) -> None:
    with pytest.raises(RequestThrottled):
        full.send("second", invocation=b"2" * 16)
    assert full.queue().count == 1


def test_full_history_still_answers_a_retry(full: Desk) -> None:
    assert full.send("first", invocation=b"1" * 16) == full.send("first", invocation=b"1" * 16)
    assert full.queue().count == 1


def test_full_history_lets_messages_be_received_and_deleted(full: Desk) -> None:
    (message,) = full.receive(1, invocation=b"3" * 16)
    full.do(c.DeleteMessage(queue_url="jobs", receipt_handle=message.receipt_handle), invocation=b"4" * 16)
    assert not full.queue().rows


def test_send_is_accepted_again_when_the_window_has_passed(full: Desk) -> None:
    full.wait(GENERATIONS_S)
    full.send("second", invocation=b"2" * 16)
    assert full.queue().count == 2
