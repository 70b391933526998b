"""The mutations: versioned, absolute changes of rows, keyed by (queue id, sequence).

A mutation contains no increments and no relative times; the master made every choice. A new version of a mutation is a
new class with a new tag. A member that reads an unknown tag stops (``UnknownMutation``) instead of skipping it. A
mutation changes at most MUTATION_ROWS_MAX rows. Its docstring describes the row, or the change, that it stores.
"""

from itertools import accumulate
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from elasticq.engine.stored.comparisons import RowsCompared
from elasticq.engine.stored.consumer_group_rows import GROUP_TABLES, GroupMutation
from elasticq.engine.stored.metadata_rows import METADATA, MetadataMutation
from elasticq.engine.stored.tables import Table
from elasticq.model.commands import MessageAttributes
from elasticq.model.limits import MUTATION_ROWS_MAX
from elasticq.model.ranges import Count, Digest, Number, Priority, RowTimeMs, Term, VirtualTime


class UnknownMutation(Exception):
    """The error for an entry with a mutation that this version cannot apply. The member must stop."""


class ClusterFounded(Struct, array_like=True, tag=1, gc=False):
    """The first mutation of a cluster's first entry."""

    cluster_id: str
    mac_key: bytes
    feature_level: Count


class TookOver(Struct, array_like=True, tag=2, gc=False):
    """The start of a master's term. In-flight deadlines in [grace_from_ms, grace_until_ms) count as grace_until_ms."""

    term: Term
    member_id: str
    grace_from_ms: RowTimeMs
    grace_until_ms: RowTimeMs


class QueueCreated(Struct, array_like=True, tag=3, gc=False):
    """A new queue, with the checked ``attributes`` and ``tags`` of the request."""

    queue_id: Number
    account: str
    name: str
    attributes: dict[str, str]
    tags: dict[str, str]
    created_ms: RowTimeMs


class QueueAttributesSet(Struct, array_like=True, tag=4, gc=False):
    """All attributes of a queue, not only those that changed."""

    queue_id: Number
    attributes: dict[str, str]
    modified_ms: RowTimeMs


class QueueDeleted(Struct, array_like=True, tag=5, gc=False):
    """The deletion of a queue. Its name is free at once. Bounded steps delete its rows, then QueueReclaimed follows."""

    queue_id: Number
    deleted_ms: RowTimeMs


class QueueReclaimed(Struct, array_like=True, tag=6, gc=False):
    """The deletion of the last row of a deleted queue."""

    queue_id: Number


class QueuePurged(Struct, array_like=True, tag=7, gc=False):
    """The purge of a queue. Messages below ``watermark`` disappear at once and are deleted in bounded steps."""

    queue_id: Number
    watermark: Number
    purged_ms: RowTimeMs


class DeadLetter(Struct, array_like=True, frozen=True, gc=False):
    """The source of a dead letter: the ARN of the queue that it left, and its total receives before the
    current queue.
    """

    source_arn: str
    receive_count: Count


class MessageStored(Struct, array_like=True, tag=8, gc=False):
    """A message that enters a queue. Its content never changes afterwards.

    visible_at_ms: the end of its delay, or 0; origin: the (queue id, sequence) that its MessageId is made from.
    """

    queue_id: Number
    sequence: Number
    body: str
    sent_ms: RowTimeMs
    sender_id: str
    visible_at_ms: RowTimeMs = 0
    attributes: MessageAttributes | None = None
    trace_header: str | None = None
    group_id: str | None = None
    origin: tuple[Number, Number] | None = None
    dead_letter: DeadLetter | None = None
    deduplication_id: str | None = None


class MessagesReceived(Struct, array_like=True, tag=9, gc=False):
    """A receive at ``received_ms``. The messages are invisible until ``until_ms``. The lists have one item for each
    message.
    """

    queue_id: Number
    received_ms: RowTimeMs
    until_ms: RowTimeMs
    sequences: list[Number]
    delivery_numbers: list[Number]
    receive_counts: list[Count]
    first_received_ms: list[RowTimeMs]


