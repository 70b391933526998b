"""What a command can grow to, passed on, in the log, as an answer: it fits a frame, or is an error of its caller."""

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from elasticq.engine.policies.queue_policies import ATTRIBUTE as POLICY
from elasticq.engine.stored import mutations as m
from elasticq.engine.stored.contents import stored_bytes
from elasticq.engine.stored.redrive_policies import ALLOW_POLICY
from elasticq.engine.stored.redrive_policies import POLICY as REDRIVE_POLICY
from elasticq.model import commands as c
from elasticq.model import errors, limits
from elasticq.model import results as r
from elasticq.model.commands import MessageAttributeValue, MessageSystemAttributeValue
from elasticq.model.extensions import Peek
from elasticq.model.limits import ENTRY_BYTES_MAX, FRAME_BYTES_MAX, MEMBERS, RELAXED, STRICT
from elasticq.model.names import DEFAULT_ACCOUNT, queue_url
from elasticq.node.forwarding import answer_of, encode, forward_of
from elasticq.replication import messages
from elasticq.replication.records import Entry, Voter
from elasticq.storage.log.records import encode_batch
from elasticq.wire.operations import OPERATIONS
from tests.node.cluster import Cluster, Solo

WIDE = "\U0001f600"  # four bytes a character
HOST = "http://" + "h" * limits.HOST_CHARS_MAX + "/" + "p" * 256
SENDER = "A" * 192  # of an access key id, see http/admission/caller.py
SENDS = ("SendMessage", "SendMessageBatch")


