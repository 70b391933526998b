"""A fault in judging one command is an answer to its caller: state, log and other replies stay as they were.

Each line that a handler runs, and each mutation of each command, has its turn to fail: at a master in memory, at one
with a disk, in a cluster, and for a call that came by way of a follower.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import pytest

import elasticq.engine
from elasticq.engine import apply as writers
from elasticq.engine.actions import queues, receive, send
from elasticq.engine.apply import apply_all
from elasticq.engine.state import State
from elasticq.engine.stored import mutations as m
from elasticq.engine.views.digest import state_digest
from elasticq.engine.writers.contract import Undo
from elasticq.model import commands as c
from elasticq.model.commands import DeclareQueue, MessageAttributeValue, MessageSystemAttributeValue
from elasticq.model.errors import InternalFailure
from elasticq.model.extensions import AdvanceClock, DeleteAllQueues, Peek
from elasticq.model.results import Result
from elasticq.node import forwarder
from elasticq.node.node import Node
from elasticq.node.outputs import Failure
from elasticq.node.safe_execution import SafeExecutor
from tests.node.cluster import Cluster, Solo

ENGINE = str(Path(elasticq.engine.__file__).parent)
BOOKS = tuple(
    f"{ENGINE}/{name}" for name in ("apply.py", "writers/", "state.py", "invocations.py", "residency.py", "ordering/")
)
"""What keeps the state itself; all else of the engine is what handlers are made of."""

ARN = "arn:aws:sqs:us-east-1:000000000000:"
REDRIVE = {"RedrivePolicy": f'{{"deadLetterTargetArn":"{ARN}dead","maxReceiveCount":1}}'}


FIRST_USE = c.SendMessage("first-use", "x")
BURIAL = c.ReceiveMessage("letters", max_number_of_messages=2, message_system_attribute_names=["All"])


class Fault(Exception):
    """Planted."""


class Desk(Protocol):
    """Where commands come in, and the master's node."""

    @property
    def master(self) -> Node: ...

    def ask(self, command: c.Command, invocation: bytes = b"") -> list[Any]:
        """The outcomes that came at once."""

    def failures(self) -> list[Failure]:
        """Since the last time."""


class Alone:
    def __init__(self, **settings: object) -> None:
        self.solo = Solo(template=DeclareQueue(), **settings)  # type: ignore[arg-type]
        self.solo.member.may_fail = True

    @property
    def master(self) -> Node:
        return self.solo.node

    def ask(self, command: c.Command, invocation: bytes = b"") -> list[Any]:
        return self.solo.answers(self.solo.start_call(command, invocation))

    def failures(self) -> list[Failure]:
        found, self.solo.member.failures = self.solo.member.failures, []
        return found


class Together:
    def __init__(self, *, by_follower: bool) -> None:
        self.cluster = Cluster(template=DeclareQueue())
        self.cluster.introduce_all()
        self.master_name = self.cluster.elect()
        others = [name for name in self.cluster.names if name != self.master_name]
        self.name = others[0] if by_follower else self.master_name
        for member in self.cluster.members.values():
            member.may_fail = True

    @property
    def master(self) -> Node:
        return self.cluster.node(self.master_name)

    def ask(self, command: c.Command, invocation: bytes = b"") -> list[Any]:
        return self.cluster.answers(self.name, self.cluster.say(self.name, command, invocation))

    def failures(self) -> list[Failure]:
        found = [failure for member in self.cluster.members.values() for failure in member.failures]
        for member in self.cluster.members.values():
            member.failures = []
        return found


KINDS: dict[str, Callable[[], Desk]] = {
    "memory": Alone,
    "disk": lambda: Alone(volatile=False),
    "cluster": lambda: Together(by_follower=False),
    "follower": lambda: Together(by_follower=True),
}


