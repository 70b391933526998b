"""MessageGroupId on standard queues: a tenant that holds much does not keep the others waiting, and nothing is lost."""

import tracemalloc
from collections import Counter

import pytest

from elasticq.engine.ordering.fair import FairOrder, with_groups
from elasticq.engine.ordering.standard import StandardOrder
from elasticq.model import commands as c
from elasticq.model.results import ReceivedMessage
from tests.engine.desk import Desk


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.create()
    return desk


def groups(messages: list[ReceivedMessage]) -> list[str | None]:
    return [message.attributes.get("MessageGroupId") if message.attributes else None for message in messages]


def test_quiet_tenant_passes_ten_thousand_messages_of_a_noisy_one(desk: Desk) -> None:
    desk.send_group("A", 10_000)
    desk.send_group("B", 10)
    for _ in range(3):
        assert groups(desk.receive(10)) == ["A"] * 10, "nobody is noisy yet: longest available first"
    assert groups(desk.receive(10)) == ["B"] * 10
    assert groups(desk.receive(10)) == ["A"] * 10, "nothing is held back"


def test_message_without_a_group_is_a_tenant_of_its_own(desk: Desk) -> None:
    desk.send_group("A", 100)
    desk.send_group(None, 100)
    for _ in range(3):
        desk.receive(10)
    for _ in range(10):
        assert groups(desk.receive(10)) == [None] * 10
    assert groups(desk.receive(10)) == ["A"] * 10


def test_among_noisy_tenants_the_one_with_the_fewest_in_flight_goes_first(desk: Desk) -> None:
    desk.send_group("A", 200)
    for _ in range(6):
        desk.receive(10)
    desk.send_group("B", 200)
    for _ in range(6):
        assert groups(desk.receive(10)) == ["B"] * 10
    assert Counter(groups(desk.receive(10))) == {"A": 5, "B": 5}


def test_tenant_with_a_tenth_of_what_is_in_flight_is_quiet(desk: Desk) -> None:
    desk.send_group(None, 270)
    desk.send_group("A", 31)
    for _ in range(30):
        desk.receive(10)  # of A 30 of 300
    desk.send_group("B", 1)
    assert groups(desk.receive(1)) == ["A"], "not more than a tenth"
    desk.send_group("A", 1)
    desk.send_group("B", 1)
    assert groups(desk.receive(10)) == ["B", "B", "A"]


def test_tenant_is_quiet_again_when_its_messages_are_not_in_flight_any_more(desk: Desk) -> None:
    desk.send_group("A", 40)
    for _ in range(3):
        desk.receive(10, visibility_s=5)
    desk.send_group("B", 10)
    assert groups(desk.receive(1)) == ["B"]
    desk.wait(6)
    assert groups(desk.receive(10)) == ["A"] * 10


def test_queue_without_groups_has_the_plain_order(desk: Desk) -> None:
    desk.send_group(None, 20)
    assert type(desk.queue().order) is StandardOrder
    desk.send_group("A", 1)
    assert type(desk.queue().order) is FairOrder
    desk.do(c.PurgeQueue(queue_url="jobs"))
    assert type(desk.queue().order) is StandardOrder


def test_message_of_a_few_tenants_costs_little(desk: Desk) -> None:
    order = with_groups(desk.queue().order)
    tracemalloc.start()
    try:
        for sequence in range(1 << 40, (1 << 40) + 100_000):
            order.insert_untouched(sequence, sequence)
            order.join(sequence, f"tenant-{sequence % 100}")
        cost_bytes = tracemalloc.get_traced_memory()[0] / 100_000
    finally:
        tracemalloc.stop()
    assert cost_bytes < 20