def largest(kind: Any, bound: msgspec.Meta | None = None, at: int = 0) -> Any:
    """The value of a member that has most bytes; ``at``: so that the keys of a map differ."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return largest(next(arm for arm in arguments if arm is not type(None)))
    if origin is Annotated:
        return largest(arguments[0], arguments[1], at)
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind(**{field.name: largest(field.type) for field in msgspec.structs.fields(kind)})
    assert bound is not None
    if kind is int:
        return bound.ge
    count = bound.max_length
    assert count is not None
    if origin is list:
        return [largest(arguments[0])] * count
    if origin is dict:
        return {largest(arguments[0], at=each): largest(arguments[1]) for each in range(count)}
    assert kind is str
    return str(at) + WIDE * (count - len(str(at)))


def call_of(command: c.Command) -> c.Call:
    origin = c.Origin("2001:0db8:85a3:0000:0000:8a2e:0370:7334", True)
    return c.Call(command, SENDER, DEFAULT_ACCOUNT, HOST, b"i" * 16, origin, "t" * limits.TRACE_HEADER_BYTES_MAX)


def forwarded_bytes(command: c.Command) -> int:
    forwarded = forward_of(call_of(command), "c" * 64, "n" * 80, "n" * 80, "b" * 64, 2**63 - 1, is_relayed=True)
    return len(encode(forwarded))


def answer_bytes(outcome: r.Result | errors.SqsError) -> int:
    return len(encode(answer_of(outcome, ("n" * 80, "b" * 64, 2**63 - 1), "c" * 64, "n" * 80)))


@pytest.mark.parametrize("action", [name for name in OPERATIONS if name not in SENDS] + ["Peek"])
def test_a_call_with_all_members_at_their_bounds_fits_a_frame(action: str) -> None:
    command = largest(Peek if action == "Peek" else OPERATIONS[action].command)
    assert forwarded_bytes(command) <= FRAME_BYTES_MAX


def attributes(count: int) -> dict[str, MessageAttributeValue]:
    return {f"a{at:02}": MessageAttributeValue("String", "x") for at in range(count)}


def largest_entries(allowed: limits.Limits) -> list[c.SendMessageBatchEntry]:
    """As many as a batch may have, with as much around their bodies as is legal, and bodies up to the bound."""
    each = c.SendMessageBatchEntry(
        id="",
        message_body="x",
        delay_seconds=0,
        message_attributes=attributes(allowed.attributes),
        message_system_attributes={
            "AWSTraceHeader": MessageSystemAttributeValue("String", "é" * (limits.TRACE_HEADER_BYTES_MAX // 2))
        },
    )
    made = [
        replace(
            each,
            id=f"{at:080}",
            message_deduplication_id=f"{at:0128}",
            message_group_id=f"{at:0128}",
        )
        for at in range(limits.PAGE_SIZE_MAX)
    ]
    around_bytes = sum(1 + sum(len(name) + 7 for name in entry.message_attributes or ()) for entry in made)
    rest_bytes = allowed.body_bytes - around_bytes
    made[0].message_body = "b" * (1 + rest_bytes)
    return made


class Watched(Cluster):
    """Notes the longest frame of each pair, and the longest entry."""

    def __init__(self, **settings: object) -> None:
        self.longest_frame_bytes = 0
        super().__init__(**settings)  # type: ignore[arg-type]
        self.drops = self._watch
        self.introduce_all()
        self.elect()

    def _watch(self, sender: str, frame: Any) -> bool:
        self.longest_frame_bytes = max(self.longest_frame_bytes, len(frame.data))
        return False

    @property
    def follower(self) -> str:
        return next(name for name in self.names if name not in self.serving())

    @property
    def longest_entry_bytes(self) -> int:
        log = self.node(self.elect()).replica.log
        return max(len(log.entry(index).payload) for index in range(log.first_index, log.last_index + 1))


@pytest.mark.parametrize("is_fifo", [False, True])
@pytest.mark.parametrize("allowed", [STRICT, RELAXED], ids=["strict", "relaxed"])
def test_the_largest_legal_messages_go_through_a_follower(allowed: limits.Limits, *, is_fifo: bool) -> None:
    """A batch, a page of it, a look at it: calls, entries and answers are as long as they can be."""
    cluster = Watched(limits=allowed, volatile=True)
    name = "q.fifo" if is_fifo else "q"
    typed = {"FifoQueue": "true"} if is_fifo else {"ElasticqIdempotencyWindow": "60"}
    cluster.do(cluster.follower, c.CreateQueue(name, {"DelaySeconds": "0", **typed}))
    entries = largest_entries(allowed)
    sent = cluster.do(cluster.follower, c.SendMessageBatch(name, entries, limits.PAGE_SIZE_MAX), b"i" * 16)
    assert isinstance(sent, r.SendMessageBatchResult)
    assert (len(sent.successful), sent.failed) == (limits.PAGE_SIZE_MAX, [])
    looked = cluster.do(cluster.follower, Peek(name, limit=limits.PAGE_SIZE_MAX))
    assert isinstance(looked, r.PeekResult)
    received = 0
    while received < limits.PAGE_SIZE_MAX:
        page = c.ReceiveMessage(
            name,
            message_system_attribute_names=["All"],
            message_attribute_names=["All"],
            elasticq_page_size=limits.PAGE_SIZE_MAX,
        )
        got = cluster.do(cluster.follower, page)
        assert isinstance(got, r.ReceiveMessageResult)
        assert got.messages
        received += len(got.messages)
    assert cluster.longest_entry_bytes <= ENTRY_BYTES_MAX
    assert allowed.body_bytes < cluster.longest_frame_bytes <= FRAME_BYTES_MAX
    assert forwarded_bytes(c.SendMessageBatch(name, entries, limits.PAGE_SIZE_MAX)) <= FRAME_BYTES_MAX


def test_what_is_said_of_a_stored_message_covers_it_in_an_entry_and_in_an_answer() -> None:
    solo = Solo(limits=RELAXED)
    solo.create("q", ElasticqIdempotencyWindow="60")
    solo.do(c.SendMessageBatch("q", largest_entries(RELAXED)[1:2]))
    (content,) = solo.node.state.queue(DEFAULT_ACCOUNT, "q").contents.values()
    arn = f"arn:aws:sqs:us-east-1:{DEFAULT_ACCOUNT}:{'q' * 80}"
    worst = replace(
        content,
        sender_id=SENDER,
        visible_at_ms=2**50,
        origin=(2**62, 2**62),
        dead_letter=m.DeadLetter(arn, 2**31),
        deduplication_id="d" * 128,
    )
    taken = m.InvocationRecorded(b"i" * 16, 2**50, 2**62, 2**62)
    assert len(m.encode([worst, m.MessagesRemoved(2**62, [2**62]), taken])) <= stored_bytes(worst)
    (got,) = solo.do(
        c.ReceiveMessage("q", message_system_attribute_names=["All"], message_attribute_names=["All"])
    ).messages  # type: ignore[attr-defined]
    assert len(msgspec.msgpack.encode(got)) <= stored_bytes(content)


def results() -> Iterator[tuple[str, r.Result | errors.SqsError]]:
    """The longest answers of the actions that answer no messages."""
    url = queue_url(HOST, DEFAULT_ACCOUNT, "q" * 80)
    token = largest(c.NextToken)
    yield "ListQueues", r.ListQueuesResult([url] * limits.LIST_RESULTS_MAX, token)
    yield "ListDeadLetterSourceQueues", r.DeadLetterSourcesResult([url] * limits.LIST_RESULTS_MAX, token)
    yield "GetQueueAttributes", r.QueueAttributesResult(largest(c.Attributes))
    yield "ListQueueTags", r.QueueTagsResult(largest(c.Tags))
    handle = largest(c.ReceiptHandle)
    failed = r.BatchError(largest(c.EntryId), "ReceiptHandleIsInvalid", f'The input receipt handle "{handle}" is not.')
    yield "DeleteMessageBatch", r.BatchResult([], [failed] * limits.PAGE_SIZE_MAX)
    yield "SendMessageBatch", r.SendMessageBatchResult([], [failed] * limits.PAGE_SIZE_MAX)
    task = r.MoveTask(*[WIDE * limits.MEMBERS["TaskHandle"].max_length] * 4)  # type: ignore[operator]
    yield "ListMessageMoveTasks", r.MoveTasksResult([task] * limits.MOVE_TASKS_LISTED_MAX)
    yield "error", errors.InvalidParameterValue(f"Value {largest(c.Attributes)} is invalid.")


@pytest.mark.parametrize(("action", "outcome"), [pytest.param(*each, id=each[0]) for each in results()])
def test_the_longest_answers_fit_a_frame(action: str, outcome: r.Result | errors.SqsError) -> None:
    assert answer_bytes(outcome) <= FRAME_BYTES_MAX


def test_a_queue_with_everything_at_its_bound_fits_an_entry() -> None:
    created = m.QueueCreated(2**62, DEFAULT_ACCOUNT, "q" * 80, largest(c.Attributes), largest(c.Tags), 2**50)
    assert len(m.encode([created])) <= ENTRY_BYTES_MAX


def test_the_longest_entry_fits_a_frame_and_a_record() -> None:
    """With a change of the voters, whose names and addresses are as long as they can be."""
    voters = tuple(Voter("n" * 80, "h" * limits.HOST_CHARS_MAX) for _ in range(100))
    entry = Entry(2**62, 2**62, 2**50, bytes(ENTRY_BYTES_MAX), voters, True)
    assert len(encode_batch([entry])) <= FRAME_BYTES_MAX
    head = {"cluster": "c" * 64, "group": 0, "sender": "n" * 80, "to": "n" * 80, "term": 2**62}
    place = {"prev_index": 2**62, "prev_term": 2**62, "commit_index": 2**62, "round": 2**62, "time_ms": 2**50}
    assert len(messages.encode(messages.Append(**head, **place, entries=[entry]))) <= FRAME_BYTES_MAX  # type: ignore[arg-type]


# --- what does not fit -----------------------------------------------------------------


def test_redrive_policies_have_a_length() -> None:
    solo = Solo()
    solo.create("dead")
    arn = f"arn:aws:sqs:us-east-1:{DEFAULT_ACCOUNT}:dead"
    texts = {
        REDRIVE_POLICY: f'{{"deadLetterTargetArn":"{arn}","maxReceiveCount":3%s}}',
        ALLOW_POLICY: '{"redrivePermission":"allowAll"%s}',
    }
    for name, text in texts.items():
        fits = text % (" " * (limits.REDRIVE_POLICY_BYTES_MAX - len(text % "")))
        solo.do(c.CreateQueue(f"fits-{name}", {name: fits}))
        with pytest.raises(errors.InvalidParameterValue, match=f"for parameter {name} is invalid"):
            solo.do(c.CreateQueue(f"beyond-{name}", {name: fits.replace(" ", "  ", 1)}))
    with pytest.raises(errors.OverLimit):
        solo.do(c.CreateQueue("beyond", {POLICY: '{"Statement":[]}' + " " * limits.POLICY_BYTES_MAX}))


def test_a_trace_header_has_a_length_in_bytes() -> None:
    solo = Solo()
    solo.create("q")
    for text, is_legal in (("é" * 512, True), ("é" * 513, False)):
        header = {"AWSTraceHeader": MessageSystemAttributeValue("String", text)}
        ticket = solo.start_call(c.SendMessage("q", "x", message_system_attributes=header))
        (outcome,) = solo.answers(ticket)
        assert isinstance(outcome, r.Result if is_legal else errors.InvalidParameterValue)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (c.SendMessage("q", "x" * limits.FRAME_BYTES_MAX), errors.InvalidParameterValue),
        (c.SendMessageBatch("q", [c.SendMessageBatchEntry("a", "x" * FRAME_BYTES_MAX)]), errors.BatchRequestTooLong),
        (c.ListQueues("x" * FRAME_BYTES_MAX), errors.RequestTooLarge),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Struct) else each.__name__,
)
def test_a_call_that_no_frame_holds_is_refused_where_it_came_in(command: c.Command, error: type) -> None:
    cluster = Watched()
    cluster.do(cluster.follower, c.CreateQueue("q"))
    cluster.longest_frame_bytes = 0
    with pytest.raises(error):
        cluster.do(cluster.follower, command)
    assert cluster.longest_frame_bytes < 1_000
    assert cluster.node(cluster.follower)._forwarder._pending_calls.sent == {}
    cluster.do(cluster.follower, c.SendMessage("q", "others go on"))


@pytest.mark.pure
def test_a_command_beyond_an_entry_is_refused_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    solo = Solo(volatile=False)
    solo.create("q")
    monkeypatch.setattr("elasticq.node.safe_execution.ENTRY_BYTES_MAX", 10_000)
    last_index = solo.node.replica.log.last_index
    with pytest.raises(errors.RequestTooLarge):
        solo.do(c.SendMessage("q", "x" * 10_000))
    assert solo.node.replica.log.last_index == last_index
    assert solo.node.state.queue(DEFAULT_ACCOUNT, "q").count == 0
    solo.do(c.SendMessage("q", "x" * 9_000))


@pytest.mark.pure
def test_commands_share_an_entry_as_long_as_it_fits_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies still rest on the entry in which their own part stands."""
    monkeypatch.setattr("elasticq.node.journal.ENTRY_BYTES_MAX", 10_000)
    solo = Solo(volatile=False)
    solo.create("q")
    solo.synced_at_once = False
    first_index = solo.node.replica.log.last_index
    tickets = [solo.start_call(c.SendMessage("q", f"{at}" * 3_000)) for at in range(9)]
    solo.synced_at_once = True
    solo.sync()
    solo._settle()
    entries = solo.entries[first_index:]
    assert max(len(entry.payload) for entry in entries) <= 10_000
    assert [len(m.decode(entry.payload)) for entry in entries] == [1, 3, 3, 2]
    indexes = [solo.member.reply_indexes[ticket] for ticket in tickets]
    assert indexes == [first_index + at for at in (1, 2, 2, 2, 3, 3, 3, 4, 4)]