@pytest.fixture(params=KINDS)
def desk(request: pytest.FixtureRequest) -> Desk:
    made = KINDS[request.param]()
    for name, attributes in {
        "dead": {},
        "q": {"ElasticqIdempotencyWindow": "60"},
        "letters": REDRIVE,
        "q.fifo": {"FifoQueue": "true"},
    }.items():
        done(made, c.CreateQueue(name, attributes))
    for url in ("q", "letters"):
        done(made, c.SendMessageBatch(url, [c.SendMessageBatchEntry(f"{at}", f"{at}") for at in range(4)]))
    done(made, c.ReceiveMessage("letters", max_number_of_messages=4, visibility_timeout=0))
    return made


def done(desk: Desk, command: c.Command) -> Any:
    (outcome,) = desk.ask(command)
    assert isinstance(outcome, Result), outcome
    return outcome


def commands(desk: Desk) -> Iterator[c.Command]:
    """One that succeeds of every kind; what they need is there when they are asked for."""
    header = {"AWSTraceHeader": MessageSystemAttributeValue("String", "t")}
    attributes = {"n": MessageAttributeValue("Number", "1.5"), "b": MessageAttributeValue("Binary", binary_value=b"x")}
    yield c.CreateQueue("new", {"Policy": '{"Statement":[]}', **REDRIVE}, {"a": "b"})
    yield c.GetQueueUrl("new")
    yield c.ListQueues("n", 1)
    yield c.SetQueueAttributes(
        "new", {"VisibilityTimeout": "1", "RedriveAllowPolicy": '{"redrivePermission":"denyAll"}'}
    )
    yield c.GetQueueAttributes("new", ["All"])
    yield c.TagQueue("new", {"c": "d"})
    yield c.UntagQueue("new", ["c"])
    yield c.ListQueueTags("new")
    yield c.AddPermission("new", "label", ["123456789012"], ["SendMessage"])
    yield c.RemovePermission("new", "label")
    yield c.SendMessage("q", "x", 1, attributes, header, "id", "group")
    yield c.SendMessageBatch("q", [c.SendMessageBatchEntry(x, x, None, attributes, header, x, "g") for x in "abc"])
    yield c.SendMessage("q.fifo", "x", message_group_id="g", message_deduplication_id="1")
    yield c.SendMessageBatch(
        "q.fifo",
        [c.SendMessageBatchEntry(x, x, message_group_id="g", message_deduplication_id=x) for x in "abc"],
    )
    yield FIRST_USE
    yield BURIAL
    yield c.ReceiveMessage("q.fifo", receive_request_attempt_id="again", max_number_of_messages=3)
    yield c.ReceiveMessage("q", receive_request_attempt_id="name/0/0/0", max_number_of_messages=1)
    yield c.ChangeMessageVisibility("q", "lease:name/0/0", 5)
    yield c.DeleteMessage("q", "lease:name/0/")
    got = done(desk, c.ReceiveMessage("q", max_number_of_messages=3, message_attribute_names=["All"]))
    handles = [message.receipt_handle for message in got.messages]
    yield c.ChangeMessageVisibility("q", handles[0], 7)
    yield c.ChangeMessageVisibilityBatch("q", [c.ChangeMessageVisibilityBatchEntry("a", handles[1], 7)])
    yield c.DeleteMessage("q", handles[0])
    yield c.DeleteMessageBatch("q", [c.DeleteMessageBatchEntry(f"{at}", each) for at, each in enumerate(handles[1:])])
    yield Peek("q")
    yield c.ListDeadLetterSourceQueues("dead")
    yield c.StartMessageMoveTask(f"{ARN}dead", f"{ARN}q", 1)
    yield c.ListMessageMoveTasks(f"{ARN}dead", 1)
    (running,) = done(desk, c.ListMessageMoveTasks(f"{ARN}dead")).results
    if running.task_handle is not None:
        yield c.CancelMessageMoveTask(running.task_handle)
    yield c.PurgeQueue("q")
    yield c.DeleteQueue("new")
    yield AdvanceClock(1_000)
    yield DeleteAllQueues()


def has_steps(command: c.Command) -> bool:
    """One of its own may have been taken before: a queue is made at its first use, dead letters are buried."""
    return command in (FIRST_USE, BURIAL)


