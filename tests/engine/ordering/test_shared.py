"""Queues whose groups share: shares by weight, limits whose slots always come back, and changes while they live."""

from collections import Counter

import pytest

from elasticq.engine.ordering.fair import FairOrder
from elasticq.engine.ordering.shared import SharedOrder
from elasticq.engine.stored import mutations as m
from elasticq.engine.sweep import Sweeper
from elasticq.engine.writers.contract import Undo, roll_back
from elasticq.model import commands as c
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn
from elasticq.model.results import ReceivedMessage
from tests.engine.desk import Desk


def made(**attributes: str) -> Desk:
    desk = Desk()
    desk.create("dead")
    desk.create(**{"ElasticqFairness": "weighted", **attributes})
    return desk


def delete(desk: Desk, message: ReceivedMessage) -> None:
    desk.do(c.DeleteMessage(queue_url="jobs", receipt_handle=message.receipt_handle))


def bodies(messages: list[ReceivedMessage]) -> str:
    return "".join(sorted(message.body for message in messages))


def test_shares_over_ten_thousand_receives_are_within_one_percent_of_the_weights() -> None:
    desk = made(ElasticqGroupWeights='{"a": 5, "b": 3, "c": 1, "": 1}')
    for group in ("a", "b", "c", None):
        desk.send_group(group, 60)
    got: Counter[str] = Counter()
    for at in range(10_000 // 4):
        for message in desk.receive(4 if at % 2 else 1) + (desk.receive(3) if at % 2 == 0 else []):
            got[message.body] += 1
            delete(desk, message)
            group = None if message.body == "None" else message.body
            desk.do(c.SendMessage(queue_url="jobs", message_body=message.body, message_group_id=group))
    for group, share in (("a", 0.5), ("b", 0.3), ("c", 0.1), ("None", 0.1)):
        assert abs(got[group] / 10_000 - share) < 0.01 * share


def full(**attributes: str) -> tuple[Desk, list[ReceivedMessage]]:
    """Of two groups that may have two messages in flight each; both have."""
    desk = made(ElasticqMaxInFlightPerGroup="2", **attributes)
    desk.send_group("a", 9)
    desk.send_group(None, 9)
    taken = desk.receive(10)
    assert bodies(taken) == "NoneNoneaa"
    assert desk.receive(10) == []
    assert desk.counts() == (14, 4, 0)
    return desk, taken


def of_a(taken: list[ReceivedMessage]) -> ReceivedMessage:
    return next(message for message in taken if message.body == "a")


def test_slot_comes_back_by_delete() -> None:
    desk, taken = full()
    for message in taken:
        delete(desk, message)
        assert bodies(desk.receive(10)) == message.body


def test_slot_comes_back_by_time_out() -> None:
    desk, taken = full()
    handle = of_a(taken).receipt_handle
    desk.do(c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=handle, visibility_timeout=5))
    desk.wait(5)
    assert bodies(desk.receive(10)) == "a"
    desk.wait(25)
    assert bodies(desk.receive(10)) == "NoneNonea", "the one that returned first has another deadline now"


def test_slot_comes_back_by_visibility_zero() -> None:
    desk, taken = full()
    for _ in range(5):
        handle = of_a(taken).receipt_handle
        desk.do(c.ChangeMessageVisibility(queue_url="jobs", receipt_handle=handle, visibility_timeout=0))
        taken = desk.receive(10)
        assert bodies(taken) == "a"


def test_slot_comes_back_with_a_dead_letter() -> None:
    arn = queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, "dead")
    desk, _ = full(RedrivePolicy=f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 1}}')
    desk.wait(31)
    taken = [message for _ in range(6) for message in desk.receive(10)]
    assert bodies(taken) == "NoneNoneaa", "a dead letter that is passed takes a place in a choice, and none in flight"
    for message in taken:
        delete(desk, message)
    for _ in range(6):
        for message in desk.receive(10):
            delete(desk, message)
    assert (desk.counts("dead"), desk.counts()) == ((4, 0, 0), (0, 0, 0))


def test_slot_comes_back_by_purge_and_by_its_roll_back_goes_again() -> None:
    desk, _ = full()
    undo = Undo()
    desk.do(c.PurgeQueue(queue_url="jobs"), undo=undo)
    roll_back(undo)
    assert desk.receive(10) == []
    desk.do(c.PurgeQueue(queue_url="jobs"))
    desk.send_group("a", 3)
    assert bodies(desk.receive(10)) == "aa"