class VisibilityChanged(Struct, array_like=True, tag=10, gc=False):
    """New deadlines of messages in flight."""

    queue_id: Number
    sequences: list[Number]
    until_ms: list[RowTimeMs]


class MessagesRemoved(Struct, array_like=True, tag=11, gc=False):
    """The removal of messages that a client deleted, that expired, or whose queue was deleted."""

    queue_id: Number
    sequences: list[Number]


class ReceiveReturned(Struct, array_like=True, tag=12, gc=False):
    """The undoing of deliveries that reached no client. They keep their numbers, but receive counts are restored."""

    queue_id: Number
    sequences: list[Number]
    delivery_numbers: list[Number]
    receive_counts: list[Count]
    first_received_ms: list[RowTimeMs]
    visible_at_ms: RowTimeMs
    invocation: bytes


class InvocationRecorded(Struct, array_like=True, tag=13, gc=False):
    """The record of one executed SDK call, so a retry gets the same answer. It also records a used deduplication id.

    queue_id, sequence: of the one message that the call sent; otherwise both are 0, and ``detail`` holds the outcome.
    """

    invocation: Digest
    recorded_ms: RowTimeMs
    queue_id: Number
    sequence: Number
    detail: bytes = b""


class RangeRemoved(Struct, array_like=True, tag=14, gc=False):
    """The removal of all messages of the queue from ``first`` to ``last``, which expired. At most MUTATION_ROWS_MAX."""

    queue_id: Number
    first: Number
    last: Number


class ClusterRenamed(Struct, array_like=True, tag=15, gc=False):
    """A new id for a member that became a separate cluster, so the two never mix. The MAC key stays the same."""

    cluster_id: str


class AttemptRecorded(Struct, array_like=True, tag=40, gc=False):
    """The messages that a ReceiveRequestAttemptId of a FIFO queue identifies. It replaces an earlier record.

    attempt: a digest of the id and the queue; detail: the messages, or nothing if they were returned.
    """

    attempt: Digest
    recorded_ms: RowTimeMs
    detail: bytes


class GroupsServed(Struct, array_like=True, tag=41, gc=False):
    """The result of ``Order.served`` by group name. It is only in dumps, never in a log, because rows do
    not store it.
    """

    queue_id: Number
    names: list[str]
    numbers: list[RowTimeMs]


class GroupsRestored(Struct, array_like=True, tag=42, gc=False):
    """The groups of the messages of one page on disk that are not deleted. It follows its UntouchedRestored.

    It is made from rows, and never in a log.

    groups: for each of ``sequences``, the index of its group in ``names``.
    """

    queue_id: Number
    names: list[str]
    sequences: list[Number]
    groups: list[int]


class PrioritiesSet(Struct, array_like=True, tag=100, gc=False):
    """New priorities of messages of a priority queue, in any delivery state."""

    queue_id: Number
    sequences: list[Number]
    priorities: list[Priority]


class PrioritiesRestored(Struct, array_like=True, tag=101, gc=False):
    """The priorities of the messages of one page on disk that are not deleted. It follows its UntouchedRestored.
    It is made from rows, and never in a log."""

    queue_id: Number
    sequences: list[Number]
    priorities: list[Priority]


class TurnsSet(Struct, array_like=True, tag=120, frozen=True, gc=False):
    """The stored turns (ordering/shares.py) of groups of a fair-share queue, one item for each of ``paths``.

    starts, clocks: virtual times, big-endian; weights: of the present turns, 0 without work, -1 to delete the turn.
    """

    queue_id: Number
    paths: list[str]
    starts: list[VirtualTime]
    weights: list[Count]
    clocks: list[VirtualTime]