@pytest.mark.parametrize("is_fifo", [False, True])
def test_dead_letters_go_in_as_many_entries_as_they_need(*, is_fifo: bool) -> None:
    solo = Solo()
    suffix, typed = (".fifo", {"FifoQueue": "true"}) if is_fifo else ("", {})
    solo.create(f"dead{suffix}", **typed)
    arn = f"arn:aws:sqs:us-east-1:{DEFAULT_ACCOUNT}:dead{suffix}"
    policy = f'{{"deadLetterTargetArn":"{arn}","maxReceiveCount":1}}'
    solo.create(f"q{suffix}", **typed)
    for at in range(14):
        ids = {"message_group_id": f"g{at}", "message_deduplication_id": f"{at}"} if is_fifo else {}
        solo.do(c.SendMessage(f"q{suffix}", f"{at:x}" * limits.BODY_BYTES_MAX, **ids))
    receive = c.ReceiveMessage(f"q{suffix}", max_number_of_messages=10, visibility_timeout=1, wait_time_seconds=0)
    for _ in range(3):
        solo.do(receive)
    solo.advance(2_000)
    solo.do(c.SetQueueAttributes(f"q{suffix}", {REDRIVE_POLICY: policy}))
    assert solo.do(receive).messages == []  # type: ignore[attr-defined]
    assert max(len(entry.payload) for entry in solo.entries) <= ENTRY_BYTES_MAX
    assert solo.node.state.queue(DEFAULT_ACCOUNT, f"dead{suffix}").count == 14
    assert solo.node.state.queue(DEFAULT_ACCOUNT, f"q{suffix}").count == 0


