"""A consumer of a group, against a server."""

import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from elasticq.client import Group, Held, SqsError
from elasticq.testing import ElasticQ
from tests.client.grouped import GROUP, Workplace, until_holds
from tests.system.cluster.cluster import until

NAMES = ("work-0", "work-1", "work-2", "work-3")


@pytest.fixture
def work() -> Iterator[Workplace]:
    with ElasticQ() as server:
        made = Workplace(server, len(NAMES))
        yield made
        made.sqs.close()


def test_consumers_share_and_the_last_one_has_all(work: Workplace) -> None:
    calls: list[tuple[str, str]] = []
    note = {
        "on_assigned": lambda held: calls.append(("assigned", held.resource)),
        "on_revoked": lambda held: calls.append(("revoked", held.resource)),
    }
    with Group(work.sqs, GROUP, consumer_name="first", **note) as first:
        until_holds(first, *NAMES)
        before = first.held
        assert sorted(calls) == [("assigned", name) for name in NAMES]
        with Group(work.sqs, GROUP, consumer_name="second") as second:
            until(lambda: len(second.held) == 2, "the second one has its share")
            until(lambda: len(first.held) == 2, "the first one has given it")
            assert set(first.held) | set(second.held) == set(NAMES)
            assert {name for kind, name in calls if kind == "revoked"} == set(second.held)
            assert all(second.held[name].token > before[name].token for name in second.held)
            assert not before[next(iter(second.held))].is_held()
            names = {each["ConsumerId"]: each["ConsumerName"] for each in work.group()["Consumers"]}
            assert names == {first.consumer_id: "first", second.consumer_id: "second"}
            assert second.generation == work.group()["Generation"]
        until_holds(first, *NAMES)
    assert first.held == {}
    assert first.wait(0)
    assert sorted(calls[-4:]) == [("revoked", name) for name in NAMES]
    assert work.group()["Consumers"] == []


def test_weights_and_queues_that_come_later(work: Workplace) -> None:
    groups = [Group(work.sqs, GROUP, weight=weight) for weight in (1, 3, 0)]
    with groups[0] as one, groups[1] as three, groups[2] as none:
        until(lambda: (len(one.held), len(three.held), len(none.held)) == (1, 3, 0), "shares are by weight")
        for number in range(4, 8):
            work.sqs.create_queue(QueueName=f"work-{number}")
        until(lambda: (len(one.held), len(three.held), len(none.held)) == (2, 6, 0), "later queues are shared out, too")


def test_a_queue_that_is_deleted_is_given_up(work: Workplace) -> None:
    with Group(work.sqs, GROUP) as group:
        until_holds(group, *NAMES)
        former = group.held["work-0"]
        work.sqs.delete_queue(QueueUrl="work-0")
        until_holds(group, *NAMES[1:])
        work.sqs.create_queue(QueueName="work-0")
        until_holds(group, *NAMES)
        assert group.held["work-0"].token > former.token
        assert not former.may_finish()


def test_a_resource_is_not_another_s_before_on_revoked_has_returned(work: Workplace) -> None:
    may_return = threading.Event()

    def revoked(held: Held) -> None:
        assert not held.is_held()
        assert held.may_finish()
        may_return.wait()

    with Group(work.sqs, GROUP, on_revoked=revoked) as first:
        until_holds(first, *NAMES)
        with Group(work.sqs, GROUP) as second:
            until(lambda: "revoking" in work.states(), "the first one is asked to stop")
            assert second.held == {}
            may_return.set()
            until(lambda: len(second.held) == 2, "the second one has its share")


def test_a_session_that_is_over_stops_everything_and_begins_again(work: Workplace) -> None:
    calls: list[tuple[str, int]] = []
    with Group(
        work.sqs,
        GROUP,
        on_assigned=lambda held: calls.append(("assigned", held.token)),
        on_revoked=lambda held: calls.append(("revoked", held.token)),
    ) as group:
        until_holds(group, *NAMES)
        former, consumer = group.held, group.consumer_id
        work.server.clock.advance(11)
        until(lambda: group.consumer_id not in ("", consumer), "it has joined again")
        until_holds(group, *NAMES)
        for name, held in former.items():
            assert group.held[name].token > held.token
            assert calls.index(("revoked", held.token)) < calls.index(("assigned", group.held[name].token))


