"""Iterating over what a consumer holds."""

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from elasticq.client import Group, Held, Message, SqsError
from elasticq.client.group_messages import Receivers
from tests.client.grouped import GROUP, Workplace, until_holds, workplace
from tests.system.cluster.cluster import until

NAMES = ("work-0", "work-1", "work-2")


@pytest.fixture
def work() -> Iterator[Workplace]:
    with workplace(len(NAMES)) as made:
        yield made


def test_all_queues_are_read_in_their_order_also_by_fewer_receivers(work: Workplace) -> None:
    wanted = [f"{number}" for number in range(15)]
    for name in NAMES:
        work.send(*wanted, queue=name)
    found: dict[str, list[str]] = {name: [] for name in NAMES}
    with Group(work.sqs, GROUP, receivers=1) as group:
        for message in group:
            found[message.held.resource].append(message.body)
            assert message.fence == message.held.token
            message.delete()
            if sum(map(len, found.values())) == 3 * len(wanted):
                break
    assert found == dict.fromkeys(NAMES, wanted)


def test_threads_that_iterate_have_a_queue_each(work: Workplace) -> None:
    for name in NAMES:
        work.send(*"abcdef", queue=name)
    busy: Counter[str] = Counter()
    done: list[str] = []
    lock = threading.Lock()

    def read(group: Group) -> None:
        for message in group:
            name = message.held.resource
            with lock:
                busy[name] += 1
                assert busy[name] == 1, "two messages of one queue at a time"
            message.delete()
            with lock:
                busy[name] -= 1
                done.append(message.body)
                if len(done) == 6 * len(NAMES):
                    group.close()

    with Group(work.sqs, GROUP) as group:
        threads = [threading.Thread(target=read, args=(group,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(done) == sorted("abcdef" * len(NAMES))


def test_a_queue_is_released_when_its_message_is_done_and_the_rest_goes_back(work: Workplace) -> None:
    work.send("a", "b", "c")
    revoked: list[Held] = []
    with Group(work.sqs, GROUP, on_revoked=revoked.append) as first:
        until_holds(first, *NAMES)
        messages = iter(first)
        message = next(messages)
        work.sqs.drain_consumer(GroupName=GROUP, ConsumerId=first.consumer_id)
        with Group(work.sqs, GROUP) as second:
            until_holds(second, "work-1", "work-2")
            assert len(revoked) == 3
            assert not message.held.is_held()
            message.delete()
            end = threading.Thread(target=lambda: list(messages))  # asks for the next one: this one is done
            end.start()
            until_holds(second, *NAMES)
            assert work.visible() == ["b", "c"]
            first.close()
            end.join()


def test_a_message_in_hand_does_not_keep_its_thread_from_leaving(work: Workplace) -> None:
    work.send("a", "b")
    with Group(work.sqs, GROUP) as group:
        messages = iter(group)
        assert next(messages).body == "a"
    assert work.visible() == ["b"]
    assert list(messages) == []


def test_a_receive_that_waits_when_the_consumer_leaves_takes_nothing(work: Workplace) -> None:
    with Group(work.sqs, GROUP) as group:
        until_holds(group, *NAMES)
        reader = threading.Thread(target=lambda: list(group))
        reader.start()
    reader.join()
    work.send("a")
    assert work.visible() == ["a"]


def test_a_refusal_that_will_not_pass_ends_the_iteration(work: Workplace) -> None:
    with (
        pytest.raises(SqsError, match="InvalidParameterValue"),
        Group(work.sqs, GROUP, receive={"MaxNumberOfMessages": 11}) as group,
    ):
        assert [message.body for message in group] == []


def test_faults_of_the_server_are_waited_out(work: Workplace) -> None:
    work.send("a")
    with work.server.fault("ReceiveMessage", times=3) as fault, Group(work.server.endpoint_url, GROUP) as group:
        message: Message = next(iter(group))
        assert (message.body, fault.struck) == ("a", 3)


def test_there_is_at_least_one_receiver() -> None:
    with pytest.raises(ValueError, match="receivers is 0"):
        Receivers(threading.Condition(), None, 0, {}, print, print)


def test_partitions_are_shared_out_and_each_message_group_keeps_its_order(work: Workplace) -> None:
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "ElasticqPartitions": "4"}
    work.sqs.create_queue(QueueName="jobs.fifo", Attributes=attributes)
    work.sqs.set_group(GroupName="lanes", PartitionsOf="jobs.fifo")
    wanted = {f"g{number}": [f"g{number} {at}" for at in range(5)] for number in range(8)}
    for at in range(5):
        for name, bodies in wanted.items():
            work.sqs.send_message(QueueUrl="jobs.fifo", MessageBody=bodies[at], MessageGroupId=name)
    found: dict[str, list[str]] = {name: [] for name in wanted}
    lanes: dict[str, set[int | None]] = {name: set() for name in wanted}
    lock = threading.Lock()

    def read(group: Group) -> None:
        for message in group:
            with lock:
                name = message.body.partition(" ")[0]
                found[name].append(message.body)
                lanes[name].add(message.held.partition)
            message.delete()

    groups = [Group(work.sqs, "lanes") for _ in range(2)]
    with groups[0] as one, groups[1] as two:
        until(lambda: (len(one.held), len(two.held)) == (2, 2), "both hold two partitions")
        threads = [threading.Thread(target=read, args=(group,)) for group in groups]
        for thread in threads:
            thread.start()
        until(lambda: sum(map(len, found.values())) == 40, "all came")
    for thread in threads:
        thread.join()
    assert found == wanted
    assert {len(each) for each in lanes.values()} == {1}
    assert set().union(*lanes.values()) <= {0, 1, 2, 3}