class SentIdTaken(Struct, array_like=True, tag=80, gc=False):
    """A deduplication id of a standard queue, used for this message until ``until_ms``. key: digest of queue and id."""

    key: Digest
    taken_ms: RowTimeMs
    until_ms: RowTimeMs
    queue_id: Number
    sequence: Number


class QueueTagged(Struct, array_like=True, tag=60, gc=False):
    """All tags of a queue, not only those that changed."""

    queue_id: Number
    tags: dict[str, str]


class MoveTaskSet(Struct, array_like=True, tag=61, frozen=True, gc=False):
    """The full row of a message move task.

    number: made in the same way as a queue id; cursor: messages of the source up to this sequence are done; last: the
    last sequence to move; rate: messages a second, 0: as fast as possible.
    """

    number: Number
    task_id: str
    account: str
    source_queue_id: Number
    source_arn: str
    destination_arn: str
    rate: Count
    status: str
    started_ms: RowTimeMs
    moved: Count
    to_move: Count
    cursor: Number
    last: Number
    failure_reason: str = ""


RUNNING, COMPLETED, CANCELLING, CANCELLED, FAILED = "RUNNING", "COMPLETED", "CANCELLING", "CANCELLED", "FAILED"
MOVING = (RUNNING, CANCELLING)


class MoveTaskForgotten(Struct, array_like=True, tag=62, gc=False):
    """The deletion of an old task that has ended."""

    number: Number


class ClockAdvanced(Struct, array_like=True, tag=90, gc=False):
    """The sum of all advances of the clock: how far cluster time is ahead of real time. It never decreases."""

    ahead_ms: RowTimeMs


LEASE_OPEN, LEASE_SEALED = "open", "sealed"
LEASE_COMMITTED, LEASE_GIVEN_BACK, LEASE_EXPIRED = "committed", "given_back", "expired"


class LeaseCalled(Struct, array_like=True, tag=70, frozen=True, gc=False):
    """The answer of the receive number ``call`` of a lease, which never changes. The first call opens the lease.

    A call without messages seals the lease, so it gets no more messages.
    """

    queue_id: Number
    name: str
    batch: Count
    partition: Count
    call: Count
    opened_ms: RowTimeMs
    deadline_ms: RowTimeMs
    sequences: list[Number]
    delivery_numbers: list[Number]


class LeaseSet(Struct, array_like=True, tag=71, frozen=True, gc=False):
    """The row of a lease without its calls, which are deleted when it ends.

    ended_ms: 0 while the lease lives; messages: how many messages its calls got.
    """

    queue_id: Number
    name: str
    batch: Count
    partition: Count
    opened_ms: RowTimeMs
    deadline_ms: RowTimeMs
    state: str
    ended_ms: RowTimeMs
    messages: Count


class LeaseForgotten(Struct, array_like=True, tag=72, frozen=True, gc=False):
    """The deletion of a lease that ended long ago."""

    queue_id: Number
    name: str
    batch: Count
    partition: Count


class TopicSet(Struct, array_like=True, tag=110, frozen=True, gc=False):
    """The full row of a topic.

    account: its owner (model/names.py); attributes: those that were set, as clients read them; deleted: the number of
    its deleted subscriptions.
    """

    number: Number
    account: str
    name: str
    attributes: dict[str, str]
    tags: dict[str, str]
    created_ms: RowTimeMs
    data_protection_policy: str = ""
    deleted: Count = 0


class TopicDeleted(Struct, array_like=True, tag=111, frozen=True, gc=False):
    """The deletion of a topic. It disappears at once and delivers nothing; bounded steps delete its subscriptions."""

    number: Number


