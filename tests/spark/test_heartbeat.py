"""The thread that renews a running batch."""

from queue import SimpleQueue
from typing import Any

import pytest

from elasticq.spark.heartbeat import Heartbeat
from elasticq.spark.offsets import Offset

PATIENCE_S = 10
FIRST, SECOND = Offset("q", 1), Offset("q", 2)


def test_the_newest_batch_is_renewed_until_the_end() -> None:
    renewed: SimpleQueue[Offset] = SimpleQueue()
    heart = Heartbeat(0.001, renewed.put)
    heart.cover(FIRST)
    assert [renewed.get(timeout=PATIENCE_S) for _ in range(3)] == [FIRST] * 3
    heart.cover(SECOND)
    while renewed.get(timeout=PATIENCE_S) != SECOND:
        pass
    heart.stop()
    while not renewed.empty():
        assert renewed.get() == SECOND
    heart.cover(FIRST)
    assert heart._thread is None, "a heart that was stopped does not begin again"


def test_a_renewal_that_failed_is_told_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    tried: SimpleQueue[Any] = SimpleQueue()

    def renew(offset: Offset) -> None:
        tried.put(offset)
        raise OSError("nobody there")

    heart = Heartbeat(0.001, renew)
    heart.cover(FIRST)
    assert [tried.get(timeout=PATIENCE_S) for _ in range(2)] == [FIRST] * 2
    heart.stop()
    assert "renewal_failed batch=1 error=nobody there" in caplog.text


def test_nothing_is_renewed_between_two_batches() -> None:
    renewed: SimpleQueue[Offset | None] = SimpleQueue()
    beats: SimpleQueue[Offset] = SimpleQueue()
    heart, other = Heartbeat(0.001, renewed.put), Heartbeat(0.001, beats.put)
    heart.cover(None)
    assert heart._thread is None
    heart.cover(FIRST)
    assert renewed.get(timeout=PATIENCE_S) == FIRST
    heart.cover(None)
    other.cover(FIRST)
    for _ in range(20):
        beats.get(timeout=PATIENCE_S)
    other.stop()
    heart.cover(SECOND)
    while (offset := renewed.get(timeout=PATIENCE_S)) != SECOND:
        assert offset == FIRST
    heart.stop()