class Lines:
    """Raises at the n-th line that handlers run while a command is judged."""

    def __init__(self, at: int) -> None:
        self.left = at
        self._judging = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if code is SafeExecutor.decide.__code__:
            self._judging += 1
            return self._safe_executor
        is_handler = code.co_filename.startswith(ENGINE) and not code.co_filename.startswith(BOOKS)
        return self._line if self._judging and is_handler else None

    def _safe_executor(self, frame: FrameType, event: str, argument: object) -> Any:
        self._judging -= event == "return"
        return self._safe_executor

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise Fault
        return self._line


@contextmanager
def failing_at_line(at: int) -> Iterator[Lines]:
    lines, before = Lines(at), sys.gettrace()
    sys.settrace(lines)
    try:
        yield lines
    finally:
        sys.settrace(before)


@contextmanager
def failing_in(owner: Any, name: str, *, times: int) -> Iterator[None]:
    """A helper of handlers fails so often."""
    whole, left = getattr(owner, name), [times]

    def helper(*arguments: Any, **named: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise Fault
        return whole(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, helper)
        yield


def books(node: Node) -> tuple[object, ...]:
    """All that a command may change."""
    journal = node.journal
    now_ms = journal.context.now_ms
    return (
        state_digest(node.state, now_ms),
        [(queue.order.counts(now_ms), sorted(queue.contents)) for _, queue in sorted(node.state.queues.items())],
        node.state.contents_bytes,
        node.replica.log.last_index,
        len(journal._open),
        len(journal._open_payloads),
        journal._open_bytes,
        len(journal._open_undo),
        bool(node._replies),
        node._executor.waiters.count,
    )


def refused(desk: Desk, command: c.Command, outcomes: list[Any]) -> None:
    """Exactly this: one InternalFailure, and its cause told once."""
    (outcome,) = outcomes
    assert type(outcome) is InternalFailure
    assert outcome.__cause__ is outcome.__context__ is None, "an answer does not keep the request's frames"
    (failure,) = desk.failures()
    assert failure.action == type(command).__name__
    assert isinstance(failure.cause, Fault)


@pytest.mark.pure
def test_any_line_of_any_handler_may_fail(desk: Desk) -> None:
    for number, command in enumerate(commands(desk)):
        invocation = number.to_bytes(16, "big")
        before, at = books(desk.master), 0
        while True:
            at += 1
            with failing_at_line(at) as lines:
                outcomes = desk.ask(command, invocation)
            if lines.left > 0:
                break
            refused(desk, command, outcomes)
            after = books(desk.master)
            assert after == before or has_steps(command)
            before = after
        (outcome,) = outcomes
        assert isinstance(outcome, Result), (command, outcome)
        assert at > 5, "it was a handler that ran"
    assert desk.failures() == []


@pytest.mark.pure
@pytest.mark.parametrize("kept", [0, 1, 2])
def test_what_was_applied_of_a_command_is_taken_back(desk: Desk, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``kept``: so many of its mutations are written before one fails."""

    def failing(state: State, mutations: list[m.Mutation], undo: Undo) -> None:
        apply_all(state, mutations[:kept], undo)
        if len(mutations) > kept:
            raise Fault

    taken_back = 0
    for number, command in enumerate(commands(desk)):
        before = books(desk.master)
        with monkeypatch.context() as patch:
            patch.setattr("elasticq.node.safe_execution.apply_all", failing)
            outcomes = desk.ask(command, number.to_bytes(16, "big"))
        if type(outcomes[0]) is InternalFailure:
            taken_back += 1
            refused(desk, command, outcomes)
            assert books(desk.master) == before or has_steps(command)
            outcomes = desk.ask(command, number.to_bytes(16, "big"))
        (outcome,) = outcomes
        assert isinstance(outcome, Result), (command, outcome)
    assert taken_back > 2


@pytest.mark.pure
def test_a_waiting_receive_that_fails_is_answered_alone() -> None:
    solo = Solo()
    solo.member.may_fail = True
    solo.create("q")
    first, second = (solo.start_call(c.ReceiveMessage("q", wait_time_seconds=20)) for _ in range(2))
    with failing_in(receive, "deliver", times=1):
        sent = solo.start_call(c.SendMessage("q", "x"))
    assert isinstance(solo.answers(sent)[0], Result)
    assert type(solo.answers(first)[0]) is InternalFailure
    (message,) = solo.answers(second)[0].messages  # type: ignore[union-attr]
    assert message.body == "x"
    assert solo.node._executor.waiters.count == 0
    assert [failure.action for failure in solo.member.failures] == ["ReceiveMessage"]


@pytest.mark.pure
def test_a_failed_call_leaves_the_open_entry_to_the_others() -> None:
    """Those that share it, before and after."""
    solo = Solo(volatile=False)
    solo.member.may_fail = True
    solo.create("q")
    solo.synced_at_once = False
    tickets = [solo.start_call(c.SendMessage("q", "0")), solo.start_call(c.SendMessage("q", "1"))]
    with failing_in(send._Sender, "stored", times=1):
        failed = solo.start_call(c.SendMessage("q", "2"))
    tickets.append(solo.start_call(c.SendMessage("q", "3")))
    solo.synced_at_once = True
    solo.sync()
    solo._settle()
    assert all(isinstance(solo.answers(ticket)[0], Result) for ticket in tickets)
    assert type(solo.answers(failed)[0]) is InternalFailure
    assert [message.body for message in solo.do(c.ReceiveMessage("q", max_number_of_messages=10)).messages] == list(
        "013"
    )  # type: ignore[attr-defined]


def test_a_stale_read_that_fails_is_answered() -> None:
    desk = Together(by_follower=True)
    done(desk, c.CreateQueue("q"))
    desk.cluster.isolate(desk.name)
    ticket = desk.cluster.submit(desk.name, c.ListQueues())
    with failing_in(queues, "page", times=9):
        desk.cluster.advance(10_000)
    (outcome,) = desk.cluster.answers(desk.name, ticket)
    assert type(outcome) is InternalFailure


def test_a_call_that_cannot_be_written_fails_where_it_came_in(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Together(by_follower=True)
    done(desk, c.CreateQueue("q"))
    command = c.SendMessage("q", "x", delay_seconds=2**64)  # which wire never gives
    (outcome,) = desk.ask(command)
    assert type(outcome) is InternalFailure
    (failure,) = desk.failures()
    assert (failure.action, type(failure.cause)) == ("SendMessage", OverflowError)
    done(desk, c.SendMessage("q", "others go on"))


@pytest.mark.pure
def test_an_answer_that_cannot_be_written_is_a_failure_and_its_messages_come_back() -> None:
    desk = Together(by_follower=True)
    done(desk, c.CreateQueue("q"))
    done(desk, c.SendMessage("q", "x" * 500))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forwarder, "FRAME_BYTES_MAX", 600)
        (outcome,) = desk.ask(c.ReceiveMessage("q"))
    assert type(outcome) is InternalFailure
    (failure,) = desk.failures()
    assert failure.action == "ReceiveMessageResult"
    (message,) = done(desk, c.ReceiveMessage("q", message_system_attribute_names=["All"])).messages
    assert message.attributes["ApproximateReceiveCount"] == "1", "as if nobody had received it"


def test_what_others_committed_must_be_applied() -> None:
    """There is nobody to answer for it: the member is broken, and ends."""
    desk = Together(by_follower=False)

    def failing(*arguments: object) -> None:
        raise Fault

    follower = next(name for name in desk.cluster.names if name != desk.master_name)
    desk.cluster.isolate(follower)
    done(desk, c.CreateQueue("q"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(writers._WRITERS, m.QueueCreated, failing)
        desk.cluster.cut.clear()
        with pytest.raises(Fault):
            desk.cluster.advance(1_000)
