"""Calls that had their effect, when that is taken back."""

from elasticq.engine.stored import mutations as m
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model.limits import INVOCATION_WINDOW_MS
from tests.engine.desk import Desk
from tests.engine.driver import digest


def test_roll_back_of_a_returned_receive_of_a_reused_guid() -> None:
    """A GUID used again after its window: taking the return back must bring the newer row."""
    desk = Desk()
    desk.create()
    desk.send("0")
    desk.send("1")
    guid = b"g" * 16
    desk.receive(1, visibility_s=1, invocation=guid)
    desk.wait(INVOCATION_WINDOW_MS / 1_000 + 5)
    desk.receive(1, invocation=guid)
    rows = digest(desk)
    undo: Undo = []
    desk.write([m.ReceiveReturned(desk.queue().id, [], [], [], [], desk.context.now_ms, guid)], undo)
    roll_back(undo)
    assert digest(desk) == rows