class SubscriptionSet(Struct, array_like=True, tag=112, frozen=True, gc=False):
    """The full row of a subscription.

    topic: the topic's number; key: the end of the subscription's ARN; account: the owner who created it; principal: the
    ARN of that caller; queue_owner: the owner of the queue that takes its messages, which may not exist. base_url:
    scheme://host:port of this server as the subscriber sees it, for links in messages. is_pending: nothing is delivered
    before a confirmation. needs_authentication: an unsigned call cannot delete it. is_left: it was unsubscribed, at
    ``created_ms``. It is pending and not listed: its endpoint may restore it.
    """

    number: Number
    topic: Number
    key: str
    account: str
    protocol: str
    endpoint: str
    attributes: dict[str, str]
    principal: str
    queue_owner: str
    base_url: str
    created_ms: RowTimeMs
    is_pending: bool = False
    needs_authentication: bool = False
    is_left: bool = False


class SubscriptionDeleted(Struct, array_like=True, tag=113, frozen=True, gc=False):
    """The deletion of a subscription."""

    number: Number


class PublishSet(Struct, array_like=True, tag=114, frozen=True, gc=False):
    """The full row of a publish with too many copies for one entry, and the subscriptions that it still waits for.

    number: the number from which its MessageId and SequenceNumber are made. is_structured: ``message`` has a text for
    each protocol. is_checked: the policies of the queues apply. waiting: the numbers of the subscriptions that still
    wait for their copy, in ascending order. Each number is stored as its difference from the number before it
    (``distances``, ``from_distances``). Most differences take one byte.
    """

    number: Number
    topic: Number
    published_ms: RowTimeMs
    message: str
    waiting: list[Number]
    base_url: str
    subject: str | None = None
    attributes: MessageAttributes | None = None
    trace_header: str | None = None
    group_id: str | None = None
    deduplication_id: str | None = None
    is_structured: bool = False
    is_checked: bool = False


class PublishDelivered(Struct, array_like=True, tag=115, frozen=True, gc=False):
    """The end of a publish, which waits for no more subscriptions."""

    number: Number


class QueueRestored(Struct, array_like=True, tag=32, gc=False):
    """The row of a queue on disk, without its messages. It is made from rows, and never in a log."""

    queue_id: int
    account: str
    name: str
    attributes: dict[str, str]
    tags: dict[str, str]
    created_ms: int
    modified_ms: int
    deleted_ms: int | None
    purged_ms: int | None
    watermark: int
    last_sequence: int


class UntouchedRestored(Struct, array_like=True, tag=33, gc=False):
    """A page: messages of one queue that were written to disk together. Pages of a queue come in order.

    It is made from rows, and never in a log.
    first, last: the sequences at the ends of the page; firsts, lasts: the ranges in it that were never received and
    never delayed (RowsRestored has the others); last_sent_ms: when the newest message in it was sent.
    """

    queue_id: int
    first: int
    last: int
    firsts: list[int]
    lasts: list[int]
    last_sent_ms: int


class RowsRestored(Struct, array_like=True, tag=34, gc=False):
    """The delivery state of messages that were received or moved to another time. It follows their UntouchedRestored.
    It is made from rows, and never in a log."""

    queue_id: int
    sequences: list[int]
    visible_at_ms: list[int]
    delivery_numbers: list[int]
    receive_counts: list[int]
    first_received_ms: list[int]
    received_ms: list[int]


class DelaysRestored(Struct, array_like=True, tag=140, gc=False):
    """The ends of the delays of never-received messages. It follows the UntouchedRestored of their page.
    It is made from rows, and never in a log."""

    queue_id: int
    sequences: list[int]
    visible_at_ms: list[int]


Mutation = (
    ClusterFounded
    | TookOver
    | QueueCreated
    | QueueAttributesSet
    | QueueDeleted
    | QueueReclaimed
    | QueuePurged
    | MessageStored
    | MessagesReceived
    | VisibilityChanged
    | MessagesRemoved
    | ReceiveReturned
    | InvocationRecorded
    | RangeRemoved
    | ClusterRenamed
    | AttemptRecorded
    | SentIdTaken
    | GroupsServed
    | GroupsRestored
    | PrioritiesSet
    | PrioritiesRestored
    | TurnsSet
    | QueueTagged
    | MoveTaskSet
    | MoveTaskForgotten
    | ClockAdvanced
    | RowsCompared
    | LeaseCalled
    | LeaseSet
    | LeaseForgotten
    | TopicSet
    | TopicDeleted
    | SubscriptionSet
    | SubscriptionDeleted
    | PublishSet
    | PublishDelivered
    | MetadataMutation
    | GroupMutation
    | QueueRestored
    | UntouchedRestored
    | RowsRestored
    | DelaysRestored
)

