"""FIFO queues with partitions on a member: who wakes a receive that waits for one, contents on disk, dead letters."""

import json
from zlib import crc32

import pytest

from elasticq.engine.context import ExecutionContext, Outcome
from elasticq.engine.execute import execute
from elasticq.engine.state import State
from elasticq.model import commands as c
from elasticq.model.errors import QueueDoesNotExist
from elasticq.model.names import DEFAULT_ACCOUNT, DEFAULT_REGION, queue_arn
from elasticq.model.results import ReceivedMessage
from elasticq.node import executor as executor_module
from elasticq.node.waits.waiters import Waiters
from tests.node.cluster import Solo, call_of
from tests.node.test_content_cache import Deep
from tests.node.test_fifo import bodies

URL, COUNT = "jobs.fifo", 4
GROUPS = {crc32(f"g{number}".encode()) % COUNT: f"g{number}" for number in range(40)}
OTHERS = {crc32(f"h{number}".encode()) % COUNT: f"h{number}" for number in range(40)}


def create(solo: Solo, name: str = URL, **attributes: str) -> None:
    given = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "ElasticqPartitions": str(COUNT), **attributes}
    solo.do(c.CreateQueue(queue_name=name, attributes=given))


def put(solo: Solo, body: str, partition: int, groups: dict[int, str] = GROUPS) -> None:
    solo.do(c.SendMessage(queue_url=URL, message_body=body, message_group_id=groups[partition]))


def poll(solo: Solo, partition: int | None, attempt: str | None = None) -> int:
    command = c.ReceiveMessage(
        queue_url=URL,
        wait_time_seconds=20,
        visibility_timeout=10,
        elasticq_partition=partition,
        receive_request_attempt_id=attempt,
    )
    return solo.start_call(command)


def take(solo: Solo, partition: int | None, limit: int = 1) -> list[ReceivedMessage]:
    command = c.ReceiveMessage(
        queue_url=URL, max_number_of_messages=limit, visibility_timeout=10, elasticq_partition=partition
    )
    return solo.do(command).messages


@pytest.fixture
def solo() -> Solo:
    made = Solo()
    create(made)
    return made


def test_message_wakes_who_waits_for_its_partition_or_for_any(solo: Solo) -> None:
    own, other, whole = poll(solo, 1), poll(solo, 2), poll(solo, None)
    put(solo, "a", 1)
    assert [bodies(solo, each) for each in (own, other, whole)] == [["a"], [], []]
    put(solo, "b", 3)
    assert [bodies(solo, each) for each in (own, other, whole)] == [["a"], [], ["b"]]
    put(solo, "c", 2)
    assert bodies(solo, other) == ["c"]


def test_who_has_waited_longest_is_first_whether_for_a_partition_or_for_any(solo: Solo) -> None:
    whole, own = poll(solo, None), poll(solo, 1)
    put(solo, "a", 1)
    put(solo, "b", 1, OTHERS)
    assert (bodies(solo, whole), bodies(solo, own)) == (["a"], ["b"])


@pytest.mark.pure
def test_message_of_another_partition_executes_no_waiting_receive(solo: Solo, monkeypatch: pytest.MonkeyPatch) -> None:
    tickets = [poll(solo, partition) for partition in (0, 1, 2)]
    executed: list[str] = []

    def noted(state: State, call: c.Call, context: ExecutionContext) -> Outcome:
        executed.append(type(call.command).__name__)
        return execute(state, call, context)

    monkeypatch.setattr(executor_module, "_run", noted)
    for number in range(3):
        put(solo, str(number), 3)
    assert executed == ["SendMessage"] * 3
    put(solo, "a", 1)
    assert executed[3:] == ["SendMessage", "ReceiveMessage"]
    assert [bodies(solo, ticket) for ticket in tickets] == [[], ["a"], []]


def test_message_behind_one_in_flight_wakes_nobody_until_that_is_deleted(solo: Solo) -> None:
    put(solo, "first", 1)
    (first,) = take(solo, 1)
    ticket, other = poll(solo, 1), poll(solo, 0)
    put(solo, "second", 1)
    assert bodies(solo, ticket) == []
    solo.do(c.DeleteMessage(queue_url=URL, receipt_handle=first.receipt_handle))
    assert (bodies(solo, ticket), bodies(solo, other)) == (["second"], [])


def test_end_of_a_visibility_wakes_the_partition_of_the_message(solo: Solo) -> None:
    put(solo, "first", 1)
    take(solo, None)
    ticket, other = poll(solo, 1), poll(solo, 0)
    solo.advance(9_999)
    assert bodies(solo, ticket) == []
    solo.advance(1)
    assert (bodies(solo, ticket), bodies(solo, other)) == (["first"], [])