def test_without_answers_it_stops_by_itself_and_goes_on_with_the_same_tokens(work: Workplace) -> None:
    work.sqs.set_group(GroupName=GROUP, SessionTimeoutMs=2_000)
    ended: list[Held] = []
    with Group(work.sqs, GROUP, on_revoked=ended.append) as group:
        until_holds(group, *NAMES)
        with work.server.fault("ElasticqHeartbeat"):
            until(lambda: len(ended) == 4, "it has stopped")
            assert group.held == {}
            assert not any(held.may_finish() for held in ended)
        until_holds(group, *NAMES)


def test_a_group_that_is_not_there_and_one_that_is_deleted(work: Workplace) -> None:
    with pytest.raises(SqsError, match="ElasticqGroupDoesNotExist"):
        Group(work.sqs, "none").join()
    ended: list[Held] = []
    group = Group(work.sqs, GROUP, on_revoked=ended.append)
    group.join()
    until_holds(group, *NAMES)
    work.sqs.delete_group(GroupName=GROUP)
    until(lambda: len(ended) == 4, "it has stopped")
    with pytest.raises(SqsError, match="ElasticqGroupDoesNotExist"):
        group.wait(60)
    group.close()


def test_an_error_in_on_assigned_ends_the_consumer_and_frees_what_it_has(work: Workplace) -> None:
    def assigned(held: Held) -> None:
        raise LookupError(held.resource)

    ended: list[Held] = []
    group = Group(work.sqs, GROUP, on_assigned=assigned, on_revoked=ended.append)
    group.join()
    with pytest.raises(LookupError, match="work-"):
        group.wait(60)
    group.close()
    assert work.states() == {"free"}
    assert len(ended) >= 1
    with pytest.raises(LookupError), group:
        pass


def test_an_error_in_on_revoked_leaves_what_it_had_to_the_session_s_end(work: Workplace) -> None:
    def revoked(held: Held) -> None:
        raise LookupError(held.resource)

    with pytest.raises(LookupError), Group(work.sqs, GROUP, on_revoked=revoked) as group:
        until_holds(group, *NAMES)
    assert "free" not in work.states(), "nobody knows whether it has stopped"
    work.server.clock.advance(16)
    until(lambda: work.states() == {"free"}, "the session is over")


def refused_afterwards(work: Workplace, client: Any) -> None:
    with Group(client, GROUP) as group:
        until_holds(group, *NAMES)
        held = group.held["work-0"]
        work.send("a")
        (message,) = held.client.receive_message()["Messages"]
    with pytest.raises(Exception, match="ElasticqNotHolder"):
        held.client.receive_message()
    with pytest.raises(Exception, match="ElasticqNotHolder"):
        held.client.delete_message(ReceiptHandle=message["ReceiptHandle"])
    client.delete_message(QueueUrl=held.queue_url, ReceiptHandle=message["ReceiptHandle"])


def test_the_light_client_is_refused_what_is_another_s(work: Workplace) -> None:
    refused_afterwards(work, work.sqs)


def test_boto3_is_refused_what_is_another_s(work: Workplace) -> None:
    server = work.server
    key = {"aws_access_key_id": server.account, "aws_secret_access_key": "x"}
    refused_afterwards(work, boto3.client("sqs", endpoint_url=server.endpoint_url, region_name=server.region, **key))


def test_close_in_a_callback_ends_the_consumer(work: Workplace) -> None:
    group = Group(work.sqs, GROUP, on_assigned=lambda held: group.close())
    with group:
        assert group.wait(60)


def test_a_failure_of_its_own_ends_it_too(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elasticq.client.group.Held", lambda *parts: parts[99])
    with pytest.raises(IndexError), Group(work.sqs, GROUP) as group:
        assert list(group) == []
    assert work.states() == {"held"}, "what it had is left to the session's end"
