"""Calls that a member passes on: the letters' codec, and each call executed once whatever the network does."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elasticq.model import commands as c
from elasticq.model import errors, results
from elasticq.model.errors import ServiceUnavailable, SqsError
from elasticq.model.results import ReceiveMessageResult, Result, SendMessageResult
from elasticq.node import forwarding
from elasticq.node.courier import ANSWER_MS, Courier, Remote
from elasticq.node.effects import Frame
from elasticq.node.forwarding import (
    FRAME_KIND,
    Answer,
    AnyLetter,
    Forward,
    GiveBack,
    NotMaster,
    Numbers,
    Withdraw,
    answer_of,
    call_of,
    decode,
    encode,
    forward_of,
    outcome_of,
)
from elasticq.replication.messages import FrameError
from tests.model.structs import structs
from tests.node.cluster import Cluster
from tests.node.cluster import call_of as made_call

SEND = c.SendMessage(queue_url="jobs", message_body="x")
RECEIVE = c.ReceiveMessage(queue_url="jobs", max_number_of_messages=10)
POLL = c.ReceiveMessage(queue_url="jobs", wait_time_seconds=20)


def kinds(module: Any, base: type) -> list[type[Any]]:
    found = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, base)]
    return [kind for kind in found if kind is not base]


COMMANDS = kinds(c, c.Command)
RESULTS = [kind for kind in kinds(results, Result) if kind is not results.StaleResult]
ERRORS = kinds(errors, SqsError)


# --- codec -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", COMMANDS)
def test_every_command_survives_the_wire(kind: type[c.Command]) -> None:
    @settings(max_examples=20)
    @given(structs(kind), st.binary(max_size=16))
    def check(command: c.Command, invocation: bytes) -> None:
        call = c.Call(command, "key", "000000000000", "http://h:1", invocation)
        letter = decode(encode(forward_of(call, "x", "a", "b", "boot", 7)))
        assert isinstance(letter, Forward)
        assert (letter.sender, letter.to, letter.boot, letter.number) == ("a", "b", "boot", 7)
        assert call_of(letter) == call

    check()


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_survives_the_wire(kind: type[Result]) -> None:
    @settings(max_examples=20)
    @given(structs(kind))
    def check(result: Result) -> None:
        letter = decode(encode(answer_of(result, ("a", "boot", 7), "x", "b")))
        assert isinstance(letter, Answer)
        assert (letter.sender, letter.to, letter.boot, letter.number) == ("b", "a", "boot", 7)
        assert outcome_of(letter) == result

    check()


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_survives_the_wire(kind: type[SqsError]) -> None:
    letter = decode(encode(answer_of(kind("what went wrong: ä"), ("a", "boot", 7), "x", "b")))
    assert isinstance(letter, Answer)
    outcome = outcome_of(letter)
    assert type(outcome) is kind
    assert outcome.message == "what went wrong: ä"


@given(st.one_of([structs(kind) for kind in (Withdraw, GiveBack, NotMaster)]))
def test_other_letters_survive_the_wire(letter: AnyLetter) -> None:
    assert decode(encode(letter)) == letter


@settings(max_examples=300)
@given(st.binary(max_size=80), st.data())
def test_any_bytes_are_a_letter_or_a_frame_error(tail: bytes, data: st.DataObject) -> None:
    frame = bytearray(encode(forward_of(made_call(SEND), "x", "a", "b", "boot", 7)))
    frame[data.draw(st.integers(1, len(frame) - 1))] = data.draw(st.integers(0, 255))
    for candidate in (bytes([FRAME_KIND]) + tail, bytes(frame)):
        try:
            letter = decode(candidate)
            if isinstance(letter, Forward):
                call_of(letter)
        except FrameError:
            pass


def test_unknown_kinds_and_wrong_shapes_are_frame_errors() -> None:
    forward = forward_of(made_call(SEND), "x", "a", "b", "boot", 7)
    for kind in ("DropTables", "Command", "Struct", "", "__class__"):
        forward.kind = kind
        with pytest.raises(FrameError):
            call_of(decode(encode(forward)))  # type: ignore[arg-type]
    forward.kind, forward.command = "SendMessage", msgspec.Raw(msgspec.msgpack.encode([1, 2]))
    with pytest.raises(FrameError):
        call_of(decode(encode(forward)))  # type: ignore[arg-type]
    answer = answer_of(SendMessageResult("id"), ("a", "boot", 7), "x", "b")
    answer.kind = "Exception"
    with pytest.raises(FrameError):
        outcome_of(answer)


def test_command_of_a_newer_version_changes_nothing_at_the_master(cluster: Cluster) -> None:
    master, other = roles(cluster)
    cluster_id = cluster.node(master).replica.cluster
    letter = forward_of(made_call(SEND), cluster_id, other, master, "boot", 1)
    letter.kind = "SendMessageTomorrow"
    before = cluster.node(master).status(cluster.now_ms)
    with pytest.raises(FrameError):
        cluster.node(master).receive(encode(letter), cluster.now_ms)
    assert cluster.node(master).status(cluster.now_ms) == before


# --- numbers -----------------------------------------------------------------------


def test_number_is_taken_once_in_any_order() -> None:
    numbers = Numbers("boot")
    order = [3, 1, 2, 2, 5, 1, 3, 4, 5]
    assert [numbers.take(number) for number in order] == [True, True, True, False, True, False, False, True, False]


@given(st.permutations(range(1, 40)), st.lists(st.integers(1, 39)))
def test_numbers_remember_every_one_that_was_taken(order: list[int], again: list[int]) -> None:
    numbers = Numbers("boot")
    assert all(numbers.take(number) for number in order)
    assert not any(numbers.take(number) for number in again)


def test_memory_of_numbers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "SEEN_MAX", 10)
    numbers = Numbers("boot")
    for number in range(2, 2_000, 2):
        assert numbers.take(number)
        assert len(numbers._above) <= 10
    assert not numbers.take(1), "too old: it may have been executed"
    assert not numbers.take(1_998)
    assert numbers.take(2_001)


def test_new_life_of_a_member_counts_anew() -> None:
    courier = Courier("m")
    assert courier.take(Remote("a", "one", 1))
    assert not courier.take(Remote("a", "one", 1))
    assert courier.take(Remote("a", "two", 1))
    assert courier.take(Remote("b", "one", 1))


# --- members -----------------------------------------------------------------------


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.introduce_all()
    made.do(made.elect(), c.CreateQueue(queue_name="jobs"))
    made.advance(300)
    return made


def roles(cluster: Cluster) -> tuple[str, str]:
    """The master, and another one."""
    master = cluster.elect()
    return master, next(name for name in cluster.names if name != master)


def letters(cluster: Cluster, kind: type) -> list[AnyLetter]:
    found = [decode(frame.data) for _, frame in cluster.lost_frames if frame.data[0] == FRAME_KIND]
    return [letter for letter in found if isinstance(letter, kind)]


def drop(cluster: Cluster, kind: type) -> None:
    cluster.drops = lambda _, frame: frame.data[0] == FRAME_KIND and isinstance(decode(frame.data), kind)


def stored(cluster: Cluster) -> int:
    return len(cluster.node(cluster.elect()).state.queue("000000000000", "jobs").contents)


def test_any_member_serves_every_call(cluster: Cluster) -> None:
    for name in cluster.names:
        cluster.do(name, SEND)
    _master, other = roles(cluster)
    (message, *_) = cluster.do(other, RECEIVE).messages
    cluster.do(other, c.DeleteMessage(queue_url="jobs", receipt_handle=message.receipt_handle))
    assert stored(cluster) == 2
    with pytest.raises(errors.QueueDoesNotExist):
        cluster.do(other, c.SendMessage(queue_url="none", message_body="x"))
    assert cluster.node(other)._post._courier.sent == {}


def test_duplicate_late_and_reordered_letters_are_executed_once(cluster: Cluster) -> None:
    master, other = roles(cluster)
    drop(cluster, Forward)
    tickets = [cluster.say(other, SEND) for _ in range(4)]
    cluster.drops = None
    late = [frame for _, frame in cluster.lost_frames]
    for frame in (*reversed(late), *late):
        cluster.deliver(other, frame)
        cluster.settle()
    assert stored(cluster) == 4
    assert all(isinstance(cluster.answer(other, ticket), SendMessageResult) for ticket in tickets)
    cluster.deliver(other, late[0])
    cluster.settle()
    assert stored(cluster) == 4
    assert master in cluster.serving()


def test_answer_of_a_receive_that_nobody_waits_for_is_given_back_and_forgotten(cluster: Cluster) -> None:
    _master, other = roles(cluster)
    cluster.do(other, SEND)
    ticket = cluster.submit(other, RECEIVE)
    cluster.node(other).cancel(ticket, cluster.now_ms)
    drop(cluster, Withdraw)
    cluster.members[other].drain()
    cluster.settle()
    assert cluster.answers(other, ticket) == []
    (message,) = cluster.do(other, c.ReceiveMessage(queue_url="jobs", attribute_names=["All"])).messages
    assert message.attributes is not None
    assert message.attributes["ApproximateReceiveCount"] == "1"


def test_receive_whose_answer_was_lost_with_the_link_stays_hidden_for_its_timeout(cluster: Cluster) -> None:
    """The client may have read it: in two hands would be worse."""
    master, other = roles(cluster)
    cluster.do(master, SEND)
    drop(cluster, Answer)
    ticket = cluster.say(other, RECEIVE)
    assert cluster.answers(other, ticket) == []
    cluster.part(master, other)
    cluster.settle()
    outcome = cluster.answer(other, ticket)
    assert isinstance(outcome, ServiceUnavailable)
    assert "unknown" in outcome.message
    assert cluster.do(master, RECEIVE).messages == []
    cluster.advance(31_000)
    assert len(cluster.do(cluster.elect(), RECEIVE).messages) == 1


def test_wait_of_a_member_that_is_gone_takes_nothing(cluster: Cluster) -> None:
    master, other = roles(cluster)
    cluster.say(other, POLL)
    assert cluster.node(master).status(cluster.now_ms).waiters == 1
    cluster.crash(other)
    cluster.settle()
    assert cluster.node(master).status(cluster.now_ms).waiters == 0
    cluster.do(master, SEND)
    assert len(cluster.do(master, RECEIVE).messages) == 1


def test_receive_that_is_committed_after_its_member_is_gone_goes_back(cluster: Cluster) -> None:
    master, other = roles(cluster)
    cluster.do(master, SEND)
    cluster.held = set(cluster.names)
    cluster.say(other, RECEIVE)
    third = next(name for name in cluster.names if name not in (master, other))
    cluster.crash(other)
    cluster.held = set()
    cluster.settle()
    assert third in cluster.members
    assert len(cluster.do(master, RECEIVE).messages) == 1


def test_wait_ends_at_the_master_when_its_client_leaves(cluster: Cluster) -> None:
    master, other = roles(cluster)
    ticket = cluster.say(other, POLL)
    assert cluster.node(master).status(cluster.now_ms).waiters == 1
    cluster.node(other).cancel(ticket, cluster.now_ms)
    cluster.members[other].drain()
    cluster.settle()
    assert cluster.node(master).status(cluster.now_ms).waiters == 0
    cluster.advance(40_000)
    assert cluster.answers(other, ticket) == []


def test_wait_is_woken_by_a_send_at_a_third_member(cluster: Cluster) -> None:
    master, other = roles(cluster)
    third = next(name for name in cluster.names if name not in (master, other))
    ticket = cluster.say(other, POLL)
    cluster.advance(5_000)
    cluster.do(third, SEND)
    outcome = cluster.answer(other, ticket)
    assert isinstance(outcome, ReceiveMessageResult)
    assert len(outcome.messages) == 1


def test_undelivered_answer_goes_back_from_any_member(cluster: Cluster) -> None:
    _, other = roles(cluster)
    cluster.do(other, SEND)
    result = cluster.do(other, RECEIVE)
    cluster.node(other).undelivered(result, cluster.now_ms)
    cluster.members[other].drain()
    cluster.settle()
    assert len(cluster.do(other, RECEIVE).messages) == 1


def test_call_that_is_never_answered_ends_in_time_on_a_quiet_member(cluster: Cluster) -> None:
    """Heartbeats push its election on and on: nothing else may be what wakes it."""
    _, other = roles(cluster)
    drop(cluster, Answer)
    ticket, poll = cluster.say(other, SEND), cluster.say(other, POLL)
    cluster.advance(ANSWER_MS - 1)
    assert cluster.answers(other, ticket) == []
    cluster.advance(1)
    outcome = cluster.answer(other, ticket)
    assert isinstance(outcome, ServiceUnavailable)
    assert "unknown" in outcome.message
    cluster.advance(19_999)
    assert cluster.answers(other, poll) == []
    cluster.advance(1)
    assert isinstance(cluster.answer(other, poll), ServiceUnavailable)
    assert cluster.node(other)._post._courier.expires_at_ms is None


def test_call_for_an_old_master_goes_to_the_new_one(cluster: Cluster) -> None:
    old, other = roles(cluster)
    third = next(name for name in cluster.names if name not in (old, other))
    cluster.held = {other}
    cluster.drops = lambda _, frame: frame.to == other and frame.data[0] != FRAME_KIND
    assert cluster.node(old).hand_over(cluster.now_ms, third)
    cluster.members[old].drain()
    cluster.settle()
    assert cluster.masters() == [third]
    assert cluster.node(other).replica.master == old, "it does not know yet"
    ticket = cluster.say(other, SEND)
    assert cluster.answers(other, ticket) == [], "it waits, without asking again and again"
    sent_before = cluster.node(other)._post._courier._number
    cluster.advance(50)
    assert cluster.node(other)._post._courier._number == sent_before
    cluster.drops, cluster.held = None, set()
    cluster.advance(500)
    assert isinstance(cluster.answer(other, ticket), SendMessageResult)
    assert stored(cluster) == 1


def test_call_for_a_master_that_is_taking_over_waits_there(cluster: Cluster) -> None:
    old, other = roles(cluster)
    third = next(name for name in cluster.names if name not in (old, other))
    cluster.crash(old)

    def is_first_entry(_: str, frame: Frame) -> bool:
        return frame.data[0] != FRAME_KIND and b"\xc4" in frame.data and len(frame.data) > 150

    while not cluster.masters():
        cluster.advance(10)
        cluster.held = {other, third} if cluster.masters() else set()
    cluster.held = set()
    cluster.advance(3_000)
    (master,) = cluster.serving()
    follower = other if master == third else third
    node = cluster.node(master)
    node.serving = False
    ticket = cluster.say(follower, SEND)
    assert cluster.answers(follower, ticket) == []
    assert letters(cluster, NotMaster) == []
    node.serving = True
    cluster.advance(200)
    assert isinstance(cluster.answer(follower, ticket), SendMessageResult)


def test_master_whose_disk_is_full_hands_over_to_one_that_has_space(cluster: Cluster) -> None:
    master, other = roles(cluster)
    cluster.node(master).set_full("the disk is full", cluster.now_ms)
    cluster.members[master].drain()
    cluster.settle()
    assert cluster.elect_other(master)
    cluster.do(other, SEND)


def test_forwarded_sends_are_refused_while_all_disks_are_full(cluster: Cluster) -> None:
    master, other = roles(cluster)
    cluster.do(other, SEND)
    for name in sorted(cluster.names, key=lambda name: name == master):
        cluster.node(name).set_full("the disk is full", cluster.now_ms)
    cluster.members[master].drain()
    cluster.settle()
    master, other = roles(cluster)
    outcome = cluster.answer(other, cluster.say(other, SEND))
    assert isinstance(outcome, ServiceUnavailable)
    assert outcome.message == "the disk is full"
    assert len(cluster.do(other, RECEIVE).messages) == 1
    for name in cluster.names:
        cluster.node(name).set_full(None, cluster.now_ms)
    cluster.do(other, SEND)


@pytest.mark.parametrize("volatile", [False, True])
def test_master_that_loses_all_links_at_once_answers_nobodys_ticket(volatile: bool) -> None:
    """Replies to other members never come out as replies to its own clients."""
    cluster = Cluster(volatile=volatile)
    cluster.introduce_all()
    master = cluster.elect()
    cluster.do(master, c.CreateQueue(queue_name="jobs"))
    other = next(name for name in cluster.names if name != master)
    cluster.drops = lambda sender, frame: sender == master
    cluster.say(other, SEND)
    cluster.say(other, RECEIVE)
    cluster.say(other, POLL)
    cluster.isolate(master)
    cluster.advance(5_000)
    assert not cluster.node(master).serving
    assert not [ticket for ticket in cluster.members[master].replies if isinstance(ticket, Remote)]


def test_member_that_installs_a_snapshot_answers_nobodys_ticket(cluster: Cluster) -> None:
    _, other = roles(cluster)
    node = cluster.node(other)
    node._post.hold(made_call(SEND), Remote("z", "boot", 1), cluster.now_ms)
    node.retire(cluster.now_ms)
    assert [type(reply.ticket) for reply in node.effects.replies] == []
    assert any(isinstance(decode(frame.data), Answer) for frame in node.effects.frames if frame.data[0] == FRAME_KIND)


def test_letters_of_another_cluster_or_for_somebody_else_are_nothing(cluster: Cluster) -> None:
    master, other = roles(cluster)
    own = cluster.node(master).replica.cluster
    for cluster_id, to in (("0" * 32, master), (own, other), ("", master)):
        letter = forward_of(made_call(SEND), cluster_id, other, to, "boot", 1)
        cluster.node(master).receive(encode(letter), cluster.now_ms)
        cluster.members[master].drain()
    cluster.settle()
    assert stored(cluster) == 0
