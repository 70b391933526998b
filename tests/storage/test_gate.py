"""Frames leave after the records they rest on, never before."""

import pytest

from elasticq.node.outputs import Frame
from elasticq.storage.gate import SyncGate


def frame(name: str, token: int) -> Frame:
    return Frame("b", name.encode(), token)


def names(frames: list[Frame]) -> list[str]:
    return [one.data.decode() for one in frames]


def test_frames_without_a_token_leave_at_once() -> None:
    gate = SyncGate()
    assert names(gate.add([frame("heartbeat", 0), frame("vote", 1)])) == ["heartbeat"]


def test_frames_leave_in_order_when_their_token_is_synced() -> None:
    gate = SyncGate()
    gate.add([frame("a", 1), frame("c", 3), frame("b", 2)])
    assert names(gate.synced(2)) == ["a", "b"]
    assert names(gate.synced(3)) == ["c"]
    assert len(gate) == 0


def test_frames_of_a_synced_token_are_not_held() -> None:
    gate = SyncGate()
    gate.synced(5)
    assert names(gate.add([frame("a", 5), frame("b", 6)])) == ["a"]
    assert len(gate) == 1


def test_a_crash_forgets_what_was_held() -> None:
    gate = SyncGate()
    gate.add([frame("a", 1)])
    gate.clear()
    assert gate.synced(1) == []


def test_tokens_never_fall() -> None:
    gate = SyncGate()
    gate.synced(2)
    with pytest.raises(AssertionError):
        gate.synced(1)