def test_slot_comes_back_with_an_answer_that_reached_nobody() -> None:
    desk, taken = full()
    queue = desk.queue()
    receipt = desk.state.identity.read_handle(of_a(taken).receipt_handle)
    desk.write(
        [m.ReceiveReturned(queue.id, [receipt.sequence], [receipt.delivery_number], [0], [0], desk.context.now_ms, b"")]
    )
    assert bodies(desk.receive(10)) == "a"


def test_strategy_weights_and_limit_change_while_the_queue_lives() -> None:
    desk, _ = full()
    order = desk.queue().order
    assert type(order) is SharedOrder
    for change in (
        {"ElasticqMaxInFlightPerGroup": "3"},
        {"ElasticqFairness": "round_robin", "ElasticqMaxInFlightPerGroup": "4"},
        {"ElasticqFairness": "adaptive", "ElasticqMaxInFlightPerGroup": "5"},
    ):
        desk.do(c.SetQueueAttributes("jobs", change))
        assert bodies(desk.receive(10)) == "Nonea"
    undo = Undo()
    desk.do(c.SetQueueAttributes("jobs", {"ElasticqMaxInFlightPerGroup": "0"}), undo=undo)
    desk.do(c.SetQueueAttributes("jobs", {"ElasticqFairness": "sqs"}), undo=undo)
    assert type(desk.queue().order) is FairOrder
    assert desk.counts() == (8, 10, 0)
    roll_back(undo)
    assert desk.receive(10) == []
    desk.do(c.SetQueueAttributes("jobs", {"ElasticqFairness": "sqs", "ElasticqMaxInFlightPerGroup": "0"}))
    assert len(desk.receive(10)) == 8


def test_standard_queue_becomes_one_whose_groups_share_before_it_has_groups() -> None:
    desk = Desk()
    desk.create()
    desk.send_group(None, 10)
    desk.receive(2)
    desk.do(c.SetQueueAttributes("jobs", {"ElasticqFairness": "round_robin", "ElasticqMaxInFlightPerGroup": "3"}))
    assert bodies(desk.receive(10)) == "None"
    desk.send_group("a", 10)
    assert bodies(desk.receive(10)) == "aaa"


def test_expired_messages_cost_their_group_nothing() -> None:
    desk = made(MessageRetentionPeriod="60")
    desk.send_group("a", 5)
    desk.wait(60)
    desk.send_group("b", 4)
    desk.send_group("a", 4)
    assert bodies(desk.receive(8)) == "aaaabbbb"


def test_lease_takes_turns_as_everybody_does() -> None:
    desk = made()
    desk.send_group("a", 10)
    desk.send_group("b", 10)
    for call in range(5):
        command = c.ReceiveMessage("jobs", max_number_of_messages=2, receive_request_attempt_id=f"q/1/0/{call}")
        assert bodies(desk.do(command).messages) == "ab"


def test_queue_that_goes_takes_its_turns_along() -> None:
    desk = made()
    for at in range(1_200):
        desk.do(c.SendMessage(queue_url="jobs", message_body="x", message_group_id=f"g{at}"))
    for _ in range(5):
        desk.receive(10)
    queue = desk.queue()
    assert len(queue.turns) > 1_000
    desk.do(c.DeleteQueue(queue_url="jobs"))
    desk.wait(61)
    sweeper, steps = Sweeper(), 0
    while queue.id in desk.state.deleted_queues:
        found = sweeper.step(desk.state, desk.context.now_ms)[0]
        assert sum(len(x.paths) for x in found if isinstance(x, m.TurnsSet)) <= 1_000
        desk.write(found)
        steps += 1
    assert steps == 3
    assert queue.id not in desk.state.turns


@pytest.mark.parametrize("strategy", ["round_robin", "weighted", "adaptive"])
def test_many_groups_cost_a_receive_little(strategy: str) -> None:
    """Steps that grow with the number of groups would be found by the time limit of tests."""
    desk = made(ElasticqFairness=strategy)
    for at in range(3_000):
        desk.do(c.SendMessage(queue_url="jobs", message_body="x", message_group_id=f"g{at % 1_500}"))
    steps = len(desk.log)
    for _ in range(300):
        assert len(desk.receive(10)) == 10
    turns = [len(x.paths) for x in desk.log[steps:] if isinstance(x, m.TurnsSet)]
    assert max(turns) <= 600
    assert sum(turns) < 15_000