def test_end_of_the_queues_delay_wakes_the_partition_of_the_message() -> None:
    solo = Solo()
    create(solo, DelaySeconds="5")
    put(solo, "later", 2)
    ticket, other = poll(solo, 2), poll(solo, 0)
    solo.advance(4_999)
    assert bodies(solo, ticket) == []
    solo.advance(1)
    assert (bodies(solo, ticket), bodies(solo, other)) == (["later"], [])


def test_batch_wakes_every_partition_that_it_has_messages_of(solo: Solo) -> None:
    tickets = [poll(solo, partition) for partition in range(COUNT)]
    entries = [c.SendMessageBatchEntry(str(at), str(at), message_group_id=GROUPS[at]) for at in (3, 1, 0)]
    solo.do(c.SendMessageBatch(queue_url=URL, entries=entries))
    assert [bodies(solo, ticket) for ticket in tickets] == [["0"], ["1"], [], ["3"]]


def test_waits_end_with_their_time_and_with_their_queue(solo: Solo) -> None:
    ticket = poll(solo, 1)
    solo.advance(20_000)
    assert [outcome.messages for outcome in solo.answers(ticket)] == [[]]
    tickets = [poll(solo, 1), poll(solo, 2), poll(solo, None)]
    solo.do(c.DeleteQueue(queue_url=URL))
    assert [type(outcome) for each in tickets for outcome in solo.answers(each)] == [QueueDoesNotExist] * 3


def test_receive_under_a_lease_takes_only_of_its_partition_what_stands_behind_its_own(solo: Solo) -> None:
    for partition in (1, 2):
        for number in range(3):
            put(solo, f"{partition}{number}", partition)
    taken: list[list[str]] = []
    for number, partition in enumerate((1, 2, 1, 2)):
        command = c.ReceiveMessage(
            queue_url=URL,
            visibility_timeout=60,
            receive_request_attempt_id=f"reader/1/0/{number}",
            elasticq_partition=partition,
        )
        taken.append([message.body for message in solo.do(command).messages])
    assert taken == [["10"], ["20"], ["11"], ["21"]]


def test_lease_that_waits_for_a_partition_gets_what_comes_behind_its_own_message(solo: Solo) -> None:
    put(solo, "first", 1)
    solo.do(c.ReceiveMessage(URL, visibility_timeout=60, receive_request_attempt_id="r/1/0/0", elasticq_partition=1))
    ticket = poll(solo, 1, "r/1/0/1")
    put(solo, "of another", 2)
    assert bodies(solo, ticket) == []
    put(solo, "second", 1)
    assert bodies(solo, ticket) == ["second"]


def test_dead_letters_of_a_partition_make_way_for_what_waits_behind_them() -> None:
    solo = Solo()
    create(solo, "dead.fifo", ElasticqPartitions="7")
    policy = {"deadLetterTargetArn": queue_arn(DEFAULT_REGION, DEFAULT_ACCOUNT, "dead.fifo"), "maxReceiveCount": 1}
    create(solo, RedrivePolicy=json.dumps(policy))
    for partition in (1, 2):
        put(solo, f"first{partition}", partition)
        put(solo, f"second{partition}", partition)
        take(solo, partition)
    solo.advance(10_000)
    assert [message.body for message in take(solo, 1, 10)] == ["second1"]
    counts = {queue.name: queue.count for queue in solo.node.state.queues.values()}
    assert counts == {"dead.fifo": 1, URL: 3}, "those of the other partition stay where they are"


def test_contents_on_disk_are_fetched_for_the_partition_alone() -> None:
    deep = Deep()
    create(deep)
    for number in range(40):
        put(deep, str(number), number % COUNT)
    deep.store()
    deep.restart()
    ticket = deep.start_call(c.ReceiveMessage(queue_url=URL, max_number_of_messages=3, elasticq_partition=2))
    fetches = deep.take_fetches()
    groups = {deep.node.state.queues[each.queue_id].order.group_name(n) for each in fetches for n in each.sequences}
    assert groups == {GROUPS[2]}
    for fetch in fetches:
        deep.answer(fetch)
    assert bodies(deep, ticket) == ["2", "6", "10"]


def test_waiters_know_who_waits_where() -> None:
    waiters = Waiters()
    for number, partition in enumerate((None, 2, 2, None)):
        waiters.add(call_of(c.ReceiveMessage(URL)), number, 7, 1_000, partition)
    assert (waiters.first(7, 1), waiters.first(8)) == (None, None)
    found = []
    for partition in (-1, 2, 2, -1):
        waiter = waiters.first(7, partition)
        assert waiter is not None
        found.append(waiter.ticket)
        waiters.remove(waiter)
    assert found == [0, 1, 2, 3]
    assert (waiters.count, waiters.is_awaited(7), waiters.first(7)) == (0, False, None)