def test_a_move_task_counts_attributes_towards_its_step() -> None:
    solo = Solo(volatile=False)
    solo.create("dead")
    arn = f"arn:aws:sqs:us-east-1:{DEFAULT_ACCOUNT}:dead"
    solo.create("q", RedrivePolicy=f'{{"deadLetterTargetArn":"{arn}","maxReceiveCount":1}}')
    big = {"a": MessageAttributeValue("Binary", binary_value=bytes(1_000_000))}
    for _ in range(12):
        solo.do(c.SendMessage("dead", "x", message_attributes=big))
    solo.create("free")
    solo.do(c.StartMessageMoveTask(arn, arn.replace(":dead", ":free")))
    solo.advance(5_000)
    assert solo.node.state.queue(DEFAULT_ACCOUNT, "free").count == 12
    assert max(len(entry.payload) for entry in solo.entries) < 3 * 1_048_576


@pytest.mark.parametrize(
    "counts", [[], [0], [3], [1, 14], [1, 15], [16, 1], [40, 0, 2], [65_534, 1], [65_535, 1], [65_536, 65_536]]
)
def test_entries_joined_are_as_if_encoded_together(counts: list[int]) -> None:
    parts: list[list[m.Mutation]] = [[m.QueueReclaimed(at) for at in range(count)] for count in counts]
    assert m.join([m.encode(part) for part in parts]) == m.encode([mutation for part in parts for mutation in part])


def test_the_table_is_rounded_up_from_what_is_legal() -> None:
    assert MEMBERS["MessageGroupId"].max_length >= 128  # AWS's bound, as those below
    assert MEMBERS["Id"].max_length >= 80
    assert MEMBERS["QueueName"].max_length >= 80
    assert MEMBERS["Tags.key"].max_length >= limits.TAG_KEY_CHARS_MAX
    assert MEMBERS["Tags.value"].max_length >= limits.TAG_VALUE_CHARS_MAX
    assert MEMBERS["Tags"].max_length >= limits.TAGS_MAX
    assert MEMBERS["Entries"].max_length >= max(limits.BATCH_ENTRIES_MAX, RELAXED.batch_entries)
    assert MEMBERS["MessageBody"].max_length >= RELAXED.body_bytes
    assert MEMBERS["QueueUrl"].max_length >= len(queue_url(HOST, DEFAULT_ACCOUNT, "q" * 80))
