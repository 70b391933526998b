"""What changes: versioned, absolute, row-shaped facts, keyed by (queue id, sequence).

A mutation holds no "plus one" and no "from now"; every choice was the master's.
A new version of a mutation is a new class with a new tag; a member that meets
a tag it does not know stops (``UnknownMutation``) instead of skipping. None
touches more than MUTATION_ROWS_MAX rows.
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
    """The entry holds something that this version cannot apply: the member must stop."""


class ClusterFounded(Struct, array_like=True, tag=1, gc=False):
    """First mutation of a cluster's first entry."""

    cluster_id: str
    mac_key: bytes
    feature_level: Count


class TookOver(Struct, array_like=True, tag=2, gc=False):
    """A master begins its term. In-flight deadlines in [grace_from_ms, grace_until_ms) count as grace_until_ms."""

    term: Term
    member_id: str
    grace_from_ms: RowTimeMs
    grace_until_ms: RowTimeMs


class QueueCreated(Struct, array_like=True, tag=3, gc=False):
    """``attributes`` and ``tags`` as given, checked; ``created_ms`` cluster time."""

    queue_id: Number
    account: str
    name: str
    attributes: dict[str, str]
    tags: dict[str, str]
    created_ms: RowTimeMs


class QueueAttributesSet(Struct, array_like=True, tag=4, gc=False):
    """``attributes``: all that are set from now on (absolute, not the change)."""

    queue_id: Number
    attributes: dict[str, str]
    modified_ms: RowTimeMs


class QueueDeleted(Struct, array_like=True, tag=5, gc=False):
    """The name is free at once; rows go in bounded steps, then QueueReclaimed."""

    queue_id: Number
    deleted_ms: RowTimeMs


class QueueReclaimed(Struct, array_like=True, tag=6, gc=False):
    """The last trace of a deleted queue goes."""

    queue_id: Number


class QueuePurged(Struct, array_like=True, tag=7, gc=False):
    """Messages below ``watermark`` are hidden at once and removed in bounded steps."""

    queue_id: Number
    watermark: Number
    purged_ms: RowTimeMs


class DeadLetter(Struct, array_like=True, frozen=True, gc=False):
    """Where a dead letter was received too often (ARN), and how often over all queues before this one."""

    source_arn: str
    receive_count: Count