META: Final = Table("meta", ("name",), ClusterFounded, since=0, is_held=True)
CLUSTER: Final = "cluster"
"""The key of the one row of META that mutations set."""
TAKEOVERS: Final = Table("takeovers", ("term",), TookOver, newest=64)
MOVE_TASKS: Final = Table("move_tasks", ("number",), MoveTaskSet, is_plain=True)
LEASES: Final = Table(
    "leases", ("queue_id", "name", "batch", "partition"), LeaseCalled | LeaseSet, member="call", last_by="ended_ms"
)
TURNS: Final = Table("turns", ("queue_id", "path"), TurnsSet)
LEASE_ITSELF: Final = -1
"""The call number of the lease's own row."""
TOPICS: Final = Table("topics", ("number",), TopicSet, is_plain=True)
SUBSCRIPTIONS: Final = Table("subscriptions", ("number",), SubscriptionSet, is_plain=True)
PUBLISHES: Final = Table("publishes", ("number",), PublishSet, is_plain=True)

TABLES: Final = (META, TAKEOVERS, MOVE_TASKS, LEASES, TURNS, TOPICS, SUBSCRIPTIONS, PUBLISHES, METADATA, *GROUP_TABLES)
"""The tables in the order in which a start reads them, before the queues. Add a new one at the end."""

QUEUES: Final = Table("queues", ("id",), QueueRestored, since=0)
"""It is not in TABLES, because its rows have columns of their own, and pages of messages belong to them."""

_decoder: msgspec.msgpack.Decoder[list[Mutation]] = msgspec.msgpack.Decoder(list[Mutation])
encode = msgspec.msgpack.Encoder().encode
"""Encodes list[Mutation] as the payload of an entry."""
_LIST_HEADS: Final = {0xDC: 3, 0xDD: 5}  # first byte of a list of more than 15 items: bytes of its head (msgpack)


def join(payloads: list[bytes]) -> bytes:
    """Return the payload that ``encode`` would return for the mutations of all ``payloads`` together."""
    if len(payloads) == 1:
        return payloads[0]
    count, parts = 0, [b""]
    for payload in payloads:
        head_bytes = _LIST_HEADS.get(payload[0], 1)
        count += payload[0] & 15 if head_bytes == 1 else int.from_bytes(payload[1:head_bytes], "big")
        parts.append(payload[head_bytes:])
    if count < 16:
        parts[0] = bytes((0x90 | count,))
    elif count < 1 << 16:
        parts[0] = b"\xdc" + count.to_bytes(2, "big")
    else:
        parts[0] = b"\xdd" + count.to_bytes(4, "big")
    return b"".join(parts)


def decode(payload: bytes) -> list[Mutation]:
    """Return the mutations of a payload. Raise UnknownMutation if this version does not know one of them."""
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnknownMutation(str(error)) from error


def distances(numbers: list[int]) -> list[int]:
    """Return the differences between neighbours of these ascending numbers. The first difference is from 0."""
    return list(map(int.__sub__, numbers, [0, *numbers]))


def from_distances(found: list[int]) -> list[int]:
    return list(accumulate(found))


_Item = TypeVar("_Item")


def chunks(items: list[_Item]) -> list[list[_Item]]:
    """Return the items in chunks of at most MUTATION_ROWS_MAX, the limit of a mutation."""
    return [items[at : at + MUTATION_ROWS_MAX] for at in range(0, len(items), MUTATION_ROWS_MAX)]
