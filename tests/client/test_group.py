"""A consumer of a group, against a server."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from elasticq.client import Group, Held, Sqs, SqsError
from tests.client.grouped import GROUP, Workplace, until_holds, workplace
from tests.system.cluster.cluster import until

NAMES = ("work-0", "work-1", "work-2", "work-3")


@pytest.fixture
def work() -> Iterator[Workplace]:
    with workplace(len(NAMES)) as made:
        yield made


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


def test_a_worker_that_ended_as_nothing_was_held_is_started_anew(work: Workplace) -> None:
    work.sqs.set_group(GroupName=GROUP, SessionTimeoutMs=3_000)
    may_go_on, has_ended = threading.Event(), threading.Event()
    workers: dict[str, threading.Thread] = {}

    def act(held: Held) -> None:
        while held.is_held():
            has_ended.wait(0.01)
        has_ended.set()

    def assigned(held: Held) -> None:
        if workers:
            may_go_on.wait()  # a callback takes so long that nobody looks while the time is over
        workers[held.resource] = threading.Thread(target=act, args=(held,))
        workers[held.resource].start()

    with Group(work.sqs, GROUP, on_assigned=assigned) as group:
        until(lambda: bool(workers), "the first one is at work")
        with work.server.fault("ElasticqHeartbeat"):
            has_ended.wait()
        until(lambda: group.hold_until_s > time.monotonic(), "a heartbeat is answered again")
        may_go_on.set()
        until(
            lambda: set(group.held) == set(NAMES) and all(workers[name].is_alive() for name in NAMES),
            "somebody works on each queue",
        )


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


def test_an_exit_in_a_callback_ends_the_consumer(work: Workplace) -> None:
    group = Group(work.sqs, GROUP, on_assigned=lambda held: sys.exit("enough"))
    group.join()
    with pytest.raises(SystemExit, match="enough"):
        group.wait(60)
    group.close()
    assert work.group()["Consumers"] == []


def test_a_second_failure_does_not_hide_that_nobody_makes_callbacks(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elasticq.client.group.Held", lambda *parts: parts[99])
    group = Group(work.sqs, GROUP)
    group.join()
    with pytest.raises(IndexError):
        group.wait(60)
    work.sqs.delete_group(GroupName=GROUP)
    group._guarded(lambda: work.group()["no group"])  # as a heartbeat that is refused
    group.close()


def test_a_thread_that_a_callback_waits_for_can_end_the_consumer(work: Workplace) -> None:
    workers: list[threading.Thread] = []

    def assigned(held: Held) -> None:
        workers.append(threading.Thread(target=group.end))
        workers[-1].start()

    group = Group(work.sqs, GROUP, on_assigned=assigned, on_revoked=lambda held: workers[0].join())
    with group:
        assert group.wait(60)
    assert work.group()["Consumers"] == []


def test_who_closes_second_waits_until_everything_has_stopped(work: Workplace) -> None:
    begun, may_return = threading.Event(), threading.Event()
    ended: list[Held] = []

    def revoked(held: Held) -> None:
        begun.set()
        may_return.wait()
        ended.append(held)

    with Group(work.sqs, GROUP, on_revoked=revoked) as group:
        until_holds(group, *NAMES)
        first = threading.Thread(target=group.close)
        first.start()
        begun.wait()
        threading.Timer(0.2, may_return.set).start()
    assert len(ended) == 4
    assert work.group()["Consumers"] == []
    first.join()


def test_to_join_twice_is_to_join_once(work: Workplace) -> None:
    group = Group(work.sqs, GROUP)
    group.join()
    with group:
        assert len(group._threads) == 3
        assert len(work.group()["Consumers"]) == 1


def test_close_does_not_wait_for_a_server_that_is_silent(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, asked = threading.Event(), threading.Event()

    def receive(sqs: Sqs, **members: Any) -> dict[str, Any]:
        asked.set()
        answers.wait()
        return {}

    monkeypatch.setattr(Sqs, "receive_message", receive)
    monkeypatch.setattr("elasticq.client.group.CALL_READ_S", 1.0)
    with Group(work.sqs, GROUP, receivers=1) as group:
        reader = threading.Thread(target=lambda: list(group))
        reader.start()
        asked.wait()
    assert group.receivers.threads[0].is_alive()
    answers.set()
    reader.join()
    group.receivers.threads[0].join()


def test_time_for_which_the_machine_slept_counts(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    slept_s = 0.0
    monkeypatch.setattr(
        "elasticq.client.group.time.clock_gettime", lambda clock: time.monotonic() + slept_s * (clock == 7)
    )
    with Group(work.sqs, GROUP) as group:
        until_holds(group, *NAMES)
        held = group.held["work-0"]
        assert 0 < group.hold_until_s - time.monotonic() < 10
        with work.server.fault("ElasticqHeartbeat"):
            slept_s = 3_600.0
            assert not held.is_held()
            assert not held.may_finish()
        slept_s = 0.0


def test_the_hold_of_a_join_counts_from_its_first_try(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    now_ms = 1_000_000.0
    monkeypatch.setattr("elasticq.client.group.now_ms", lambda: now_ms)
    group = Group(work.sqs, GROUP)
    asked = group._state.ask(now_ms)
    with work.server.fault("ElasticqJoinGroup", times=1), pytest.raises(SqsError):
        group._ask(asked)
    now_ms += 9_000
    group._ask(asked)
    assert group._state.hold_until_ms < now_ms, "the first try may have begun the session, which ends before"


FORKED = """
import os, sys
from elasticq.client import Group

with Group(sys.argv[1], "workers") as group:
    while not group.held:
        group.wait(0.05)
    (held,) = group.held.values()
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        assert held.is_held()
    else:
        assert not held.is_held() and not held.may_finish() and not group.held
        try:
            list(group)
        except RuntimeError as failure:
            assert "process" in str(failure)
"""


def test_a_forked_process_holds_nothing_and_leaves_nothing() -> None:
    with workplace(1) as work:
        server = work.server
        key = {"AWS_ACCESS_KEY_ID": server.account, "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": server.region}
        command = [sys.executable, "-W", "ignore", "-c", FORKED, server.endpoint_url]
        subprocess.run(command, check=True, timeout=60, env={**os.environ, **key})