class MessageStored(Struct, array_like=True, tag=8, gc=False):
    """A message enters a queue; its content never changes afterwards.

    visible_at_ms: 0, or when its delay ends; origin: (queue id, sequence) that the MessageId is made of.
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
    """Handed out at ``received_ms`` until ``until_ms``: per message sequence, delivery number, count, first receive."""

    queue_id: Number
    received_ms: RowTimeMs
    until_ms: RowTimeMs
    sequences: list[Number]
    delivery_numbers: list[Number]
    receive_counts: list[Count]
    first_received_ms: list[RowTimeMs]


class VisibilityChanged(Struct, array_like=True, tag=10, gc=False):
    """New deadlines for messages in flight."""

    queue_id: Number
    sequences: list[Number]
    until_ms: list[RowTimeMs]


class MessagesRemoved(Struct, array_like=True, tag=11, gc=False):
    """Deleted by a client, expired or reclaimed."""

    queue_id: Number
    sequences: list[Number]


class ReceiveReturned(Struct, array_like=True, tag=12, gc=False):
    """These deliveries reached nobody: visible again, receive count taken back, delivery number kept."""

    queue_id: Number
    sequences: list[Number]
    delivery_numbers: list[Number]
    receive_counts: list[Count]
    first_received_ms: list[RowTimeMs]
    visible_at_ms: RowTimeMs
    invocation: bytes


class InvocationRecorded(Struct, array_like=True, tag=13, gc=False):
    """One SDK call had its effect: a retry gets the same answer. Or one deduplication id is taken for as long.

    queue_id, sequence: of the one message it sent; else both 0 and ``detail`` holds the outcome.
    """

    invocation: Digest
    recorded_ms: RowTimeMs
    queue_id: Number
    sequence: Number
    detail: bytes = b""


class RangeRemoved(Struct, array_like=True, tag=14, gc=False):
    """Every message of the queue from ``first`` to ``last`` is gone: expired. At most MUTATION_ROWS_MAX of them."""

    queue_id: Number
    first: Number
    last: Number


class ClusterRenamed(Struct, array_like=True, tag=15, gc=False):
    """A member was made a cluster of its own: another id, so that the old members and this one never mix again.

    The MAC key stays, so that receipt handles stay valid.
    """

    cluster_id: str


class AttemptRecorded(Struct, array_like=True, tag=40, gc=False):
    """A ReceiveRequestAttemptId of a FIFO queue stands for these messages from now on, whatever it stood for.

    attempt: 16 bytes of it and its queue; detail: the messages, or nothing if they went back.
    """

    attempt: Digest
    recorded_ms: RowTimeMs
    detail: bytes


class GroupsServed(Struct, array_like=True, tag=41, gc=False):
    """What ``Order.served`` tells of groups, by their names. Never in a log, only in a dump: rows do not keep it."""

    queue_id: Number
    names: list[str]
    numbers: list[RowTimeMs]


class GroupsRestored(Struct, array_like=True, tag=42, gc=False):
    """The groups of the living messages of a page, after it. Only from rows, never in a log.

    groups: of each of ``sequences`` the place of its group in ``names``.
    """

    queue_id: Number
    names: list[str]
    sequences: list[Number]
    groups: list[int]


class PrioritiesSet(Struct, array_like=True, tag=100, gc=False):
    """Messages of a priority queue have these priorities from now on, wherever their delivery stands."""

    queue_id: Number
    sequences: list[Number]
    priorities: list[Priority]


class PrioritiesRestored(Struct, array_like=True, tag=101, gc=False):
    """The priorities of the living messages of a page, after it. Only from rows, never in a log."""

    queue_id: Number
    sequences: list[Number]
    priorities: list[Priority]


class TurnsSet(Struct, array_like=True, tag=120, frozen=True, gc=False):
    """What is stored of turns (ordering/shares.py) in a queue whose groups share, of each of ``paths``, from now on.

    starts, clocks: virtual times, big-endian; weights: of the present turns, 0 without work, -1: nothing is stored.
    """

    queue_id: Number
    paths: list[str]
    starts: list[VirtualTime]
    weights: list[Count]
    clocks: list[VirtualTime]


class SentIdTaken(Struct, array_like=True, tag=80, gc=False):
    """A deduplication id of a standard queue stands for this message until ``until_ms``; key: 16 bytes of both."""

    key: Digest
    taken_ms: RowTimeMs
    until_ms: RowTimeMs
    queue_id: Number
    sequence: Number


class QueueTagged(Struct, array_like=True, tag=60, gc=False):
    """``tags``: all that the queue has from now on."""

    queue_id: Number
    tags: dict[str, str]


class MoveTaskSet(Struct, array_like=True, tag=61, frozen=True, gc=False):
    """A message move task, whole, as it is from now on.

    number: made as a queue id is; cursor: messages of the source up to it are done;
    last: the task ends behind it; rate: messages a second, 0 = as fast as they go.
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
    """An old task that is over."""

    number: Number


class ClockAdvanced(Struct, array_like=True, tag=90, gc=False):
    """Cluster time is ``ahead_ms`` ahead of real time from the next entry on, all advances together: never less."""

    ahead_ms: RowTimeMs


LEASE_OPEN, LEASE_SEALED = "open", "sealed"
LEASE_COMMITTED, LEASE_GIVEN_BACK, LEASE_EXPIRED = "committed", "given_back", "expired"


class LeaseCalled(Struct, array_like=True, tag=70, frozen=True, gc=False):
    """What the receive number ``call`` of a lease is answered for ever; the first one opens the lease.

    sequences, delivery_numbers: of its messages; none: the lease is sealed, nothing is added to it any more.
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
    """A lease without its calls, as it is from now on; ended_ms: 0 while it lives, then its calls are forgotten.

    messages: how many its calls got.
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
    """A lease that ended long ago."""

    queue_id: Number
    name: str
    batch: Count
    partition: Count


class TopicSet(Struct, array_like=True, tag=110, frozen=True, gc=False):
    """A topic, whole, as it is from now on.

    account: its owner (model/names.py); attributes: what was set, as it reads back; deleted: how many of its
    subscriptions were.
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
    """The topic goes at once; its subscriptions, which deliver nothing any more, in bounded steps."""

    number: Number


class SubscriptionSet(Struct, array_like=True, tag=112, frozen=True, gc=False):
    """A subscription, whole, as it is from now on.

    topic: the topic's number; key: the end of its ARN; account: the owner who made it; principal: that caller's ARN;
    queue_owner: of the queue that takes its messages, which need not be there; base_url: scheme://host:port of this
    server as the subscriber sees it, for the links in what it gets.
    is_pending: nothing is delivered until it is confirmed. needs_authentication: an unsigned call cannot delete it.
    is_left: it was unsubscribed at ``created_ms`` and is shown nowhere; it is pending, as its endpoint may restore it.
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
    number: Number


