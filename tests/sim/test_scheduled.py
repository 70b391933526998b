"""The judge of times: who comes early is told, and who was received before may come at once."""

from elasticq.engine.ordering.schedule import DELIVER_AT
from elasticq.engine.stored import mutations as m
from elasticq.model.commands import MessageAttributeValue
from elasticq.sim.scheduled import Scheduled

QUEUE, DUE_MS = 7, 5_000


def stored(sequence: int, body: str = "x", queue_id: int = QUEUE) -> m.MessageStored:
    attributes = {DELIVER_AT: MessageAttributeValue("Number", str(DUE_MS))}
    return m.MessageStored(queue_id, sequence, body, 1_000, "sim", attributes=attributes)


def received(sequence: int, at_ms: int, queue_id: int = QUEUE) -> m.MessagesReceived:
    return m.MessagesReceived(queue_id, at_ms, at_ms + 1_000, [sequence], [1], [1], [at_ms])


def test_message_that_comes_before_its_time_is_told() -> None:
    judge = Scheduled()
    assert judge.early([stored(1), stored(2, "y")]) == []
    assert judge.early([received(1, DUE_MS)]) == []
    assert judge.early([received(2, DUE_MS - 1)]) == [f"message 2 of queue {QUEUE}, by 1 ms"]


def test_rescheduled_message_may_come_at_the_earlier_time() -> None:
    judge = Scheduled()
    judge.early([stored(1), m.VisibilityChanged(QUEUE, [1], [3_000])])
    assert judge.early([received(1, 2_999)]) == [f"message 1 of queue {QUEUE}, by 1 ms"]
    judge.early([m.VisibilityChanged(QUEUE, [1], [9_000])])
    assert judge.early([received(1, 3_000)]) == []


def test_message_that_was_moved_back_may_come_when_the_first_one_might_have() -> None:
    judge = Scheduled()
    judge.early([stored(1), m.VisibilityChanged(QUEUE, [1], [3_000]), received(1, 3_000)])
    assert judge.early([stored(9), received(9, 3_500)]) == []
    assert judge.early([stored(10, "new"), received(10, 3_500)]) == [f"message 10 of queue {QUEUE}, by 1500 ms"]