class PublishSet(Struct, array_like=True, tag=114, frozen=True, gc=False):
    """A publish that one entry cannot hold, and for which subscriptions it still waits. Whole, as it is from now on.

    number: the publish's, of which MessageId and SequenceNumber are made. waiting: the numbers of the subscriptions,
    which were chosen at the publish, in their order, each as its distance from the one before: mostly a byte for each
    of 100,000 (``distances``, ``from_distances``). is_structured: ``message`` has a text for each protocol.
    is_checked: the policies of the queues are asked.
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
    """A publish waits for no subscription any more."""

    number: Number


class QueueRestored(Struct, array_like=True, tag=32, gc=False):
    """A queue as the rows on disk hold it, without its messages. Only from rows, never in a log."""

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
    """Messages on disk. Only from rows, never in a log; pages of a queue come in the order of their sequences.

    first, last: the sequences of the page's ends; firsts, lasts: ranges inside of them that were never
    received nor delayed (what else lives comes as RowsRestored); last_sent_ms: of the newest message in it.
    """

    queue_id: int
    first: int
    last: int
    firsts: list[int]
    lasts: list[int]
    last_sent_ms: int


class RowsRestored(Struct, array_like=True, tag=34, gc=False):
    """Where delivery of touched messages stands, after their pages. Only from rows, never in a log."""

    queue_id: int
    sequences: list[int]
    visible_at_ms: list[int]
    delivery_numbers: list[int]
    receive_counts: list[int]
    first_received_ms: list[int]
    received_ms: list[int]


class DelaysRestored(Struct, array_like=True, tag=140, gc=False):
    """When messages come that were never received, after the ranges of their page. Only from rows, never in a log."""

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

META: Final = Table("meta", ("name",), ClusterFounded, is_held=True)
CLUSTER: Final = "cluster"
"""The key of the one row of META that is told by mutations."""
TAKEOVERS: Final = Table("takeovers", ("term",), TookOver, newest=64)
MOVE_TASKS: Final = Table("move_tasks", ("number",), MoveTaskSet, is_plain=True)
LEASES: Final = Table(
    "leases", ("queue_id", "name", "batch", "partition"), LeaseCalled | LeaseSet, member="call", last_by="ended_ms"
)
TURNS: Final = Table("turns", ("queue_id", "path"), TurnsSet, since=1)
LEASE_ITSELF: Final = -1
"""Among the calls of a lease: its own row."""
TOPICS: Final = Table("topics", ("number",), TopicSet, since=1, is_plain=True)
SUBSCRIPTIONS: Final = Table("subscriptions", ("number",), SubscriptionSet, since=1, is_plain=True)
PUBLISHES: Final = Table("publishes", ("number",), PublishSet, since=1, is_plain=True)

TABLES: Final = (META, TAKEOVERS, MOVE_TASKS, LEASES, TURNS, TOPICS, SUBSCRIPTIONS, PUBLISHES, METADATA, *GROUP_TABLES)
"""In the order in which a start reads them, before the queues; a new one comes last."""

QUEUES: Final = Table("queues", ("id",), QueueRestored)
"""Not among TABLES: its rows have columns of their own, and pages of messages behind them."""

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[list[Mutation]] = msgspec.msgpack.Decoder(list[Mutation])

encode = _encoder.encode
"""list[Mutation] -> the payload of an entry."""


_LIST_HEADS: Final = {0xDC: 3, 0xDD: 5}
"""Bytes that say how many there are in a list of more than 15, by the first of them (msgpack)."""


def join(payloads: list[bytes]) -> bytes:
    """One payload of several: the bytes that ``encode`` makes of all their mutations together."""
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
    """Raises UnknownMutation for what this version does not know."""
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnknownMutation(str(error)) from error


def distances(numbers: list[int]) -> list[int]:
    """Growing numbers, each as its distance from the one before, the first one from 0."""
    return [number - before for before, number in zip([0, *numbers], numbers, strict=False)]


def from_distances(found: list[int]) -> list[int]:
    return list(accumulate(found))


_Item = TypeVar("_Item")


def chunks(items: list[_Item]) -> list[list[_Item]]:
    """Cut so that no mutation touches more rows than allowed."""
    return [items[at : at + MUTATION_ROWS_MAX] for at in range(0, len(items), MUTATION_ROWS_MAX)]
